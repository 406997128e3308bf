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

/** The first block of a page's code, and what its comments say it prints. */
function codeOf(page) {
  const text = readFileSync(join(root, 'docs', page), 'utf8');
  const [, code] = text.match(/```ts\n([\s\S]*?)```/);
  const printed = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, what]) => what);
  return { code, printed };
}

for (const [page, engine] of [['typeorm.md', 'postgres']]) {
  test(`docs/${page} does what it says`, { skip: missing(engine) }, async () => {
    const { code, printed } = codeOf(page);
    assert.ok(printed.length > 0);
    // Within the package, so that it is found by its name.
    const directory = mkdtempSync(join(root, 'target', 'page-'));
    const server = await Server.start(engine);
    try {
      writeFileSync(join(directory, 'page.mts'), code);
      const tsc = join(root, 'node_modules/typescript/bin/tsc');
      const options =
        '--module node20 --target es2022 --strict --experimentalDecorators --types node';
      const [main, ...rest] = [tsc, ...options.split(' '), '--ignoreConfig', 'page.mts'];
      await run(process.execPath, [main, ...rest], { cwd: directory }).catch(({ stdout }) =>
        assert.fail(stdout),
      );
      const env = {
        ...process.env,
        DATABASE_URL: server.url,
        datacenterId: '1',
        workerId: '3',
      };
      const { stdout } = await run(process.execPath, ['page.mjs'], { cwd: directory, env });
      assert.equal(stdout, `${printed.join('\n')}\n`);
    } finally {
      rmSync(directory, { recursive: true });
      await server.stop();
    }
  });
}
