// The method: all candidates in one run, by rounds, so that a slow phase of the machine affects all of them; medians of
// the rounds; results are kept, so that no call is optimised away.

/** Small enough that keeping BigInts measures the candidate rather than the garbage collector. */
export const CALLS = 20_000;
/** A slow candidate is called less often. */
const MOST_NS = 20e6;
const kept = new Array(CALLS).fill(0n);
const buffer = Buffer.alloc(64);

const ns = () => Number(process.hrtime.bigint());

/** CPU time in ns. A turn is long against a call, and CPU time excludes other processes. */
function cpuNs() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** A copy in random order. In a fixed one, a candidate always pays for the garbage of the same other one. */
export function shuffled(items) {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [all[i], all[j]] = [all[j], all[i]];
  }
  return all;
}

/** By name of `candidates`: the median of what `measure(candidate, name)` returns in each of the rounds. */
export async function medians(candidates, rounds, measure) {
  const values = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
  // A fifth more, which warm up.
  for (let round = -Math.ceil(rounds / 5); round < rounds; round++) {
    for (const [name, candidate] of shuffled(Object.entries(candidates))) {
      const value = await measure(candidate, name);
      if (round >= 0) values[name].push(value);
    }
  }
  return Object.fromEntries(Object.entries(values).map(([name, all]) => [name, median(all)]));
}

/** Time a call, in ns. */
const KINDS = {
  /** A loop whose results stay, as those of an application. */
  burst(call, calls) {
    const start = ns();
    for (let left = calls; left > 0; left -= CALLS) {
      const most = Math.min(left, CALLS);
      for (let i = 0; i < most; i++) kept[i] = call();
    }
    return (ns() - start) / calls;
  },
  /** A loop of which few results stay. `call` takes its number. */
  loop(call, calls) {
    const start = ns();
    for (let i = 0; i < calls; i++) kept[i & 15] = call(i);
    return (ns() - start) / calls;
  },
  /** As a database driver does: writes each ID as a string into a Buffer. */
  written(call, calls) {
    const start = ns();
    for (let i = 0; i < calls; i++) kept[i & 15] = buffer.latin1Write(call(), 0);
    return (ns() - start) / calls;
  },
  /** One call per callback. */
  callback(call, calls) {
    return new Promise((resolve) => {
      let done = 0;
      const start = cpuNs();
      (function turn() {
        kept[done & 15] = call();
        if (++done < calls) setImmediate(turn);
        else resolve((cpuNs() - start) / calls);
      })();
    });
  },
  /** One call after each await. */
  async awaited(call, calls) {
    const start = cpuNs();
    for (let i = 0; i < calls; i++) {
      await undefined;
      kept[i & 15] = call();
    }
    return (cpuNs() - start) / calls;
  },
  /** Calls that take long. */
  async roundTrip(call, calls) {
    const start = ns();
    for (let i = 0; i < calls; i++) await call();
    return (ns() - start) / calls;
  },
};

/** By name, how often a round makes each call: 20,000 times, or for 20 ms. A function may have a number of `calls`. */
function amounts(calls) {
  const amountOf = (call) => Math.min(CALLS, Math.max(200, MOST_NS / KINDS.loop(call, 200)));
  return Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [name, call.calls ?? Math.round(amountOf(call))]),
  );
}

/** ns a call of each function. */
export function measure(kind, calls, rounds) {
  const amount = amounts(calls);
  return medians(calls, rounds, (call, name) => KINDS[kind](call, amount[name]));
}

/** The same, without the turn itself: without the time of the empty turns before and after it. */
export async function measureWithoutTurn(kind, calls, rounds) {
  const amount = amounts(calls);
  const emptyTurns = () => KINDS[kind](() => 1n, CALLS);
  let before = await emptyTurns();
  return medians(calls, rounds, async (call, name) => {
    const time = await KINDS[kind](call, amount[name]);
    const after = await emptyTurns();
    const more = time - (before + after) / 2;
    before = after;
    return more;
  });
}
