'use strict';
// A clock that stood years ahead, on a node that no store records: the refusal names the page and the
// command, and a reset repeats nothing, since the page remembers where the jump landed.

const assert = require('node:assert/strict');
const { gate } = require('../support/amount.js');
const { MAIN, endOf, start } = require('../support/cli.js');
const { onMachine } = require('../support/machine.js');
const { countDuplicates, entry, runScript } = require('../support/support.js');

const YEARS_MS = 3 * 365 * 86_400_000;
const NODE = ['--datacenter-id', '1', '--worker-id', '2'];

/** A machine whose processes end after they have drawn. */
function hostOf(machine) {
  const drawn = async (draw) => {
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
  const reset = (...args) => endOf(start(['reset', ...args], { env: machine.env }));
  return {
    draw: (count = 3000) => drawn(`ids.push(...flake.nextIds(${count}))`),
    reset: (...args) => reset(...NODE, ...args),
    resetAsSaid: reset,
  };
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

onMachine(
  'a page that a wrong clock made useless is reset, and repeats nothing',
  async ({ machine }) => {
    const { draw, reset, resetAsSaid } = hostOf(machine);
    const ids = await standAhead(machine, draw);
    const { refusal, page } = await draw();
    assert.equal(refusal.code, 'ERR_SNOWFLAKE_CLOCK_BACK');
    assert.ok(refusal.message.includes(page), refusal.message);
    const [, ...command] = /snowdrift (reset .*) shows the risk/
      .exec(refusal.message)[1]
      .split(' ');
    const named = await resetAsSaid(...command);
    assert.match(named.stdout, /were issued ahead. They are never issued again/);
    assert.equal(named.code, 2, 'without --yes');
    assert.match((await reset('--yes')).said, /Done[.].*\n.*never issued again/);
    ids.push(...(await draw()).ids);
    assert.match((await reset()).said, /There is nothing to reset/);
    // The clock comes to what was issued ahead.
    for (const ms of [YEARS_MS - 3e6 - 600_000, YEARS_MS - 3e6, YEARS_MS - 1e6, YEARS_MS]) {
      machine.clock = ms;
      const next = await draw();
      ids.push(...next.ids);
      if (ms > YEARS_MS - 3e6) assert.equal(next.refusal?.code, 'ERR_SNOWFLAKE_WINDOW');
    }
    assert.ok(ids.length >= 7 * 3000, `${ids.length} IDs`);
    assert.equal(countDuplicates(ids), 0);
  },
  { skip: gate },
);

onMachine(
  'a page in use is not reset, and a node without a page has none to reset',
  async ({ machine }) => {
    const { reset } = hostOf(machine);
    const absent = await reset();
    assert.deepEqual([absent.code, absent.stdout], [2, '']);
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
  },
);
