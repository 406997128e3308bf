'use strict';
// Uses the package in all ways that decide on IDs, with what is refused. Prints nothing.

const { randomBytes } = require('node:crypto');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');

const { CachedSnowFlake, SnowFlake } = require('../../..');
const id = require('../../../js/id.js');
const { SnowFlakeModule } = require('../../../js/nestjs.js');
const { idSchema } = require('../../../js/schema.js');
const { publicIds } = require('../../../js/public.js');
const { memory } = require('../../../js/stores/memory.js');

const node = { datacenterId: 1, workerId: 1 };

function refused(call) {
  try {
    call();
  } catch (error) {
    return error.message;
  }
  throw new Error('it was not refused');
}

/** Draws in all forms, then closes. */
async function use(flake) {
  const drawn = flake.nextId();
  flake.nextIds(3);
  flake.nextIds(new BigUint64Array(3));
  flake.nextIdStrings(3);
  flake.nextIdString();
  flake.nextIdBase32();
  await flake.nextIdAsync();
  flake.compose(flake.parse(drawn));
  flake.floorId(Date.now());
  flake.stats();
  refused(() => flake.parse('x'));
  refused(() => flake.nextIds(-1));
  await flake.close();
  refused(flake.nextId);
}

async function main() {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-scene-'));
  const [state, leases] = ['state', 'leases'].map((name) => join(directory, name));
  for (const scope of ['auto', 'host', 'process']) await use(new SnowFlake({ ...node, scope }));
  for (const layout of ['twitter', 'discord']) await use(new SnowFlake({ ...node, layout }));
  await use(new SnowFlake({ ...node, layout: { ...id.layouts.node, sequenceBits: 11 } }));
  await use(new SnowFlake({ workerId: 3, layout: 'safe' }));
  await use(new SnowFlake({ ...node, clock: Date.now }));
  await use(new CachedSnowFlake({ ...node }));
  await use(new SnowFlake({ ...node, workerId: 2, state }));
  await use(await SnowFlake.lease(pathToFileURL(leases).href, { datacenterId: 1 }));
  const store = memory();
  await use(await SnowFlake.lease(store, { datacenterId: 1, ttl: 1000 }));
  await use(await SnowFlake.lease(store, { datacenterId: 1, workerId: 5, ttl: 1000 }));
  await use(await CachedSnowFlake.lease(store, { datacenterId: 1, ttl: 1000 }));
  await use(SnowFlake.configure({ ...node, workerId: 6 }));
  await use(await SnowFlake.ready());
  const { providers } = SnowFlakeModule.forRoot({ ...node, workerId: 7, isDefault: false });
  await use(await providers[1].useFactory(providers[0].useValue));

  // A clock that stands, goes back, and is refused.
  let now = Date.now();
  const flake = new SnowFlake({ ...node, clock: () => now, maxWait: 0 });
  flake.nextIds(4096);
  refused(flake.nextId);
  for (let back = 0; back < 3; back++) {
    now -= 1000;
    flake.nextId();
  }
  now -= 1000;
  refused(flake.nextId);
  refused(() => new SnowFlake({ ...node, workerId: 99 }));
  refused(() => new SnowFlake({ ...node, layout: 'none' }));
  refused(() => new SnowFlake({ ...node, worker: 1 }));
  refused(() => new SnowFlake({ ...node, epoch: Date.now() }));
  refused(() => SnowFlake.configure({ ...node, state: 'http://x' }));

  const drawn = new SnowFlake(node).nextIdString();
  id.parse(drawn);
  id.compose({ timestamp: Date.now(), ...node });
  refused(() => id.parse('x'));
  idSchema({ layout: 'node' })['~standard'].validate(drawn);
  const orders = publicIds({ kind: 'order', key: randomBytes(32).toString('hex') });
  orders.decode(orders.encode(BigInt(drawn)));
  refused(() => orders.decode('order_x'));
  rmSync(directory, { recursive: true });
}

main().catch((failure) => {
  console.error(failure);
  process.exitCode = 1;
});
