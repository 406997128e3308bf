// What TypeScript users may write, and what it must refuse. Compiled, never run.

import { subscribe } from 'node:diagnostics_channel';
import { mock } from 'node:test';
import { Param, type PipeTransform, Query } from '@nestjs/common';
import { metrics as otel } from '@opentelemetry/api';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { MongoClient } from 'mongodb';
import {
  type BigIntId,
  CachedSnowFlake,
  type CachedStats,
  type DiagnosticsEvents,
  type Id,
  type Layout,
  type LayoutName,
  type LeaseInfo,
  type LeaseStore,
  layouts,
  type NumberId,
  type ParsedId,
  type SlotHolder,
  SnowFlake,
  SnowFlakeError,
  type Stats,
} from 'snowdrift';
import {
  ceilingId,
  compareIds,
  compose,
  floorId,
  fromBase32,
  idRange,
  isBase32,
  isId,
  parse,
  toBase32,
} from 'snowdrift/id';
import { registerContract } from 'snowdrift/lease/contract';
import { dynamodb } from 'snowdrift/lease/dynamodb';
import { etcd } from 'snowdrift/lease/etcd';
import { gcs } from 'snowdrift/lease/gcs';
import { kubernetes } from 'snowdrift/lease/kubernetes';
import { memory } from 'snowdrift/lease/memory';
import { mongodb } from 'snowdrift/lease/mongodb';
import { postgres } from 'snowdrift/lease/postgres';
import { s3 } from 'snowdrift/lease/s3';
import { migration, sql } from 'snowdrift/lease/sql';
import { type Health, health, type Metric, metrics, prometheus } from 'snowdrift/monitoring';
import {
  ParsePublicIdPipe,
  ParseSnowFlakePipe,
  SnowFlakeHealthIndicator,
  SnowFlakeModule,
} from 'snowdrift/nestjs';
import { instrument } from 'snowdrift/opentelemetry';
import { type PrismaSnowFlakeExtension, withSnowFlake } from 'snowdrift/prisma';
import { type PublicIds, publicIds } from 'snowdrift/public';
import { idSchema } from 'snowdrift/schema';
import { PrimarySnowFlakeColumn, SnowFlakeColumn } from 'snowdrift/typeorm';
import { EntitySchema } from 'typeorm';

function is<T>(_value: T): void {}

const flake = new SnowFlake({ datacenterId: 1, workerId: 3, epoch: new Date(0) });
is<bigint>(flake.nextId());
is<string>(flake.nextIdString());
is<BigUint64Array>(flake.nextIds(2));
is<BigUint64Array>(flake.nextIds(new BigUint64Array(2)));
is<string[]>(SnowFlake.nextIdStrings(2));
is<Promise<bigint>>(flake.nextIdAsync());
is<Promise<bigint>>(SnowFlake.nextIdAsync());
is<bigint[]>([new Date()].map((time) => SnowFlake.floorId(time)));
is<ParsedId[]>(['1'].map(flake.parse));
mock.method(flake, 'nextIdString', () => '7').mock.restore();
mock.method(SnowFlake, 'nextId', () => 7n);
class WithOwnMethod extends SnowFlake {
  nextOrder() {
    return `order-${this.nextIdString()}`;
  }
}
is<string>(new WithOwnMethod().nextOrder());
class Overriding extends SnowFlake {
  // @ts-expect-error refused at run time, too
  nextIdString() {
    return '7';
  }
}
is<SnowFlake>(new Overriding());
is<ParsedId>(SnowFlake.parse('1', 'uid'));
is<string>(flake.parse(1n).toJSON().id);
is<string>(flake.nextIdBase32());
is<number>(SnowFlake.nextIdNumber());
is<ParsedId>(SnowFlake.parse(5, 'safe'));
is<bigint>(flake.compose({ timestamp: new Date(), sequence: 1 }));
is<bigint>(flake.compose(flake.parse(1n)));
is<bigint>(flake.floorId(Date.now()));
is<Stats>(flake.stats());
is<'host' | 'process'>(flake.stats().scope);
is<string | undefined>(flake.stats().page);
is<SnowFlake>(new SnowFlake({ workerId: 1, scope: 'host' }));
is<Promise<SnowFlake>>(SnowFlake.lease('file:///ids', { scope: 'process' }));
is<SnowFlake>(SnowFlake.configure({ layout: { ...layouts.uid, epoch: 0 }, workerId: 1 }));
is<bigint>(SnowFlake.default.nextId());
is<SnowFlake>(SnowFlake.use(flake));
is<Promise<SnowFlake | CachedSnowFlake>>(SnowFlake.ready());
const { ready, use } = SnowFlake;
ready().then(use);
is<Layout>(layouts['node' satisfies LayoutName]);

