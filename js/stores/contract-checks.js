'use strict';
// The checks of the contract of a register: contract.d.ts and store.d.ts have its rules. None depends on which of two calls
// comes first.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { setImmediate: turn, setTimeout: pause } = require('node:timers/promises');

const { NONE } = require('../ids/properties.js');
const { startLimit } = require('../runtime/limits.js');

/**
 * @import { ContractOptions } from './contract.d.ts'
 * @import { LeaseRecord, LeaseStore } from './store.d.ts'
 */

/** @typedef {(namespace: string) => LeaseStore | Promise<LeaseStore>} Open */
/** @typedef {ReturnType<typeof checked>} Checked */
/** @typedef {{ isWritten: boolean, found?: LeaseRecord, now?: number }} Written */

/**
 * What a check gets.
 * @typedef {object} Given
 * @property {(n?: number, namespace?: string) => Promise<Checked>} open opens a register, as one more process would; the contract
 *   closes it
 * @property {ContractOptions & Required<Pick<ContractOptions, 'openSilent' | 'spoil'>>} options those of registerContract(). It has
 *   those that the check needs
 * @property {number} limit
 * @property {string} namespace the check's own
 */

const WRITERS = 32;
/** Registers that the writers share, each with connections of its own. */
const REGISTERS = 4;
/** A store's clock may be wrong. This is for one that counts seconds or microseconds, or from another epoch. */
const MAX_CLOCK_ERROR_MS = 86_400_000;
/** A clock that is read from several servers, or in whole seconds, may go back by so much. */
const MAX_CLOCK_BACK_MS = 1500;

const newToken = () => randomBytes(8).toString('hex');
/** @param {string} text */
const record = (text) => ({ token: newToken(), text });
/**
 * @template T
 * @param {number} count
 * @param {(n: number) => T} make
 */
const times = (count, make) => Array.from({ length: count }, (_, n) => make(n));

/**
 * A record that a reply has, without other properties.
 * @param {LeaseRecord | undefined} found of a store that may be wrong
 * @param {string} what
 */
function recordOf(found, what) {
  if (found === undefined) return undefined;
  assert.ok(found !== null && typeof found === 'object', `${what} is no record: ${found}`);
  assert.match(found.token, /^[0-9a-f]{16}$/, `the token of ${what}`);
  assert.equal(typeof found.text, 'string', `the text of ${what}`);
  return { token: found.token, text: found.text };
}

/**
 * @param {number} now
 * @param {string} what
 */
function checkTime(now, what) {
  assert.equal(typeof now, 'number', what);
  const error = Math.abs(now - Date.now());
  assert.ok(error < MAX_CLOCK_ERROR_MS, `${what} is not Unix ms: ${now}`);
}

/**
 * Waits for a call, which the limit ends.
 * @template T
 * @param {number} limit
 * @param {string} what
 * @param {(signal: AbortSignal) => T | Promise<T>} call
 * @returns {Promise<T>}
 */
async function within(limit, what, call) {
  const abort = new AbortController();
  const late = new Error(`${what} has not settled within ${limit} ms`);
  let cancel = () => {};
  /** @type {Promise<never>} */
  const end = new Promise((_, reject) => {
    cancel = startLimit(limit, () => {
      abort.abort(late);
      reject(late);
    });
  });
  try {
    return await Promise.race([call(abort.signal), end]);
  } finally {
    cancel();
  }
}

/**
 * A register each of whose calls has a limit and whose replies are checked.
 * @param {LeaseStore} register
 * @param {number} limit
 */
