// The method: all candidates in turn, in many rounds, so that a slow phase of the machine affects all of them;
// medians of the rounds; results are kept, so that no call is optimised away.

/** Small enough that keeping BigInts measures the candidate rather than the garbage collector. */
const CALLS = 20_000;
/** A slow candidate is called less often. */
const MOST_NS = 20e6;
const kept = new Array(CALLS).fill(0n);
const buffer = Buffer.alloc(64);

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function burst(draw, calls) {
  const start = process.hrtime.bigint();
  for (let left = calls; left > 0; left -= CALLS) {
    const most = Math.min(left, CALLS);
    for (let i = 0; i < most; i++) kept[i] = draw();
  }
  return Number(process.hrtime.bigint() - start) / calls;
}

/** As a database driver does: writes each ID as a string into a Buffer. */
function written(draw, calls) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < calls; i++) kept[i] = buffer.latin1Write(draw(), 0);
  return Number(process.hrtime.bigint() - start) / calls;
}

/** How often a round calls it: `most` times, or for 20 ms. */
export function callsOf(draw, most) {
  const ns = burst(draw, 200);
  return Math.round(Math.min(most, Math.max(200, MOST_NS / ns)));
}

const KINDS = { burst, written };

/** ns a call of each function of `draws`, by the median of the rounds. A function may have a number of `calls`. */
export function measure(kind, draws, rounds) {
  const times = Object.fromEntries(Object.keys(draws).map((name) => [name, []]));
  const warmUp = Math.ceil(rounds / 5);
  const calls = {};
  const order = Object.entries(draws);
  for (const [name, draw] of order) calls[name] = draw.calls ?? callsOf(draw, CALLS);
  for (let round = -warmUp; round < rounds; round++) {
    // Each is the first one in turn: the garbage of the one before may be collected in its time.
    order.push(order.shift());
    for (const [name, draw] of order) {
      const ns = KINDS[kind](draw, calls[name]);
      if (round >= 0) times[name].push(ns);
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
}