const cached = new CachedSnowFlake({
  workerId: 1,
  boostPower: 2,
  onRejectedPut: (stats) => is<number>(stats.ring.rejectedPuts),
  onRejectedTake: (refusal) => `${refusal.retryAfterMs}`,
});
is<CachedStats>(cached.stats());
is<CachedStats>(SnowFlake.use(cached).stats());
is<string>(cached.toUidString(cached.nextId(), { timeZone: 'Asia/Shanghai' }));
is<Promise<CachedSnowFlake>>(CachedSnowFlake.lease(memory(), { maxAge: 1, ttl: 5000 }));
is<CachedSnowFlake>(new CachedSnowFlake({ scheduleIntervalMs: 60_000 }));
// @ts-expect-error UidGenerator's is in seconds
new CachedSnowFlake({ scheduleInterval: 60 });
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
is<'taken' | 'reverted' | 'page' | 'restored' | undefined>(flake.lease?.lost);
is<Promise<SnowFlake>>(SnowFlake.lease('file:///ids', { datacenterId: 1 }));

is<Promise<SnowFlake>>(SnowFlake.lease('redis://a', { maxClockSkew: 5, callTimeout: 5 }));
is<Promise<SnowFlake>>(SnowFlake.lease(memory(), { datacenterId: 1, ttl: 5000 }));
is<LeaseStore>(etcd('http://a:2379', { namespace: 'orders' }));
is<LeaseStore>(mongodb(new MongoClient('mongodb://a'), { namespace: 'orders', database: 'ids' }));
is<LeaseStore>(mongodb(new MongoClient('mongodb://a').db()));
is<LeaseStore>(gcs({ name: 'ids', file() {}, getFiles() {} }, { prefix: 'app' }));
is<LeaseStore>(s3({ send: async () => ({}) }, { bucket: 'ids', prefix: 'app' }));
is<LeaseStore>(dynamodb({ send: async () => ({}) }, { namespace: 'orders', table: 'ids' }));
is<LeaseStore>(kubernetes());
is<LeaseStore>(
  kubernetes({ server: 'https://a', token: () => 'x', ca: 'x', kubernetesNamespace: 'ids' }),
);
const pool = { connect: async () => ({}), totalCount: 0 };
is<LeaseStore>(postgres(pool));
is<LeaseStore>(postgres(pool, { namespace: 'orders', schema: 'ids' }));
is<string>(migration('mysql'));
is<LeaseStore>(sql({ dialect: 'sqlite', query: () => [], placeholder: '?' }, { schema: 'ids' }));
// @ts-expect-error a dialect is needed
sql({ query: () => [] });
const own: LeaseStore = {
  name: 'own',
  read: async (key, { signal }) => {
    signal.throwIfAborted();
    return { record: { token: '0123456789abcdef', text: key } };
  },
  write: async (_key, record, before) =>
    before === undefined ? { isWritten: true } : { isWritten: false, found: record, now: 0 },
  now: async () => Date.now(),
  show: async ({ workerId }, holder) => {
    is<number | undefined>(workerId ?? holder?.pid);
  },
};
registerContract('own', (namespace) => ({ ...own, name: namespace }), { limit: 1000 });
is<Promise<SnowFlake>>(SnowFlake.lease(own));
is<Promise<SnowFlake>>(SnowFlake.lease(own, { workerId: 3 }));

