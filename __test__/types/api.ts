// What TypeScript users may write, and what it must refuse. Compiled, never run.

import type { Worker } from 'node:cluster';
import { subscribe } from 'node:diagnostics_channel';
import {
  CachedSnowFlake,
  type CachedStats,
  type DiagnosticsEvents,
  type Layout,
  type LayoutName,
  type LeaseInfo,
  type LeaseStore,
  layouts,
  type ParsedId,
  type SlotHolder,
  SnowFlake,
  SnowFlakeError,
  type Stats,
} from 'snowdrift';
import { type Death, forkWorkers, type Workers } from 'snowdrift/cluster';
import { etcd } from 'snowdrift/lease/etcd';
import { memory } from 'snowdrift/lease/memory';
import { postgres, sql } from 'snowdrift/lease/postgres';
import { type PrismaSnowFlakeExtension, withSnowFlake } from 'snowdrift/prisma';
import { PrimarySnowFlakeColumn } from 'snowdrift/typeorm';

function is<T>(_value: T): void {}

const flake = new SnowFlake({ datacenterId: 1, workerId: 3, epoch: new Date(0) });
is<bigint>(flake.nextId());
is<string>(flake.nextIdString());
is<BigUint64Array>(flake.nextIds(2));
is<string[]>(SnowFlake.nextIdStrings(2));
is<Promise<bigint>>(flake.nextIdAsync());
is<ParsedId>(SnowFlake.parse('1', 'uid'));
is<string>(flake.parse(1n).toJSON().id);
is<bigint>(flake.compose({ timestamp: new Date(), sequence: 1 }));
is<bigint>(flake.compose(flake.parse(1n)));
is<bigint>(flake.floorId(Date.now()));
is<Stats>(flake.stats());
is<'host' | 'process'>(flake.stats().scope);
is<string | undefined>(flake.stats().page);
is<SnowFlake>(new SnowFlake({ workerId: 1, scope: 'host' }));
is<Promise<SnowFlake>>(SnowFlake.lease('file:///ids', { scope: 'process' }));
is<SnowFlake>(SnowFlake.configure({ layout: { ...layouts.uid, epoch: 0 }, workerId: 1 }));
is<SnowFlake>(SnowFlake.default);
is<Layout>(layouts['node' satisfies LayoutName]);

const cached = new CachedSnowFlake({
  workerId: 1,
  boostPower: 2,
  onRejectedPut: (stats) => is<number>(stats.ring.rejectedPuts),
  onRejectedTake: (refusal) => `${refusal.retryAfterMs}`,
});
is<CachedStats>(cached.stats());
is<string>(cached.toUidString(cached.nextId(), { timeZone: 'Asia/Shanghai' }));
is<Promise<CachedSnowFlake>>(CachedSnowFlake.lease(memory(), { maxAge: 1, ttl: 5000 }));
// @ts-expect-error ticks are counted
new CachedSnowFlake({ clock: Date.now });

const { nextId } = flake;
const ids: bigint[] = Array.from({ length: 3 }, nextId);
const { nextIdString } = SnowFlake;
const strings: string[] = [nextIdString(), ...ids.map(String)];
void strings;

is<SnowFlake>(new SnowFlake({ datacenterId: 1, workerId: 3, state: '/var/lib/app/ids' }));
is<SnowFlake>(SnowFlake.configure({ lease: new URL('file:///ids'), ttl: 5000, waitForSlot: 100 }));
is<LeaseInfo | null>(flake.lease);
is<Promise<SnowFlake>>(SnowFlake.lease('file:///ids', { datacenterId: 1 }));
is<Workers>(forkWorkers({ count: 2, datacenterId: 1, state: '/ids' }));
const workers = forkWorkers({ datacenterId: 1 });
workers.on('died', (death) => is<Death>(death));
workers.on('fork', (worker, workerId) => {
  is<Worker>(worker);
  is<number>(workerId);
});
is<Promise<void>>(workers.stop('SIGINT'));

