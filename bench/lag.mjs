// The lag of an ID's time behind its draw: in steady loops of any rate, after a burst, and after some draws and
// a pause within one turn.

import { snowdrift, wide } from './candidates.mjs';

const { SnowFlake } = snowdrift;
const GAPS_NS = [0, 100, 300, 1000, 3000, 10_000, 30_000, 100_000];

/** Draws an ID each `gapNs` in one turn. Returns the share of IDs that lag by at most 1 ms. */
function steady(flake, gapNs, ms) {
  const end = Date.now() + ms;
  let drawn = 0;
  let lagging = 0;
  let due = process.hrtime.bigint();
  for (;;) {
    const id = flake.nextId();
    const now = Date.now();
    if (now >= end) return 1 - lagging / drawn;
    drawn++;
    // 22 bits are below the timestamp.
    if (now - (Number(id >> 22n) + wide.epoch) > 1) lagging++;
    due += BigInt(gapNs);
    while (gapNs > 0 && process.hrtime.bigint() < due);
    // Excludes pauses of the machine.
    if (now - Number(id >> 22n) - wide.epoch > 3) due = process.hrtime.bigint();
  }
}

function spin(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** The IDs that lag after a burst of `draws` and a pause of 20 ms. */
async function afterPause(flake, draws) {
  await new Promise(setImmediate);
  for (let n = 0; n < draws; n++) flake.nextId();
  spin(20);
  const now = Date.now();
  let lagging = 0;
  while (flake.parse(flake.nextId()).timestamp < now) lagging++;
  return lagging;
}

export async function lags(ms) {
  const flake = new SnowFlake({ layout: wide, datacenterId: 1, workerId: 1 });
  const shares = {};
  for (const gap of GAPS_NS) {
    await new Promise(setImmediate);
    shares[gap] = steady(flake, gap, ms);
  }
  const pauses = {};
  for (const draws of [1, 3, 16, 100, 1000, 100_000])
    pauses[draws] = await afterPause(flake, draws);
  flake.close();
  return { shares, worst: Math.min(...Object.values(shares)), pauses };
}