async function scopes() {
  await using leased = await SnowFlake.lease('file:///ids', { datacenterId: 1 });
  leased.nextId();
}
void scopes;

{
  using scoped = new SnowFlake();
  scoped.nextId();
}

SnowFlakeModule.forRoot({ isDefault: false });
SnowFlakeModule.forRootAsync({
  isDefault: false,
  cached: true,
  useFactory: () => ({ workerId: 1 }),
});

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

  @PrimarySnowFlakeColumn()
  branded?: Id<'User'>;

  @PrimarySnowFlakeColumn()
  either: string | bigint | null = null;

  @PrimarySnowFlakeColumn()
  protected own!: string;

  // @ts-expect-error it holds a string
  @PrimarySnowFlakeColumn()
  whole = 0n;

  // @ts-expect-error a number holds no ID of 64 bits
  @PrimarySnowFlakeColumn()
  rounded?: number;

  @SnowFlakeColumn()
  teamId!: string;

  @SnowFlakeColumn({ nullable: true, name: 'boss_id' })
  bossId: Id<'User'> | null = null;

  // @ts-expect-error a number holds no ID of 64 bits
  @SnowFlakeColumn({ nullable: true })
  roundedId?: number | null;
}
void User;
// @ts-expect-error a foreign key generates no ID
SnowFlakeColumn({ nextIdString: () => flake.nextIdString() });
new EntitySchema<{ id: string; teamId: string | null }>({
  name: 'user',
  columns: {
    id: PrimarySnowFlakeColumn.forSchema({ name: 'user_id' }),
    teamId: SnowFlakeColumn.forSchema({ nullable: true, unique: true, default: null }),
  },
});
is<PropertyDecorator>(PrimarySnowFlakeColumn());

// @ts-expect-error a number is never an ID
flake.parse(1);
// @ts-expect-error nor is it one for the static function
SnowFlake.parse(1);
// @ts-expect-error a worker ID is a number
new SnowFlake({ workerId: '3' });
// @ts-expect-error a worker ID that is claimed is a number, too
SnowFlake.lease('redis://a', { workerId: '3' });
// @ts-expect-error an instance is used
SnowFlake.use({ datacenterId: 1 });
// @ts-expect-error options are for use() and configure()
SnowFlake.ready({ datacenterId: 1 });
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

is<ParsedId>(parse('1', 'twitter'));
is<ParsedId>(parse(1, layouts.safe));
// @ts-expect-error a number is no ID of a layout of 63 bits
parse(1);
// @ts-expect-error nor of this one
SnowFlake.parse(1, 'node');
is<bigint>(compose({ timestamp: new Date(), sequence: 1 }, 'safe'));
is<bigint>(floorId(new Date()) - ceilingId(0, flake.layout) - idRange(0, new Date()).last);
is<bigint>(fromBase32(toBase32(1n)));
is<boolean>(isId({}) || isId(5, 'safe') || isBase32('1'));

const userId = flake.nextIdString() as Id<'User'>;
const orderId = flake.nextId() as BigIntId<'Order'>;
is<string>(userId);
is<bigint>(orderId + 1n);
is<Id>(userId);
is<ParsedId>(parse(userId));
is<-1 | 0 | 1>(compareIds(userId, orderId));
is<string>(JSON.parse(JSON.stringify({ userId })).userId);
// @ts-expect-error any string
is<Id<'User'>>('5');
// @ts-expect-error of any kind
is<Id<'User'>>(userId as Id);
// @ts-expect-error of another kind
is<Id<'Order'>>(userId);
// @ts-expect-error in another form
is<Id<'Order'>>(orderId);