function checked(register, limit) {
  /**
   * @template {{ now?: number }} Reply
   * @param {string} name
   * @param {(signal: AbortSignal) => Promise<Reply>} send
   */
  async function call(name, send) {
    const reply = await within(limit, `${name}()`, send);
    const { now } = reply;
    if (now !== undefined) checkTime(now, `now in a reply of ${name}()`);
    return reply;
  }

  /** @param {string} key */
  async function read(key) {
    const reply = await call('read', (signal) => register.read(key, { signal }));
    return { record: recordOf(reply.record, `the record of ${key}`), now: reply.now };
  }

  /**
   * @param {string} key
   * @param {LeaseRecord} record
   * @param {string | undefined} before
   * @returns {Promise<Written>}
   */
  async function write(key, record, before) {
    /** @type {Written} */
    const { isWritten, found, now } = await call('write', (signal) =>
      register.write(key, record, before, { signal }),
    );
    assert.equal(typeof isWritten, 'boolean', 'isWritten');
    if (!isWritten) {
      return { isWritten, found: recordOf(found, `what a write of ${key} found`), now };
    }
    assert.equal(found, undefined, 'a write that was done has found nothing');
    return { isWritten, now };
  }

  return {
    register,
    read,
    write,
    async now() {
      const now = await within(limit, 'now()', (signal) => register.now({ signal }));
      checkTime(now, 'now()');
      return now;
    },
    /** @param {string} key */
    async get(key) {
      return (await read(key)).record;
    },
    /**
     * Writes where it must succeed.
     * @param {string} key
     * @param {string} text
     * @param {string} [before]
     */
    async put(key, text, before) {
      const written = record(text);
      const { isWritten } = await write(key, written, before);
      assert.ok(isWritten, `'${key}' was not written over ${before}`);
      return written;
    },
  };
}

/** With the same digits in other places, and the longest. */
const KEYS = [
  ...['namespace', '0/0', '0/1', '0/10', '0/11', '1/0', '1/1', '1/10', '10/0', '10/1', '11/0'],
  ...[`${'9'.repeat(19)}/${'9'.repeat(18)}1`, `${'9'.repeat(19)}/${'9'.repeat(18)}2`],
];

/** A line of a record. */
const LINE =
  '7 held 55d0c2f1a7b3e498 0000a1f3 -1 205113630000 1785600030000 4711 1785590000000 - web-1';
const MOST_BYTES = 16_384;
/**
 * As long as a text may be.
 * @param {string} part
 */
const filled = (part) => part.repeat(MOST_BYTES / Buffer.byteLength(part));

const TEXTS = [
  ...['a', 'A', 'a ', ' a', '\n', 'a\n', `${LINE}\n${LINE} `, '\u00e9', 'e\u0301', '\u212b'],
  ...['\u{1f9ca}', '\u05d0\u202e', '\ufeff', 'a\ufeff', '\ufffd', '\uffff'],
  ...["'", '"', '`', '\\', "\\'", "''", '\\0', '\\x41', '%s', '$1', '?', ':a', '{"a":1}', '[]'],
  ...['0', '007', '1e3', '-0', 'null', 'true', '2020-02-02', '0x41'],
  ...['x', ' ', '\n', "'", '\\', '\u00e9', '\u{1f9ca}'].map(filled),
];

/**
 * By title: the checks. Each has a namespace of its own.
 * @type {Record<string, (given: Given) => Promise<void>>}
 */
