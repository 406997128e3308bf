'use strict';
// Whatever calls the application back may be called again from there: each callback here draws from the
// instance that called it, in every way, nested. All IDs are compared, in the order of hand-out.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { afterEach, test } = require('node:test');

const { isQuick, isStorms, storm } = require('../support/amount.js');
const {
  CachedSnowFlake,
  SnowFlake,
  layouts,
  rejects,
  seeded,
  slow,
  standing,
  until,
} = require('../support/support.js');
const { faulty } = require('../support/lease/faulty.js');
const { limitWait } = require('../support/limit-wait.js');

const ROUNDS = 200;
const DEEPEST = 3;
/** Four IDs a ms, so that calls often wait. */
const narrow = { ...layouts.node, sequenceBits: 2 };
/** IDs that start with few digits, and cross lengths: strings are spelled in parts. */
const recent = (now) => ({ ...narrow, epoch: now - 5 });

/** Draws in every way, and notes what was handed out. */
class Drawer {
  ids = [];
  refusals = 0;
  /** From within a callback. */
  nested = 0;
  /** Where no clock rolls back. */
  rises = false;
  highest = -1n;
  #depth = 0;
  #pending = [];
  #random;

  constructor(seed) {
    this.#random = seeded(seed);
  }

  draw() {
    const { flake } = this;
    const count = Math.floor(this.#random() * 7);
    const ways = [
      () => [flake.nextId()],
      () => [flake.nextIdString()],
      () => [...flake.nextIds(count)],
      () => flake.nextIdStrings(count),
      () => flake.nextIdStrings(this.#random() < 0.1 ? 40 : 2),
    ];
    const way = Math.floor(this.#random() * (ways.length + 1));
    if (way === ways.length) {
      this.#pending.push(flake.nextIdAsync().then((id) => this.#note([id], -1n), this.#refused));
      return;
    }
    const before = this.highest;
    try {
      this.#note(ways[way](), before);
    } catch (error) {
      this.#refused(error);
    }
  }

  /** An ID that is handed out lies above all that were handed out before its call began. */
  #note(ids, before) {
    if (this.rises) for (const id of ids) assert.ok(BigInt(id) > before, `${id} after ${before}`);
    for (const id of ids) {
      this.ids.push(String(id));
      if (BigInt(id) > this.highest) this.highest = BigInt(id);
    }
  }

  #refused = (error) => {
    assert.match(String(error.code), /^ERR_SNOWFLAKE_/, error.stack);
    this.refusals++;
  };

  /** A callback that often draws, unless it is already within several. */
  callback = (answer) => {
    if (this.flake === undefined || this.#depth === DEEPEST) return answer;
    if (this.#random() < this.#depth / 3) return answer;
    this.#depth++;
    try {
      this.nested++;
      for (let n = 0; n <= this.#random() * 2; n++) this.draw();
    } finally {
      this.#depth--;
    }
    return answer;
  };

  /** Draws for a while, in bursts. */
  async run(between = () => {}) {
    for (let round = 0; round < ROUNDS; round++) {
      between(this.#random);
      for (let n = 0; n < this.#random() * 4; n++) this.draw();
      if (round % 3 === 0) await new Promise(setImmediate);
      else if (round % 3 === 1) await undefined;
    }
    await Promise.all(this.#pending);
  }

  /** What was drawn is IDs of this instance, each once, and more of them than `least`. */
  check(least = ROUNDS) {
    const { ids } = this;
    assert.ok(this.nested > 10, `only ${this.nested} callbacks`);
    assert.ok(ids.length > least, `only ${ids.length} IDs, ${this.refusals} refusals`);
    assert.equal(new Set(ids).size, ids.length, 'duplicates');
    for (const id of ids) assert.match(id, /^(0|[1-9]\d{0,18})$/);
    for (const id of ids) {
      const { datacenterId, workerId } = this.flake.parse(id);
      assert.deepEqual([datacenterId, workerId], [1, this.flake.workerId], id);
    }
  }
}

// Their many warnings are not for the one who reads the results.
process.removeAllListeners('warning');

const undo = [];

afterEach(() => {
  for (const one of undo.splice(0)) one();
});

/** Calls back from within a channel of node:diagnostics_channel. */
function on(channel, callback) {
  const listener = () => callback();
  subscribe(channel, listener);
  undo.push(() => unsubscribe(channel, listener));
}

let workerId = 0;
const own = (more) => ({ datacenterId: 1, workerId: workerId++, layout: narrow, ...more });

for (const seed of isQuick ? [1] : [1, 2, 3]) {
  test(`snowdrift:wait draws (seed ${seed})`, async () => {
    const drawer = new Drawer(seed);
    drawer.flake = new SnowFlake(own());
    drawer.rises = true;
    on('snowdrift:wait', drawer.callback);
    await drawer.run();
    drawer.check();
    drawer.flake.close();
  });

  test(`snowdrift:clock-rollback and a warning's listener draw (seed ${seed})`, async () => {
    const drawer = new Drawer(seed);
    const clock = standing(Date.now());
    drawer.flake = new SnowFlake(own({ layout: layouts.node, clock, maxWait: 1 }));
    on('snowdrift:clock-rollback', drawer.callback);
    process.on('warning', drawer.callback);
    undo.push(() => process.off('warning', drawer.callback));
    await drawer.run((random) => {
      clock.now += random() < 0.2 ? -50 : 40;
    });
    drawer.check();
  });

  test(`the clock draws (seed ${seed})`, async () => {
    const drawer = new Drawer(seed);
    let now = Date.now();
    let reads = 0;
    const clock = () => (++reads % 16 === 0 ? drawer.callback(now++) : now++);
    drawer.flake = new SnowFlake(own({ clock, maxWait: 1, layout: recent(now) }));
    on('snowdrift:wait', drawer.callback);
    await drawer.run();
    drawer.check();
  });

  test(`onRejectedTake and onRejectedPut draw (seed ${seed})`, async () => {
    const drawer = new Drawer(seed);
    const options = own({ boostPower: 0, scheduleIntervalMs: 1, maxAge: 0 });
    // Those of another worker ID, for when there are none.
    const other = new SnowFlake(own({ layout: layouts.node }));
    const substitutes = new Set();
    let calls = 0;
    drawer.flake = new CachedSnowFlake({
      ...options,
      onRejectedTake(refusal) {
        if (++calls % 4 === 0) drawer.callback();
        if (calls % 7 === 0) throw refusal;
        const id = other.nextId();
        substitutes.add(String(id));
        return id;
      },
      onRejectedPut: () => drawer.callback(),
    });
    await drawer.run();
    const { ids } = drawer;
    assert.equal(new Set(ids).size, ids.length, 'duplicates');
    assert.ok(ids.some((id) => substitutes.has(id)));
    drawer.ids = ids.filter((id) => !substitutes.has(id));
    // There are four a ms: how many it draws depends on the time that it takes.
    drawer.check(isStorms ? ROUNDS : 0);
    for (const flake of [drawer.flake, other]) flake.close();
  });
}

test('a store and the channels of its lease draw', { skip: storm }, async () => {
  const drawer = new Drawer(1);
  const store = faulty();
  store.fault = () => {
    drawer.callback();
    // An error may run code, too, when it is shown.
    if (drawer.flake !== undefined && drawer.nested % 5 === 0) {
      throw Object.defineProperty(new Error(), 'message', { get: () => drawer.callback('away') });
    }
  };
  drawer.flake = await SnowFlake.lease(store, { datacenterId: 1, ttl: 1000, layout: narrow });
  for (const what of ['renewed', 'failing', 'lost']) on(`snowdrift:lease-${what}`, drawer.callback);
  on('snowdrift:wait', drawer.callback);
  await drawer.run();
  const { renewals } = drawer.flake.lease;
  await until(() => drawer.flake.lease.renewals > renewals + 1);
  drawer.check();
  drawer.flake.close();
});

test('getters and proxies of what is passed in draw', () => {
  const drawer = new Drawer(1);
  const flake = new SnowFlake(own({ layout: layouts.node }));
  drawer.flake = flake;
  const drawing = (object) =>
    new Proxy(object, {
      get: (target, key) => drawer.callback(target[key]),
      ownKeys: (target) => drawer.callback(Reflect.ownKeys(target)),
    });
  for (let round = 0; round < 120; round++) {
    drawer.draw();
    flake.compose(drawing({ timestamp: Date.now(), sequence: 3 }));
    flake.toUidString(flake.nextId(), drawing({ timeZone: 'UTC' }));
    for (const id of flake.nextIds(5)) drawer.ids.push(String(id));
    assert.throws(() => flake.nextIds(drawing({})), { code: 'ERR_SNOWFLAKE_ARGUMENT' });
    new SnowFlake(
      drawing({ datacenterId: 1, workerId: flake.workerId, layout: drawing({ ...layouts.node }) }),
    ).close();
  }
  drawer.check();
});

test('an instance that a subscriber has closed returns no ID', () => {
  const flake = new SnowFlake(own());
  on('snowdrift:wait', () => flake.close());
  assert.throws(
    () => {
      for (;;) flake.nextId();
    },
    { code: 'ERR_SNOWFLAKE_CLOSED' },
  );
});

test('a subscriber that draws more than there is fails alone', () => {
  const flake = new SnowFlake(own());
  let deepest = 0;
  let depth = 0;
  on('snowdrift:wait', () => {
    deepest = Math.max(deepest, ++depth);
    for (let n = 0; n < 20; n++) flake.nextId();
    depth--;
  });
  const ids = Array.from({ length: 100 }, () => flake.nextId());
  assert.equal(new Set(ids).size, 100);
  assert.equal(deepest, 1, 'its own waits are published later');
});

test('calls of nextIdAsync() are served in their order, and when the instance is closed', async () => {
  const flake = new SnowFlake(own());
  for (let round = 0; round < (isQuick ? 4 : 20); round++) {
    const order = [];
    const calls = [];
    for (let n = 0; n < 300; n++) {
      if (n % 100 === 50) await new Promise(setImmediate);
      calls.push(flake.nextIdAsync().then((id) => order.push([n, id])));
    }
    await Promise.all(calls);
    assert.deepEqual(
      order.map(([n]) => n),
      Array.from({ length: 300 }, (_, n) => n),
    );
    assert.ok(order.every(([, id], n) => n === 0 || id > order[n - 1][1]));
  }
  const waiting = new SnowFlake(own({ layout: { ...slow, sequenceBits: 1 } }));
  const calls = Array.from({ length: 5 }, () => waiting.nextIdAsync());
  setTimeout(() => waiting.close(), 20);
  for (const call of calls.slice(2)) {
    await rejects(limitWait(call, 'the end of a call, when it is closed'), 'ERR_SNOWFLAKE_CLOSED');
  }
});

test('a batch that is refused draws nothing, by an own clock and of strings', () => {
  const clock = standing(Date.now());
  const flake = new SnowFlake(own({ clock, maxWait: 0 }));
  const first = flake.nextId();
  for (const refused of [
    () => flake.nextIds(5),
    () => flake.nextIdStrings(5),
    () => flake.nextIdStrings(100),
  ]) {
    assert.throws(refused, { code: 'ERR_SNOWFLAKE_EXHAUSTED' });
    assert.equal(flake.stats().issued, 1);
  }
  assert.equal(flake.nextId(), first + 1n, 'the next ID is the one it would have been');

  const shared = new SnowFlake(own({ layout: { ...slow, sequenceBits: 3 }, maxWait: 0 }));
  const second = BigInt(shared.nextIdString());
  for (const count of [9, 100]) {
    assert.throws(() => shared.nextIdStrings(count), { code: 'ERR_SNOWFLAKE_EXHAUSTED' });
    assert.equal(shared.stats().issued, 1);
  }
  assert.deepEqual(
    shared.nextIdStrings(7),
    Array.from({ length: 7 }, (_, n) => String(second + 1n + BigInt(n))),
  );
});

test('a batch that is refused after the application has returned IDs keeps none of them', () => {
  let calls = 0;
  const layout = { ...slow, sequenceBits: 3 };
  const flake = new CachedSnowFlake(
    own({
      layout,
      boostPower: 0,
      maxWait: 0,
      onRejectedTake(refusal) {
        if (++calls % 3 === 0) throw refusal;
        return 4711n;
      },
    }),
  );
  const first = flake.nextId();
  for (const refused of [() => flake.nextIds(12), () => flake.nextIdStrings(12)]) {
    assert.throws(refused, { code: 'ERR_SNOWFLAKE_EXHAUSTED' });
  }
  const rest = [...flake.nextIds(7)];
  assert.deepEqual(
    rest,
    Array.from({ length: 7 }, (_, n) => first + 1n + BigInt(n)),
  );
  flake.close();
});