const userSchema = idSchema<'User'>({ layout: 'node', since: new Date(0) });
is<StandardSchemaV1<bigint | string, Id<'User'>>>(userSchema);
is<StandardSchemaV1.InferOutput<typeof userSchema>>(userId);
is<Id<'User'>>(userSchema.parse({}));
is<BigIntId<'User'>>(idSchema<'User'>({ as: 'bigint' }).parse('5'));
is<NumberId>(idSchema({ as: 'number', layout: 'safe' }).parse(5));
is<StandardSchemaV1<bigint | number | string, NumberId<'User'>>>(
  idSchema<'User'>({ as: 'number', layout: layouts.safe }),
);
// @ts-expect-error a layout of more than 53 bits
idSchema({ as: 'number', layout: 'node' });
// @ts-expect-error no layout
idSchema({ as: 'number' });
// @ts-expect-error no form of an ID
idSchema({ as: 'base32' });
const given: string = JSON.parse('"5"');
if (userSchema.is(given)) is<Id<'User'>>(given);
else is<string>(given);
const known: Id<'User'>[] = [given].filter(userSchema.is);
void known;
is<string[]>(['2', '10'].sort(compareIds));
is<(bigint | string)[]>([1n, '2'].sort(compareIds));

const orders = publicIds<'Order'>({ kind: 'order', key: process.env.PUBLIC_ID_KEY });
is<PublicIds<'Order'>>(orders);
is<string>(orders.encode(1n));
is<string[]>(['1', '2'].map(orders.encode));
is<BigIntId<'Order'>>(orders.decode('order_5ytq3e9vz8pkyy9aknkvrxppf0'));
is<Id<'Order'>>(orders.decodeString('order_5ytq3e9vz8pkyy9aknkvrxppf0'));
is<StandardSchemaV1<string, BigIntId<'Order'>>>(orders.schema());
is<StandardSchemaV1<string, BigIntId<'Order'>>>(orders.schema({ as: 'bigint' }));
is<StandardSchemaV1<string, Id<'Order'>>>(orders.schema({ as: 'string' }));
is<bigint>(publicIds({ kind: 'user', keys: ['new', 'old'], prefix: false }).decode('x'));
const anyText: unknown = 'x';
if (orders.is(anyText)) is<string>(anyText);
// @ts-expect-error a number may be rounded
orders.encode(5);
// @ts-expect-error no kind
publicIds({ key: 'x' });
// @ts-expect-error a key is a text
publicIds({ kind: 'order', key: new Uint8Array(32) });
// @ts-expect-error no prefix is false, not true
publicIds({ kind: 'order', key: 'x', prefix: true });
// @ts-expect-error the ID of a user
is<BigIntId<'User'>>(orders.decode('x'));
// @ts-expect-error no form
orders.schema({ as: 'number' });

Param('id', ParseSnowFlakePipe);
Param('id', new ParseSnowFlakePipe({ as: 'bigint', layout: 'node' }));
Query('after', new ParseSnowFlakePipe({ optional: true }));
Param('order', new ParsePublicIdPipe(publicIds({ kind: 'order' })));
Param('order', ParsePublicIdPipe.inject('ORDER_IDS', { as: 'bigint' }));
is<string>(new ParseSnowFlakePipe().transform('5'));
is<number>(new ParseSnowFlakePipe({ as: 'number', layout: 'safe' }).transform('5'));
is<PipeTransform<string, bigint>>(new ParseSnowFlakePipe({ as: 'bigint' }));
// @ts-expect-error it needs publicIds()
new ParsePublicIdPipe();
// @ts-expect-error a public ID has no number
new ParsePublicIdPipe(publicIds({ kind: 'order' }), { as: 'number' });

is<Health>(health());
is<'up' | 'down'>(health(flake).status);
is<number | undefined>(health().lease?.remainingMs);
is<Metric[]>(metrics(flake));
is<string>(prometheus());
is<() => void>(instrument());
instrument({ flake, meterProvider: otel.getMeterProvider() });
is<Promise<Record<'snowdrift', Health>>>(new SnowFlakeHealthIndicator().isHealthy());
is<Promise<Record<'ids', Health>>>(new SnowFlakeHealthIndicator().isHealthy('ids', flake));
// @ts-expect-error an instance is asked
health({ datacenterId: 1 });
