'use strict';
// Which addon a 32-bit ARM gets. ARMv6 lacks instructions of it: the process would be killed.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { join } = require('node:path');
const { test } = require('node:test');

const ADDON = join(__dirname, '../../js/addon.js');

/** What the loader finds on a Linux machine that calls itself so. */
function targetOn(machine) {
  const script = `
    Object.defineProperty(process, 'platform', { value: 'linux' });
    Object.defineProperty(process, 'arch', { value: 'arm' });
    require('node:os').machine = ${machine && `() => '${machine}'`};
    const { loadAddon, targetHere } = require(${JSON.stringify(ADDON)});
    let said;
    try { loadAddon('snowdrift', '/nowhere', () => {}); } catch ({ code, message }) { said = code + ' ' + message; }
    console.log(JSON.stringify([targetHere() ?? null, said]));
  `;
  return JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }));
}

test('ARMv7, and ARMv8 with a 32-bit Node, load the addon of ARMv7', () => {
  for (const machine of ['armv7l', 'armv8l', 'aarch64', undefined]) {
    assert.match(targetOn(machine)[0], /^linux-arm-(gnu|musl)$/, machine);
  }
});

test('ARMv6 is refused by name', () => {
  const [target, said] = targetOn('armv6l');
  assert.equal(target, null);
  assert.match(
    said,
    /^ERR_SNOWFLAKE_ADDON snowdrift has no addon for linux-armv6l: run it on one of /,
  );
});
