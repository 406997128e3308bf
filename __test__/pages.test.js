'use strict';
// Every block of code in README.md and docs/, as it stands there, with real databases. Those of
// docs/bundlers.md are files of one project, which package.test.js builds.

const assert = require('node:assert/strict');
const { existsSync, readFileSync, readdirSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('./own-directory.js');
const { Server, missing } = require('./lease/servers.js');
const { missingOrm } = require('./orms.js');
const { blocksOf, environmentIn, query, runProgram, runShell } = require('./page.js');

const root = join(__dirname, '..');
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** The URLs that pages take from their environment, and whose they are. */
const URLS = { DATABASE_URL: 'postgres', REDIS_URL: 'redis', MONGODB_URL: 'mongodb' };

/** What tells that a page needs one. */
const NEEDS = {
  DATABASE_URL: /DATABASE_URL|postgres:/,
  REDIS_URL: /REDIS_URL|redis:/,
  MONGODB_URL: /MONGODB_URL/,
};

const servers = [];
/** What a worker of the application has in its environment. */
const environment = { datacenterId: '1', workerId: '3' };

before(async () => {
  for (const [name, engine] of Object.entries(URLS)) {
    if (missing(engine)) continue;
    const server = await Server.start(engine);
    servers.push(server);
    environment[name] = server.url;
  }
});

let databases = 0;

/** A database of a block's own, so that none finds the tables of another. */
async function emptyDatabase() {
  const name = `page_${databases++}`;
  await query(environment.DATABASE_URL, `CREATE DATABASE ${name}`);
  const url = new URL(environment.DATABASE_URL);
  url.pathname = `/${name}`;
  return url.href;
}

after(() => Promise.all(servers.map((server) => server.stop())));

test('the benchmark page shows what was measured', async () => {
  const { page } = await import('../bench/page.mjs');
  const read = (name) => readFileSync(join(root, name), 'utf8');
  assert.equal(read('docs/benchmarks.md'), page(JSON.parse(read('bench/results/latest.json'))));
});

for (const page of pages) {
  describe(page, () => {
    // Of the orchestrator's file that was shown last.
    let orchestrated = {};
    let schema;
    for (const block of page === 'docs/bundlers.md' ? [] : blocksOf(page)) {
      const needs = Object.keys(URLS).filter((name) => NEEDS[name].test(block.given + block.code));
      if (block.language === 'prisma') schema = block;
      const skip =
        needs.map((name) => missing(URLS[name])).find(Boolean) ?? (schema && missingOrm('prisma'));
      test(`line ${block.line}, ${block.language}`, { skip }, async () => {
        const env = { ...environment, ...orchestrated };
        if (needs.includes('DATABASE_URL')) env.DATABASE_URL = await emptyDatabase();
        if (block.language === 'yaml') orchestrated = environmentIn(block);
        else if (block.language === 'sh') await runShell(block, env);
        else if (['js', 'ts'].includes(block.language)) await runProgram(block, env, schema);
        else if (block.language === 'prisma') assert.match(block.code, /^generator/);
        else assert.fail(`nobody knows how to run ${block.language || 'a block of no language'}`);
      });
    }

    test('what it links to is there', () => {
      const text = readFileSync(join(root, page), 'utf8');
      const links = [...text.matchAll(/\]\(([^)#]+)(#[^)]*)?\)/g)].map(([, link]) => link);
      const gone = links.filter((link) => !existsSync(join(root, dirname(page), link)));
      assert.deepEqual(gone, []);
    });
  });
}
