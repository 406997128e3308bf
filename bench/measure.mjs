// How it is measured: all candidates in turn, again and again, so that what slows the machine for a
// while slows all of them; medians of the rounds; results kept, so that nothing is optimised away.

/** Small enough that keeping BigInts measures the candidate rather than the garbage collector. */
const CALLS = 20_000;
const kept = new Array(CALLS).fill(0n);
const buffer = Buffer.alloc(64);

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function burst(draw) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < CALLS; i++) kept[i] = draw();
  return Number(process.hrtime.bigint() - start) / CALLS;
}

/** As a database driver would: each ID is a string that is written into a Buffer. */
function written(draw) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < CALLS; i++) kept[i] = buffer.latin1Write(draw(), 0);
  return Number(process.hrtime.bigint() - start) / CALLS;
}

function lone(draw) {
  const turns = 5000;
  return new Promise((resolve) => {
    let done = 0;
    const start = process.hrtime.bigint();
    (function turn() {
      kept[done] = draw();
      if (++done < turns) setImmediate(turn);
      else resolve(Number(process.hrtime.bigint() - start) / turns);
    })();
  });
}

const KINDS = { burst, written, lone };

/** ns a call of each function of `draws`, by the median of the rounds. */
export async function measure(kind, draws, rounds) {
  const times = Object.fromEntries(Object.keys(draws).map((name) => [name, []]));
  const warmUp = Math.ceil(rounds / 5);
  for (let round = -warmUp; round < rounds; round++) {
    for (const [name, draw] of Object.entries(draws)) {
      const ns = await KINDS[kind](draw);
      if (round >= 0) times[name].push(ns);
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
}
