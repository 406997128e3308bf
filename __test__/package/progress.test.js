'use strict';
// What a build shows while it runs.

const assert = require('node:assert/strict');
const { existsSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');
const { test } = require('node:test');

const { createDirectory } = require('../support/own-directory.js');
const { runScript, until } = require('../support/support.js');
const { Terminal, missingTerminal, screenOf } = require('../support/terminal.js');

const PROGRESS = pathToFileURL(join(__dirname, '../../scripts/progress.mjs')).href;

/** Writes what cargo does, and goes on when there is the file. */
const builder = (file) => `
  process.stderr.write(${JSON.stringify('   Compiling a v1.0.0\n    Building [====>          ] 3/7: b, c\r')});
  const timer = setInterval(() => {
    if (require('node:fs').existsSync(${JSON.stringify(file)})) clearInterval(timer);
  }, 20);`;

const runner = (script) => `
  import { run } from ${JSON.stringify(PROGRESS)};
  await run('cargo build', process.execPath, ['-e', ${JSON.stringify(script)}]);`;

test('a terminal shows the crates and the seconds in a line, which goes at the end', {
  skip: missingTerminal(),
}, async (t) => {
  const file = join(createDirectory(), 'go-on');
  const script = runner(builder(file));
  const terminal = new Terminal([process.execPath, '--input-type=module', '-e', script]);
  t.after(() => terminal.kill());
  await until(() => /cargo build: 3 of 7 crates, \d+ s$/.test(screenOf(terminal.text, 80).at(-1)));
  writeFileSync(file, '');
  assert.equal(await terminal.ended, 0);
  assert.ok(existsSync(file));
  const lines = screenOf(terminal.text, 80).filter(Boolean);
  assert.ok(
    lines.every((line) => /^cargo build: \d+ s$/.test(line)),
    lines.join('\n'),
  );
});

test('failures are shown as they were printed, without the progress', async () => {
  const fails = `process.stderr.write(${JSON.stringify('    Building [=> ] 3/7: b\rerror: no\n')}); process.exitCode = 3`;
  const { code, stderr } = await runScript(runner(fails), { args: ['--input-type=module'] });
  assert.equal(code, 1);
  assert.equal(stderr, 'error: no\n\ncargo build failed (3), see above.\n');
});
