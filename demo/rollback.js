'use strict';
// A clock that goes back under a process that draws IDs.

const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { SnowFlake, layouts } = require('snowdrift');

const { countDuplicates } = require('./compare.js');
const { number, printTable, printText } = require('./output.js');

const IDS = 10_000;
const NODE = { datacenterId: 1, workerId: 4 };
/** A stage takes some ms, so that the clock is waited for, unless it is a minute back. */
const MAX_WAIT = 30_000;
const AGAIN = 'at the first ID again';
const STAGES = ['right', AGAIN, AGAIN, AGAIN, AGAIN, 'a minute before it', 'right'];

/** Draws IDs one by one, until one is refused. */
function draw(flake) {
  const ids = [];
  try {
    while (ids.length < IDS) ids.push(flake.nextId());
  } catch (refusal) {
    if (refusal.code !== 'ERR_SNOWFLAKE_CLOCK_BACK') throw refusal;
    return { ids, refusal };
  }
  return { ids };
}

/** Runs `work` with listeners of its own, in place of those that print the process's warnings. */
async function listening({ onWarning, onWait }, work) {
  const others = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', onWarning);
  subscribe('snowdrift:wait', onWait);
  try {
    await work();
  } finally {
    unsubscribe('snowdrift:wait', onWait);
    process.off('warning', onWarning);
    for (const other of others) process.on('warning', other);
  }
}

async function run() {
  const counters = 2 ** layouts.node.clockBackBits;
  printText('A clock that goes back while a process generates IDs.', '3. ');
  printText(
    `It goes back to the first ID's time, where all sequence numbers are taken. (It is the option \`clock\`, which leaves the machine's own alone.) The layout's clock-back counter has ${counters} values, one for each run of that time.`,
  );
  console.log();
  let back = 0;
  let start;
  /** A stage starts with its first reading, however late that is. */
  const clock = () => {
    const now = Date.now();
    if (start !== undefined) back = now - start;
    start = undefined;
    return now - back;
  };
  const flake = new SnowFlake({ ...NODE, clock, maxWait: MAX_WAIT });
  const all = [];
  const rows = [];
  const warnings = [];
  const refusals = [];
  let waitedMs = 0;
  const onWarning = ({ code, message }) => warnings.push(`${code}: ${message}`);
  const onWait = (wait) => {
    if (wait.reason === 'clock-back') waitedMs += wait.waitedMs;
  };
  await listening({ onWarning, onWait }, async () => {
    for (const stage of STAGES) {
      if (stage === 'right') back = 0;
      else start = flake.parse(all[0]).timestamp - (stage === AGAIN ? 0 : 60_000);
      waitedMs = 0;
      const { ids, refusal } = draw(flake);
      rows.push({
        'the clock is': stage,
        IDs: number(ids.length),
        counter: ids.length > 0 ? flake.parse(ids[0]).clockBack : '-',
        'waited ms': number(waitedMs),
        '': refusal === undefined ? 'continues' : 'refuses',
      });
      all.push(...ids);
      if (refusal !== undefined) refusals.push(`${refusal.code}: ${refusal.message}`);
      // Warnings are emitted in a later turn.
      await new Promise(setImmediate);
    }
  });
  flake.close();
  printTable(rows);
  console.log();
  printText(`The first of ${warnings.length} warnings: ${warnings[0]}`);
  printText(`The refusal: ${refusals.join(' ')}`);
  console.log();
  const duplicates = countDuplicates(BigUint64Array.from(all));
  printText(`Duplicates among all ${number(all.length)} IDs: ${number(duplicates)}`);
  // The minute is too much to wait for.
  return duplicates === 0 && refusals.length === 1 && all.length === IDS * (STAGES.length - 1);
}

module.exports = { run };
