'use strict';
// A clock that stood years ahead, on a node that no store records: the refusal names the page and the
// command, and a reset repeats nothing, since the page remembers where the jump landed.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { join } = require('node:path');
const { test } = require('node:test');

const { Machine, missing } = require('./machine.js');
const { countDuplicates, entry, runScript } = require('./support.js');

const MAIN = join(__dirname, '..', 'js', 'cli', 'main.js');
const YEARS_MS = 3 * 365 * 86_400_000;
const NODE = ['--datacenter-id', '1', '--worker-id', '2'];

/** A machine whose processes end after they have drawn. */
function hostOf(machine) {
  const run = async (draw) => {
    const script = `
      const { SnowFlake } = require(${JSON.stringify(entry)});
      const flake = new SnowFlake({ datacenterId: 1, workerId: 2 });
      process.removeAllListeners('warning').on('warning', () => {});
      const ids = [];
      let refusal;
      try { ${draw} } catch ({ code, message, retryAfterMs }) { refusal = { code, message, retryAfterMs }; }
      console.log(JSON.stringify({ ids: ids.map(String), refusal, ...flake.stats() }));`;
    const { stdout, stderr, code } = await runScript(script, { env: machine.env });
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const reset = (...args) => {
    const env = { ...process.env, ...machine.env };
    const ended = spawnSync(process.execPath, [MAIN, 'reset', ...NODE, ...args], {
      env,
      encoding: 'utf8',
    });
    return { ...ended, said: ended.stdout + ended.stderr };
  };
  return { draw: (count = 3000) => run(`ids.push(...flake.nextIds(${count}))`), reset };
}

/** Uses each counter value up, years ahead, and sets the clock right. */
async function standAhead(machine, draw) {
  const ids = [];
  for (const ms of [0, YEARS_MS, YEARS_MS - 1e6, YEARS_MS - 2e6, YEARS_MS - 3e6]) {
    machine.clock = ms;
    ids.push(...(await draw()).ids);
  }
  machine.clock = 0;
  return ids;
}

test('a page that a wrong clock made useless is reset, and repeats nothing', {
  skip: missing(),
}, async () => {
  const machine = new Machine();
  try {
    const { draw, reset } = hostOf(machine);
    const ids = await standAhead(machine, draw);
    const { refusal, page } = await draw();
    assert.equal(refusal.code, 'ERR_SNOWFLAKE_CLOCK_BACK');
    assert.ok(refusal.message.includes(page), refusal.message);
    const [, ...command] = /snowdrift (reset .*) says what/.exec(refusal.message)[1].split(' ');
    const named = spawnSync(process.execPath, [MAIN, 'reset', ...command], {
      env: { ...process.env, ...machine.env },
      encoding: 'utf8',
    });
    assert.match(named.stdout, /were issued ahead. They are never issued again/);
    assert.equal(named.status, 2, 'without --yes');
    assert.match(reset('--yes').said, /Done[.].*\n.*never issued again/);
    ids.push(...(await draw()).ids);
    assert.match(reset().said, /There is nothing to reset/);
    // The clock comes to what was issued ahead.
    for (const ms of [YEARS_MS - 3e6 - 60_000, YEARS_MS - 3e6, YEARS_MS - 1e6, YEARS_MS]) {
      machine.clock = ms;
      const next = await draw();
      ids.push(...next.ids);
      if (ms > YEARS_MS - 3e6) assert.equal(next.refusal?.code, 'ERR_SNOWFLAKE_WINDOW');
    }
    assert.ok(ids.length >= 7 * 3000, `${ids.length} IDs`);
    assert.equal(countDuplicates(ids), 0);
  } finally {
    machine.remove();
  }
});

test('a page in use is not reset, and a node without a page has none to reset', {
  skip: missing(),
}, async () => {
  const machine = new Machine();
  try {
    const { reset } = hostOf(machine);
    const absent = reset();
    assert.deepEqual([absent.status, absent.stdout], [2, '']);
    assert.match(absent.stderr, /ERR_SNOWFLAKE_CONFIG: this host has no page of that node/);
    const script = `
      const { SnowFlake } = require(${JSON.stringify(entry)});
      new SnowFlake({ datacenterId: 1, workerId: 2 }).nextId();
      const { spawnSync } = require('node:child_process');
      const { LD_PRELOAD, ...env } = process.env;
      const args = ${JSON.stringify([MAIN, 'reset', ...NODE, '--yes'])};
      console.log(spawnSync(process.execPath, args, { env, encoding: 'utf8' }).stderr, process.pid);`;
    const { stdout } = await runScript(script, { env: machine.env });
    const [, pid] = /used by process (\d+)/.exec(stdout) ?? [];
    assert.ok(stdout.trim().endsWith(String(pid)), stdout);
  } finally {
    machine.remove();
  }
});
