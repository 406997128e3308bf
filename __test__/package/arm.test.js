'use strict';
// Which addon a 32-bit ARM gets. ARMv6 lacks instructions of it: the process would be killed.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { join } = require('node:path');
const { test } = require('node:test');

const ADDON = join(__dirname, '../../js/runtime/addon.js');

/** What the loader finds on Linux machines that call themselves so. */
function targetsOn(...machines) {
  const script = `
    Object.defineProperty(process, 'platform', { value: 'linux' });
    Object.defineProperty(process, 'arch', { value: 'arm' });
    const os = require('node:os');
    const found = ${JSON.stringify(machines)}.map((machine) => {
      os.machine = machine === null ? undefined : () => machine;
      delete require.cache[${JSON.stringify(ADDON)}];
      const { loadAddon, targetHere } = require(${JSON.stringify(ADDON)});
      try { loadAddon('snowdrift', '/nowhere', () => {}); }
      catch ({ code, message }) { return [targetHere() ?? null, code + ' ' + message]; }
    });
    console.log(JSON.stringify(found));
  `;
  return JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }));
}

test('ARMv7, and ARMv8 with a 32-bit Node, load the addon of ARMv7', () => {
  const machines = ['armv7l', 'armv8l', 'aarch64', null];
  for (const [at, [target]] of targetsOn(...machines).entries()) {
    assert.match(target, /^linux-arm-(gnu|musl)$/, machines[at]);
  }
});

test('ARMv6 is refused by name', () => {
  const [[target, said]] = targetsOn('armv6l');
  assert.equal(target, null);
  assert.match(
    said,
    /^ERR_SNOWFLAKE_ADDON snowdrift has no addon for linux-armv6l: run it on one of /,
  );
});
