'use strict';
// What an instance costs: opened and closed, kept, and of a node that nobody uses yet. A process of its
// own; prints JSON. Run with --expose-gc.

const { mkdtempSync, rmSync } = require('node:fs');

if (process.platform === 'linux') {
  process.env.SNOWDRIFT_SHARED = mkdtempSync(`/dev/shm/snowdrift-bench-${process.pid}-`);
  process.on('exit', () => rmSync(process.env.SNOWDRIFT_SHARED, { recursive: true }));
}
const { SnowFlake, layouts } = require('..');

const COUNT = 10_000;
/** Of fewer, what the heap grows by at once would pass for theirs. */
const NODES = 4000;

/** In a turn each, as requests or tests would: finalizers run between turns. */
async function costs(count, act) {
  for (let i = 0; i < count / 10; i++) act(i);
  await settled();
  const before = process.memoryUsage.rss();
  const times = [];
  for (let i = 0; i < count; i++) {
    const start = process.hrtime.bigint();
    act(i);
    times.push(Number(process.hrtime.bigint() - start) / 1000);
    if (i % 100 === 0) await new Promise(setImmediate);
  }
  await settled();
  const bytes = (process.memoryUsage.rss() - before) / count;
  times.sort((a, b) => a - b);
  return { us: times[count / 2], bytes: Math.max(bytes, 0) };
}

async function settled() {
  for (let n = 0; n < 4; n++) {
    global.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

(async () => {
  const node = { datacenterId: 1, workerId: 1 };
  const first = new SnowFlake(node);
  const again = await costs(COUNT, () => new SnowFlake(node).close());
  const open = [];
  const kept = await costs(COUNT, () => open.push(new SnowFlake(node)));
  for (const flake of open) flake.close();
  const layout = { ...layouts.node, datacenterBits: 0, workerBits: 13, sequenceBits: 7 };
  let nodes = 0;
  const fresh = await costs(NODES, () => open.push(new SnowFlake({ layout, workerId: nodes++ })));
  first.close();
  console.log(JSON.stringify({ again, kept, fresh }));
  process.exit();
})();
