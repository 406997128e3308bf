'use strict';
// Runs the blocks of code in README.md and docs/ as they stand there, with real databases, in projects outside of the
// clone (page.js). ELSEWHERE has the tests that run the rest.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { existsSync, readFileSync, readdirSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { after, before, describe, test } = require('node:test');

const { parse } = require('yaml');

require('../support/own-directory.js');
const { gate, storm } = require('../support/amount.js');
const { Server, missing } = require('../support/lease/servers.js');
const { missingClients, missingOrm, missingPackages } = require('../support/installed.js');
const { missingRunner } = require('../support/runners/project.js');
const { metrics } = require('../../js/monitoring.js');
const { METRICS } = require('../../js/monitoring/list.js');
const {
  anchorsOf,
  blocksOf,
  environmentIn,
  fileOf,
  query,
  runProgram,
  runShell,
  runSql,
  runTests,
} = require('../support/page.js');
const { KEY, toBase64, withOwnKey } = require('../support/public-ids.js');

const root = join(__dirname, '../..');
const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...readdirSync(join(root, 'docs'), { recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** The URLs that pages take from their environment, and whose they are. */
const URLS = {
  DATABASE_URL: 'postgres',
  REDIS_URL: 'redis',
  MONGODB_URL: 'mongodb',
};

/** What tells that a page needs one. */
const NEEDS = {
  DATABASE_URL: /DATABASE_URL|postgres:/,
  REDIS_URL: /REDIS_URL|redis:/,
  MONGODB_URL: /MONGODB_URL/,
};

/** What tells that a program holds a slot, or asks a server for one: holds expire, and calls may take some seconds. */
const LEASES =
  /\blease\((?!memory)|\b(?:lease|state|from): |_LEASE = |--state |snowdrift recover |\bLAG_MS\b|--port /;

const BOUNDARY = join(__dirname, '../support/boundary');

/** By package that does not come with `npm ci`: why it is not there. */
const OF_STORMS = {
  kysely: () => missingOrm('kysely'),
  '@nestjs/terminus': () => missingPackages(BOUNDARY, '--boundary'),
  'prom-client': () => missingClients('metrics'),
};

/** The text in which a block's imports are. */
const imports = ({ given, code }) => given + code;

/** Pages whose blocks with a database are steps on one. */
const STEPS = ['docs/migration.md'];

/** The page whose files are those of test runners. */
const TESTS = 'docs/testing.md';

/** The pages whose blocks other tests run, and which: those need a registry, or packages of their own. */
const ELSEWHERE = {
  'docs/boundaries.md': 'app/boundary.test.js',
  'docs/bundlers.md': 'package/bundlers.test.js',
  'docs/installation.md': 'package/installation.test.js',
  'docs/own-store.md': 'package/own-store.test.js',
  'docs/public-ids.md': 'app/public-ids.test.js',
  'docs/sql.md': 'package/sql.test.js',
  'docs/store-security.md': 'lease/rights.test.js',
  'docs/ten-minutes.md': 'app/application.test.js',
  'docs/tools.md': 'package/tools.test.js',
};

/** Files with blocks that show no use of the package. */
const OTHERS = ['packages/zookeeper/README.md'];

const servers = [];
/** What a worker of the application has in its environment. */
const environment = {
  ...{ datacenterId: '1', workerId: '3', PORT: '0' },
  // Pages show the texts of a published one, which is refused.
  PUBLIC_ID_KEY: toBase64(KEY),
};

before(async () => {
  if (gate) return;
  for (const [name, engine] of Object.entries(URLS)) {
    if (missing(engine)) continue;
    // A worker of autovacuum may hold a table for longer than a statement of a page waits for it.
    const args = engine === 'postgres' ? ['-c', 'autovacuum=off'] : [];
    const server = await Server.start(engine, { args });
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

test('each page with blocks is run here, or by the test that ELSEWHERE names', () => {
  const tracked = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' });
  const others = tracked
    .trim()
    .split('\n')
    .filter((page) => !pages.includes(page) && blocksOf(page).length > 0);
  assert.deepEqual(others, OTHERS);
  for (const [page, file] of Object.entries(ELSEWHERE)) {
    assert.ok(blocksOf(page).length > 0, `${page} has no blocks`);
    assert.ok(readFileSync(join(__dirname, '..', file), 'utf8').includes(`'${page}'`), page);
  }
});

test('the API page is up to date: run node scripts/api.mjs if this fails', async () => {
  const { page } = await import('../../scripts/api.mjs');
  assert.equal(readFileSync(join(root, 'docs/api.md'), 'utf8'), page());
});

for (const runner of ['jest', 'vitest']) {
  test(`${TESTS}, by ${runner}`, { skip: missingRunner(runner) }, () => runTests(TESTS, runner));
}

test('the metrics of the page, its rules and the instruments of OpenTelemetry are those of the list', () => {
  const read = (path) => readFileSync(join(root, path), 'utf8');
  const page = read('docs/monitoring.md');
  const names = metrics().map(({ name }) => name);
  assert.deepEqual([...new Set(page.match(/\bsnowdrift_\w+/g))].sort(), names.sort());
  const [{ rules }] = parse(read('examples/prometheus-rules.yml')).groups;
  assert.equal(rules.length, 5);
  for (const { alert, expr, annotations } of rules) {
    assert.match(alert, /^Snowdrift\w+$/);
    assert.deepEqual(
      expr.match(/\bsnowdrift_\w+/g).filter((name) => !names.includes(name)),
      [],
      expr,
    );
    assert.match(annotations.summary, /^[^{]+(\{\{ \$labels\.worker \}\}[^{]+)?$/);
  }
  const rows = read('js/opentelemetry.d.ts').matchAll(
    /^ \* \| `(snowdrift\.[\w.]+)` \| `([^`]+)` \| (counter|gauge)/gm,
  );
  assert.deepEqual(
    Array.from(rows, ([, ...row]) => row),
    METRICS.map(({ name, unit, type }) => [name, unit, type]),
  );
});

/** Behind examples/prom-client.mjs: the values are of the time of each scrape, as those of prometheus(). */
const SCRAPES = `
import assert from 'node:assert';
import { register } from 'prom-client';
import { SnowFlake } from 'snowdrift';
import { prometheus } from 'snowdrift/monitoring';

SnowFlake.nextIds(4);
for (let times = 0; times < 2; times++) {
  const text = await register.metrics();
  assert.match(text, /^snowdrift_ids_issued_total\\{datacenter="1",worker="3"\\} 4$/m);
  assert.doesNotMatch(text, /^snowdrift_(lease|ring)_\\w+\\{/m);
  const values = (all) => all.match(/^snowdrift_\\w+\\{.*$/gm).join();
  assert.equal(values(text), values(prometheus()));
}`;

test('the example with prom-client has the metrics in its registry', {
  skip: missingClients('metrics'),
}, async () => {
  const code = readFileSync(join(root, 'examples/prom-client.mjs'), 'utf8');
  const block = { page: 'docs/monitoring.md', language: 'js', code: code + SCRAPES };
  await runProgram(block, { ...environment });
});

for (const page of pages) {
  describe(page, () => {
    // Of the orchestrator's file that was shown last.
    let orchestrated = {};
    let schema;
    let database;
    const blocks = (page in ELSEWHERE ? [] : blocksOf(page)).map((block) => ({
      ...block,
      code: withOwnKey(block.code),
    }));
    const tsconfig = blocks.find(({ language }) => language === 'json')?.code;
    for (const block of blocks) {
      if (page === TESTS && fileOf(block) !== undefined) continue;
      const isStep = STEPS.includes(page);
      const needs = Object.keys(URLS).filter(
        (name) =>
          NEEDS[name].test(block.given + block.code + block.then) ||
          (name === 'DATABASE_URL' && block.language === 'sql'),
      );
      if (block.language === 'prisma') schema = block;
      const skip =
        needs.map((name) => missing(URLS[name])).find(Boolean) ??
        (schema && missingOrm('prisma')) ??
        Object.entries(OF_STORMS).find(([name]) => imports(block).includes(`'${name}'`))?.[1]() ??
        (block.language !== 'yaml' && LEASES.test(block.given + block.code + block.then)
          ? storm
          : undefined) ??
        gate;
      test(`line ${block.line}, ${block.language}`, { skip }, async () => {
        const env = { ...environment, ...orchestrated };
        // NestJS looks for what serves it among its own packages.
        if (imports(block).includes("'@nestjs/terminus'"))
          env.NODE_PATH = join(BOUNDARY, 'node_modules');
        if (needs.includes('DATABASE_URL')) {
          if (!isStep || database === undefined) database = await emptyDatabase();
          env.DATABASE_URL = database;
        }
        if (block.language === 'yaml') orchestrated = environmentIn(block);
        else if (block.language === 'sh') await runShell(block, env);
        else if (block.language === 'sql') await runSql(block, env);
        else if (['js', 'ts'].includes(block.language)) {
          await runProgram(block, env, { schema, tsconfig });
        } else if (block.language === 'prisma') assert.match(block.code, /^generator/m);
        else if (block.language === 'json') assert.ok(JSON.parse(tsconfig).compilerOptions.strict);
        else assert.fail(`nobody knows how to run ${block.language || 'a block of no language'}`);
      });
    }

    test('its links lead to files and headings', () => {
      const text = readFileSync(join(root, page), 'utf8');
      const links = [...text.matchAll(/\]\(([^)#]*)(?:#([^)]*))?\)/g)];
      const gone = links.filter(([, path, anchor]) => {
        if (path.startsWith('https:')) return false;
        const file = path === '' ? page : join(dirname(page), path);
        if (!existsSync(join(root, file))) return true;
        return anchor !== undefined && !anchorsOf(file).includes(anchor);
      });
      assert.deepEqual(
        gone.map(([link]) => link),
        [],
      );
    });
  });
}