is<Promise<SnowFlake>>(SnowFlake.lease('redis://a', { maxClockSkew: 5, callTimeout: 5 }));
is<Promise<SnowFlake>>(SnowFlake.lease(memory(), { datacenterId: 1, ttl: 5000 }));
is<LeaseStore>(etcd('http://a:2379', { namespace: 'orders' }));
is<LeaseStore>(postgres({ query: async () => ({ rows: [] }) }));
is<string>(sql('mysql'));
const own: LeaseStore = {
  name: 'own',
  open: async ({ signal: _, ...namespace }) => namespace,
  raise: async ({ namespace: id, floor = -1 }) => {
    return { id, layout: '', ttl: 0, maxClockSkew: 0, maxAhead: 0, floor };
  },
  acquire: async ({ workerIds }) => ({ workerId: workerIds - 1, floor: -1, expires: null }),
  renew: async ({ owner }) =>
    owner === '' ? { isHeld: false, lost: 'taken' } : { isHeld: true, expires: 0, now: 0 },
  release: async () => {},
  now: async () => Date.now(),
};
is<Promise<SnowFlake>>(SnowFlake.lease(own));

async function scopes() {
  await using leased = await SnowFlake.lease('file:///ids', { datacenterId: 1 });
  leased.nextId();
}
void scopes;

{
  using scoped = new SnowFlake();
  scoped.nextId();
}

is<PrismaSnowFlakeExtension>(withSnowFlake());
withSnowFlake({ flake: SnowFlake, models: ['Author'] });
withSnowFlake({
  flake: { nextId: () => flake.nextId(), nextIdString: () => flake.nextIdString() },
});

try {
  flake.nextId();
} catch (error) {
  if (error instanceof SnowFlakeError && error.code === 'ERR_SNOWFLAKE_EXHAUSTED') {
    is<number | undefined>(error.retryAfterMs);
    is<SlotHolder[] | undefined>(error.holders);
  }
}

class User {
  @PrimarySnowFlakeColumn()
  id = '';

  @PrimarySnowFlakeColumn({ name: 'other_id', nextIdString: () => flake.nextIdString() })
  otherId = '';
}
void User;

// @ts-expect-error a number is never an ID
flake.parse(1);
// @ts-expect-error nor is it one for the static function
SnowFlake.parse(1);
// @ts-expect-error a worker ID is a number
new SnowFlake({ workerId: '3' });
// @ts-expect-error a lease takes any worker ID
SnowFlake.lease('file:///ids', { workerId: 3 });
// @ts-expect-error workers have a datacenter
forkWorkers({ count: 2 });
// @ts-expect-error no such policy
new SnowFlake({ clockBack: 'ignore' });
// @ts-expect-error no such scope
new SnowFlake({ scope: 'machine' });
// @ts-expect-error no such option
new SnowFlake({ datacenterID: 1 });
// @ts-expect-error models are named
withSnowFlake({ models: 'Author' });
// @ts-expect-error no such layout
SnowFlake.parse(1n, 'mastodon');
// @ts-expect-error layouts cannot be changed
layouts.node.epoch = 0;
// @ts-expect-error nor can what an instance is
flake.workerId = 4;
// @ts-expect-error no such code
is<SnowFlakeError['code']>('ERR_SNOWFLAKE_OOPS');

// What a subscriber to a channel is given.
export function onMessage<Name extends keyof DiagnosticsEvents>(
  name: Name,
  told: (message: DiagnosticsEvents[Name]) => void,
): void {
  subscribe(name, (message) => told(message as DiagnosticsEvents[Name]));
}
onMessage('snowdrift:wait', ({ reason, waitedMs }) => `${reason satisfies string} ${waitedMs}`);
onMessage('snowdrift:lease-lost', ({ slot, failure }) => slot.workerId + (failure?.length ?? 0));