const CHECKS = {
  async 'a write creates a record only where there is none'({ open }) {
    const [one, other] = [await open(), await open()];
    assert.equal(await one.get('0/0'), undefined);
    const missing = await one.write('0/0', record('x'), newToken());
    assert.deepEqual([missing.isWritten, missing.found], [false, undefined]);
    assert.equal(await other.get('0/0'), undefined, 'a write that was refused changes nothing');
    const first = await one.put('0/0', 'first', undefined);
    assert.deepEqual(await other.get('0/0'), first);
    const { isWritten, found } = await other.write('0/0', record('second'), undefined);
    assert.deepEqual([isWritten, found], [false, first]);
    assert.deepEqual(await one.get('0/0'), first, 'a write that was refused changes nothing');
    assert.equal(await one.get('1/0'), undefined);
  },

  async 'a write replaces only the record whose token is before'({ open }) {
    const [one, other, third] = [await open(), await open(), await open()];
    const first = { token: 'ab'.repeat(8), text: 'same' };
    assert.equal((await one.write('0/0', first, undefined)).isWritten, true);
    const refusals = [newToken(), first.token.toUpperCase(), '0'.repeat(16), `${first.token} `];
    for (const before of refusals) {
      const { isWritten, found } = await other.write('0/0', record('same'), before);
      const what = `before is '${before}', which is not the token '${first.token}' of the record`;
      assert.deepEqual([isWritten, found], [false, first], what);
    }
    assert.deepEqual(await one.get('0/0'), first);
    // The token is the only condition: a writer need not have read the record.
    const second = await third.put('0/0', 'same', first.token);
    const late = await one.write('0/0', record('same'), first.token);
    assert.deepEqual([late.isWritten, late.found], [false, second], 'a token counts once');
    assert.deepEqual(await one.get('0/0'), second);
  },

  async 'exactly one of many writers replaces a record, and nothing is lost'({ open }) {
    const all = await Promise.all(times(REGISTERS, open));
    /** @type {Map<string | undefined, LeaseRecord>} */
    const next = new Map();
    await Promise.all(
      times(WRITERS, async (n) => {
        const one = all[n % REGISTERS];
        let present = await one.get('0/0');
        for (let isDone = false; !isDone; ) {
          const written = record(String(Number(present?.text ?? 0) + 1));
          const { isWritten, found } = await one.write('0/0', written, present?.token);
          if (isWritten) {
            assert.ok(!next.has(present?.token), 'a token was replaced twice');
            next.set(present?.token, written);
          }
          isDone = isWritten;
          if (!isWritten) assert.notDeepEqual(found, present, 'a write over it was refused');
          present = found;
          await turn();
        }
      }),
    );
    /** @type {LeaseRecord | undefined} */
    let last;
    for (let n = 1; n <= WRITERS; n++) {
      last = next.get(last?.token);
      assert.equal(last?.text, String(n), 'each write builds on the one before');
    }
    assert.deepEqual(await all[0].get('0/0'), last);
  },

  async 'a write that is sent twice is written once'({ open }) {
    const [one, other] = [await open(), await open()];
    for (const before of [undefined, (await one.put('1/0', 'x')).token]) {
      const key = before === undefined ? '0/0' : '1/0';
      const first = record('first');
      const both = times(2, (n) => [one, other][n].write(key, first, before));
      for (const { isWritten } of await Promise.all(both)) assert.equal(isWritten, true);
      const { isWritten } = await one.write(key, first, before);
      assert.equal(isWritten, true, 'its reply was lost, so it is sent again');
      assert.deepEqual(await other.get(key), first);
      const second = await other.put(key, 'second', first.token);
      const late = await one.write(key, first, before);
      assert.deepEqual([late.isWritten, late.found], [false, second], 'it was replaced since');
      assert.deepEqual(await other.get(key), second);
    }
  },

  async 'a read tells what became of a write that was given up'({ open, limit }) {
    const [one, other] = [await open(), await open()];
    let present = await one.put('0/0', 'first', undefined);
    for (let n = 0; n < 24; n++) {
      const abort = new AbortController();
      const written = record(`given up ${n}`);
      // Before the call; then in a later turn each time.
      if (n === 0) abort.abort(new Error('given up'));
      const call = within(limit, 'a call that was aborted', () =>
        one.register.write('0/0', written, present.token, { signal: abort.signal }),
      ).catch((failure) => ({ failure }));
      for (let turns = 1; turns < n; turns++) await (n % 4 === 0 ? pause(1) : turn());
      abort.abort(new Error('given up'));
      /** @type {{ isWritten?: boolean, failure?: unknown }} */
      const reply = await call;
      assert.ok(!/has not settled/.test(String(reply.failure)), String(reply.failure));
      const seen = await other.get('0/0');
      assert.ok(seen !== undefined, 'the record is gone');
      const isSeen = seen.token === written.token;
      if (reply.isWritten || n === 0) assert.equal(isSeen, n !== 0, `after abort ${n}`);
      if (!isSeen) assert.deepEqual(seen, present, 'neither old nor new');
      // A late write replaces nothing once its predecessor is gone.
      const next = record(`next ${n}`);
      let { isWritten, found } = await other.write('0/0', next, seen.token);
      if (!isWritten) {
        assert.deepEqual(found, written, 'nobody else writes');
        ({ isWritten } = await other.write('0/0', next, written.token));
      }
      assert.ok(isWritten);
      present = next;
    }
    for (let n = 0; n < 10; n++) {
      await pause(5);
      assert.deepEqual(await one.get('0/0'), present, 'a late write has replaced a later one');
    }
  },

  async 'a call whose signal has aborted does nothing'({ open, limit }) {
    const one = await open();
    const signal = AbortSignal.abort(new Error('given up'));
    const { register } = one;
    const calls = {
      read: () => register.read('0/0', { signal }),
      write: () => register.write('0/0', record('x'), undefined, { signal }),
      now: () => register.now({ signal }),
    };
    for (const [name, call] of Object.entries(calls)) {
      const what = `${name}() goes on after its signal has aborted: begin it with signal.throwIfAborted()`;
      await within(limit, 'a call that was aborted', () =>
        assert.rejects(async () => call(), what),
      );
    }
    assert.equal(await one.get('0/0'), undefined);
  },

  async 'keys are apart'({ open }) {
    const [one, other] = [await open(), await open()];
    const written = new Map();
    for (const key of KEYS) written.set(key, await one.put(key, `of ${key}`, undefined));
    for (const [key, found] of written) assert.deepEqual(await other.get(key), found, key);
    for (const [key, { token }] of written) await other.put(key, `next of ${key}`, token);
    for (const key of KEYS) assert.equal((await one.get(key))?.text, `next of ${key}`);
  },

  async 'texts of up to 16 KiB come back as they were written'({ open }) {
    const [one, other] = [await open(), await open()];
    for (const [n, text] of TEXTS.entries()) {
      const [key, what] = [`0/${n}`, JSON.stringify(text.slice(0, 20))];
      const first = await one.put(key, text, undefined);
      assert.deepEqual(await other.get(key), first, what);
      const second = await one.put(key, text, first.token);
      const { found } = await other.write(key, record('x'), first.token);
      assert.deepEqual(found, second, what);
    }
  },

  async 'namespaces are apart'({ open, namespace }) {
    const names = [namespace, `${namespace}.`, `${namespace}-a`, namespace.toUpperCase()];
    const all = await Promise.all(names.map((name, n) => open(n, name)));
    for (const [n, one] of all.entries()) await one.put('0/0', `of ${n}`, undefined);
    for (const [n, one] of all.entries()) assert.equal((await one.get('0/0'))?.text, `of ${n}`);
  },

  async 'a read or refused write sees each write that was confirmed before it'({ open }) {
    const all = [await open(), await open()];
    /** @type {LeaseRecord | undefined} */
    let present;
    for (let n = 0; n < 60; n++) {
      const [writer, reader] = n % 2 === 0 ? all : [...all].reverse();
      present = await writer.put('0/0', String(n), present?.token);
      const refused = async () => reader.write('0/0', record('x'), newToken());
      const seen = n % 3 === 0 ? (await refused()).found : await reader.get('0/0');
      assert.deepEqual(seen, present, 'it is stale');
    }
  },

  async 'its clock runs, in Unix ms'({ open, limit }) {
    const all = [await open(), await open()];
    const first = await all[0].now();
    let last = first;
    const end = performance.now() + limit;
    for (let n = 0; n < 20 || last === first; n++) {
      assert.ok(performance.now() < end, 'the clock stands still');
      const now = await all[n % 2].now();
      assert.ok(now > last - MAX_CLOCK_BACK_MS, `the clock has gone back by ${last - now} ms`);
      last = now;
      if (n >= 20) await pause(20);
    }
    const replies = [
      await all[0].write('0/0', record('x'), undefined),
      await all[0].write('0/0', record('y'), newToken()),
      await all[0].read('0/0'),
    ];
    const after = await all[0].now();
    for (const { now } of replies) {
      if (now === undefined) continue;
      const isBetween = last - MAX_CLOCK_BACK_MS < now && now < after + MAX_CLOCK_BACK_MS;
      assert.ok(isBetween, `a reply has the time ${now}, between ${last} and ${after}`);
    }
  },

  async 'close() settles calls in flight'({ open, limit }) {
    for (let turns = 0; turns < 6; turns++) {
      const one = await open();
      const { register } = one;
      const close = () => within(limit, 'close()', async () => register.close?.());
      /** @type {((signal: AbortSignal) => Promise<unknown>)[][]} */
      const calls = times(4, (n) => [
        (signal) => register.read('0/0', { signal }),
        (signal) => register.write(`${turns}/${n}`, record('x'), undefined, { signal }),
        (signal) => register.now({ signal }),
      ]);
      const settled = within(limit, 'a call in flight', () =>
        Promise.allSettled(calls.flat().map((call) => call(new AbortController().signal))),
      );
      for (let n = 0; n < turns; n++) await (turns > 3 ? pause(1) : turn());
      await Promise.all([settled, close()]);
      await close();
    }
    const other = await open();
    for (let n = 0; n < 24; n++) {
      const found = await other.get(`${n % 6}/${n % 4}`);
      if (found !== undefined) assert.equal(found.text, 'x');
    }
  },

  async 'a signal ends the calls of a store that does not answer'({ options, limit }) {
    const register = await options.openSilent();
    /** @type {((signal: AbortSignal) => Promise<unknown>)[]} */
    const calls = [
      (signal) => register.read('0/0', { signal }),
      (signal) => register.write('0/0', record('x'), undefined, { signal }),
      (signal) => register.write('0/0', record('x'), newToken(), { signal }),
      (signal) => register.now({ signal }),
    ];
    const signals = calls.map(() => new AbortController());
    const settled = calls.map((call, n) => call(signals[n].signal));
    await pause(100);
    for (const [n, abort] of signals.entries()) {
      abort.abort(new Error('given up'));
      await within(limit, 'a call that was aborted', () => assert.rejects(settled[n]));
    }
    await within(limit, 'close() of a silent store', async () => register.close?.());
  },

  async 'a record of another format is an error that names its key'({
    open,
    options,
    limit,
    namespace,
  }) {
    const [one, other] = [await open(), await open()];
    const { token } = await one.put('0/1', 'x', undefined);
    const sound = await one.put('0/2', 'x', undefined);
    await options.spoil(namespace, '0/1');
    const { register } = other;
    /** @type {Record<string, (signal: AbortSignal) => Promise<unknown>>} */
    const calls = {
      read: (signal) => register.read('0/1', { signal }),
      'write over its token': (signal) => register.write('0/1', record('y'), token, { signal }),
      'write where there is none': (signal) =>
        register.write('0/1', record('y'), undefined, { signal }),
    };
    for (let n = 0; n < 2; n++) {
      for (const [what, call] of Object.entries(calls)) {
        const settled = within(limit, what, call);
        await assert.rejects(settled, /0\/1/, `a ${what} must reject, and name the key`);
      }
    }
    assert.deepEqual(await other.get('0/2'), sound);
  },
};

