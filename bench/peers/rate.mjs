// How fast each kind of ID is drawn: in a loop, and one a turn of the event loop. Each as its README shows, in turns
// with all others.

import { withoutTurn } from '../calls.mjs';
import { median } from '../measure.mjs';
import kinds from './kinds.cjs';

const { KINDS, open } = kinds;
/** Short, so that most are not interrupted. */
const BURST_MS = 10;
/** In each round. */
const BURSTS = 4;
const kept = new Array(64);

/** IDs a second, in a loop of some ms that begins with a ms: what that holds is then counted as a whole. */
async function burst(draw, isAsync) {
  for (const before = Date.now(); Date.now() === before; );
  const start = performance.now();
  let count = 0;
  do {
    for (let i = 0; i < 64; i++) kept[i] = isAsync ? await draw() : draw();
    count += 64;
  } while (performance.now() - start < BURST_MS);
  return (count / (performance.now() - start)) * 1000;
}

/** By kind: IDs a second in a loop, and ns for one ID in a turn of its own. */
export async function rates(names, rounds) {
  const draws = {};
  for (const kind of names) draws[kind] = await open(kind);
  const loops = Object.fromEntries(names.map((kind) => [kind, []]));
  for (let round = -2; round < rounds; round++) {
    for (const kind of names) {
      for (let n = 0; n < BURSTS; n++) {
        const rate = await burst(draws[kind], KINDS[kind].isAsync);
        if (round >= 0) loops[kind].push(rate);
      }
    }
  }
  const calls = {};
  for (const [kind, draw] of Object.entries(draws)) {
    // Some take arguments; these get none.
    if (!KINDS[kind].isAsync) calls[kind] = () => draw();
  }
  const turns = await withoutTurn('lone', calls, rounds);
  return Object.fromEntries(
    names.map((kind) => {
      const perSecond = median(loops[kind]);
      // Of one that is awaited, a turn is the round trip.
      return [kind, { perSecond, turnNs: turns[kind] ?? 1e9 / perSecond }];
    }),
  );
}
