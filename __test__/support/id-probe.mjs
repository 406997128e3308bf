// What snowdrift/id makes of many IDs, as lines of text: the same in every JavaScript.

/** mulberry32: whole numbers below 2^32 from a seed. */
function seeded(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
}

function outcome(call) {
  try {
    return call();
  } catch ({ code, message }) {
    return `${code} ${message}`;
  }
}

/** @param id the exports of snowdrift/id */
export function probe(id) {
  const random = seeded(17);
  const layouts = [
    ...Object.keys(id.layouts),
    { ...id.layouts.node, datacenterBits: 0, workerBits: 8, epoch: -1 },
    { ...id.layouts.uid, timestampBits: 9, workerBits: 1, sequenceBits: 53, tickMs: 86_400_000 },
    { ...id.layouts.uid, timestampBits: 62, workerBits: 0, sequenceBits: 1, tickMs: 1 },
    { ...id.layouts.node, sequenceBits: 13 },
  ];
  const lines = [];
  let last = 0n;
  for (let n = 0; n < 2000; n++) {
    const layout = layouts[n % layouts.length];
    const value =
      ((BigInt(random() >>> 1) << 32n) | BigInt(random())) >> BigInt(n % 3 ? 0 : random() % 63);
    const time = 1.7e12 + random();
    const line = [
      outcome(() => JSON.stringify(id.parse(String(value), layout))),
      outcome(() => id.compose(id.parse(value, layout), layout)),
      outcome(() => id.floorId(time, layout)),
      outcome(() => id.ceilingId(new Date(time), layout)),
      outcome(() => Object.values(id.idRange(time, time + random(), layout))),
      outcome(() => id.fromBase32(id.toBase32(value))),
      outcome(() => id.toBase32(value)),
      outcome(() => id.compareIds(id.toBase32(value), String(last))),
      outcome(() => [id.isId(value, layout), id.isId(Number(value), layout), id.isBase32(value)]),
    ];
    lines.push(line.map(String).join(' | '));
    last = value;
  }
  for (const wrong of ['', '007', '٣', '1e3', 5, -1n, null, {}, Symbol('s'), '0O00000000000']) {
    lines.push(
      outcome(() => id.parse(wrong)),
      outcome(() => id.fromBase32(wrong)),
    );
  }
  return lines;
}
