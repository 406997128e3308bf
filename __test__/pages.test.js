'use strict';
// The code in docs/, as it stands there, against real databases.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const { Server, missing } = require('./lease/servers.js');

const run = promisify(execFile);
const root = join(__dirname, '..');

/** The first block of a page's code, its language, and what its comments say it prints. */
function codeOf(page) {
  const text = readFileSync(join(root, 'docs', page), 'utf8');
  const [, language, code] = text.match(/```(ts|js)\n([\s\S]*?)```/);
  const printed = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, what]) => what);
  return { code, language, printed };
}

const TSC = join(root, 'node_modules/typescript/bin/tsc');
const TSC_OPTIONS =
  '--module node20 --target es2022 --strict --experimentalDecorators --emitDecoratorMetadata --types node';

for (const [page, engine] of [
  ['typeorm.md', 'postgres'],
  ['drizzle.md', 'postgres'],
  ['sequelize.md', 'postgres'],
  ['knex.md', 'postgres'],
  ['nestjs.md', 'postgres'],
]) {
  test(`docs/${page} does what it says`, { skip: missing(engine) }, async () => {
    const { code, language, printed } = codeOf(page);
    assert.ok(printed.length > 0);
    // Within the package, so that it is found by its name.
    const directory = mkdtempSync(join(root, 'target', 'page-'));
    const server = await Server.start(engine);
    try {
      writeFileSync(join(directory, `page.m${language}`), code);
      if (language === 'ts') {
        const args = [TSC, ...TSC_OPTIONS.split(' '), '--ignoreConfig', 'page.mts'];
        await run(process.execPath, args, { cwd: directory }).catch(({ stdout }) =>
          assert.fail(stdout),
        );
      }
      const node = { DATABASE_URL: server.url, datacenterId: '1', workerId: '3' };
      const { stdout } = await run(process.execPath, ['page.mjs'], {
        cwd: directory,
        env: { ...process.env, ...node },
      });
      assert.equal(stdout, `${printed.join('\n')}\n`);
    } finally {
      rmSync(directory, { recursive: true });
      await server.stop();
    }
  });
}
