'use strict';
// A clock that rolls back under one generator. The option `clock` leaves the machine's own alone.

const { SnowFlake } = require('snowdrift');

const { countDuplicates, number, printTable } = require('./output.js');

const MINUTE = 60_000;
const IDS_A_SECOND = 1000;
const STAGES = [
  'shows the right time',
  ...['first', 'second', 'third', 'fourth'].map((nth) => `rolls back, ${nth} time`),
  'shows the right time',
];

/** @returns the number of duplicates */
async function show() {
  console.log('\n3. A clock that rolls back by a minute, four times, to the time of the first ID.');
  console.log('   Each ID has a clock-back counter of 2 bits: three rollbacks need no wait.\n');
  // Each rollback is a warning.
  process.removeAllListeners('warning');
  let warning;
  process.on('warning', ({ message }) => {
    warning ??= message;
  });
  const first = Date.now();
  let now;
  const flake = new SnowFlake({ datacenterId: 1, workerId: 4, clock: () => now });
  const [all, rows] = [[], []];
  let refusal;
  for (const [n, stage] of STAGES.entries()) {
    const start = n < STAGES.length - 1 ? first : first + MINUTE;
    const ids = [];
    let answer = 'continues';
    try {
      for (now = start; now < start + MINUTE; now += 1000) {
        for (let i = 0; i < IDS_A_SECOND; i++) ids.push(flake.nextId());
      }
    } catch (error) {
      if (error.code !== 'ERR_SNOWFLAKE_CLOCK_BACK') throw error;
      [answer, refusal] = ['refuses', error];
    }
    all.push(...ids);
    const counter = ids.length > 0 ? flake.parse(ids[0]).clockBack : '-';
    rows.push({ 'the clock': stage, snowdrift: answer, IDs: number(ids.length), counter });
  }
  flake.close();
  if (refusal === undefined) throw new Error('no rollback was refused');
  printTable(rows);
  // Warnings come in a later turn.
  await new Promise(setImmediate);
  console.log(`\n   The first warning: ${warning}`);
  console.log(`   The refusal: ${refusal.code}: ${refusal.message}`);
  const duplicates = countDuplicates(BigUint64Array.from(all));
  console.log(`\n   Duplicates among all ${number(all.length)} IDs: ${number(duplicates)}`);
  return duplicates;
}

module.exports = { show };
