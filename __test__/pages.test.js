'use strict';
// The code in docs/, as it stands there, against real databases.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} = require('node:fs');
const { join } = require('node:path');
const { after, test } = require('node:test');
const { promisify } = require('node:util');
const { Client } = require('pg');

const { Server, missing } = require('./lease/servers.js');
const { generatePrisma, missingOrm, modulesOf } = require('./orms.js');

const run = promisify(execFile);
const root = join(__dirname, '..');

/** A page's code, its language, and what its comments say it prints. */
function codeOf(page) {
  const [, language, code] = page.match(/```(ts|js)\n([\s\S]*?)```/);
  const printed = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, what]) => what);
  return { code, language, printed };
}

const TSC = join(root, 'node_modules/typescript/bin/tsc');
const TSC_OPTIONS =
  '--module node20 --target es2022 --strict --experimentalDecorators --emitDecoratorMetadata --types node --skipLibCheck --rewriteRelativeImportExtensions';

const servers = new Map();
after(() => Promise.all([...servers.values()].map(async (server) => (await server).stop())));

/** The URL of a new database, of a server that the pages share. */
async function database(engine, name) {
  if (!servers.has(engine)) servers.set(engine, Server.start(engine));
  const { url } = await servers.get(engine);
  if (engine === 'postgres') await query(url, `CREATE DATABASE ${name}`);
  return String(new URL(`/${name}`, url));
}

async function query(url, sql) {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

/** What a user of Prisma does first: installs it, creates the tables, generates the client. */
async function preparePrisma(directory, page, url) {
  mkdirSync(join(directory, 'node_modules'));
  symlinkSync(join(modulesOf('prisma'), '@prisma'), join(directory, 'node_modules/@prisma'));
  symlinkSync(root, join(directory, 'node_modules/snowdrift'));
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
  const [, schema] = page.match(/```prisma\n([\s\S]*?)```/);
  writeFileSync(join(directory, 'schema.prisma'), schema);
  await query(
    url,
    `CREATE TABLE "Author" (id bigint PRIMARY KEY, name text NOT NULL);
     CREATE TABLE "Book" (id bigint PRIMARY KEY, title text NOT NULL,
       "authorId" bigint NOT NULL REFERENCES "Author")`,
  );
  await generatePrisma(directory);
}

for (const [name, engine, { skip, prepare } = {}] of [
  ['typeorm', 'postgres'],
  ['prisma', 'postgres', { skip: missingOrm('prisma'), prepare: preparePrisma }],
  ['drizzle', 'postgres'],
  ['sequelize', 'postgres'],
  ['mikro-orm', 'postgres'],
  ['knex', 'postgres'],
  ['mongoose', 'mongodb'],
  ['nestjs', 'postgres'],
]) {
  test(`docs/${name}.md does what it says`, { skip: missing(engine) ?? skip }, async () => {
    const page = readFileSync(join(root, 'docs', `${name}.md`), 'utf8');
    const { code, language, printed } = codeOf(page);
    assert.ok(printed.length > 0);
    const url = await database(engine, name.replace('-', '_'));
    // Within the package, so that it is found by its name.
    const directory = mkdtempSync(join(root, 'target', 'page-'));
    try {
      await prepare?.(directory, page, url);
      writeFileSync(join(directory, `page.m${language}`), code);
      if (language === 'ts') {
        const args = [TSC, ...TSC_OPTIONS.split(' '), '--ignoreConfig', 'page.mts'];
        await run(process.execPath, args, { cwd: directory }).catch(({ stdout }) =>
          assert.fail(stdout),
        );
      }
      const worker = { DATABASE_URL: url, datacenterId: '1', workerId: '3' };
      const { stdout } = await run(process.execPath, ['page.mjs'], {
        cwd: directory,
        env: { ...process.env, ...worker },
      });
      assert.equal(stdout, `${printed.join('\n')}\n`);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
}