const TITLES = Object.keys(CHECKS);

/**
 * By title: the option that a check needs.
 * @type {Record<string, 'openSilent' | 'spoil' | undefined>}
 */
const NEEDS = {
  'a signal ends the calls of a store that does not answer': 'openSilent',
  'a record of another format is an error that names its key': 'spoil',
};

let namespaces = 0;

/**
 * Runs one check in a namespace of its own, and closes its registers.
 * @param {string} title
 * @param {Open} open
 * @param {ContractOptions} [options]
 */
async function runCheck(title, open, options = NONE) {
  const { limit = 60_000 } = options;
  const namespace = `contract-${process.pid.toString(36)}-${Date.now().toString(36)}-${namespaces++}`;
  /** @type {LeaseStore[]} */
  const opened = [];
  /** @type {Given['open']} */
  const openChecked = async (_, name = namespace) => {
    const register = await open(name);
    opened.push(register);
    return checked(register, limit);
  };
  try {
    const has = /** @type {Given['options']} */ (options);
    await CHECKS[title]({ open: openChecked, options: has, limit, namespace });
  } finally {
    const closing = opened.map(async (register) => register.close?.());
    await within(limit, 'close()', () => Promise.allSettled(closing));
  }
}

module.exports = { NEEDS, TITLES, runCheck };
