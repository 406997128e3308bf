'use strict';
// The contract of a register, as tests for node:test: contract.d.ts and store.d.ts have its rules.
//
// A text says which write it belongs to, so a list or read shows by itself whether token and text belong together and how
// old they are. No check depends on which of two calls comes first.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { describe, test } = require('node:test');
const { setImmediate: turn, setTimeout: pause } = require('node:timers/promises');

const { NONE } = require('../ids/properties.js');
const { startLimit } = require('../runtime/time.js');

const WRITERS = 32;
/** Registers that the writers share, each with connections of its own. */
const REGISTERS = 4;
/** A store's clock may be wrong. This is for one that counts seconds or microseconds, or from another epoch. */
const MAX_CLOCK_ERROR_MS = 86_400_000;
/** A clock that is read from several servers, or in whole seconds, may go back by so much. */
const MAX_CLOCK_BACK_MS = 1500;

const newToken = () => randomBytes(8).toString('hex');
const record = (text) => ({ token: newToken(), text });
const times = (count, make) => Array.from({ length: count }, (_, n) => make(n));

function checkRecord(found, what) {
  assert.ok(found !== null && typeof found === 'object', `${what} is no record: ${found}`);
  assert.match(found.token, /^[0-9a-f]{16}$/, `the token of ${what}`);
  assert.equal(typeof found.text, 'string', `the text of ${what}`);
}

function checkTime(now, what) {
  assert.equal(typeof now, 'number', what);
  const error = Math.abs(now - Date.now());
  assert.ok(error < MAX_CLOCK_ERROR_MS, `${what} is not Unix ms: ${now}`);
}

/** By function: checks the form of a reply. */
const REPLIES = {
  read({ record: found }, key) {
    if (found !== undefined) checkRecord(found, `the record of ${key}`);
  },
  write({ isWritten, found }, key) {
    assert.equal(typeof isWritten, 'boolean', 'isWritten');
    if (isWritten) assert.equal(found, undefined, 'a write that was done has found nothing');
    else if (found !== undefined) checkRecord(found, `what a write of ${key} found`);
  },
  list({ records }, prefix) {
    assert.ok(records instanceof Map, `list() returned no Map of records: ${records}`);
    for (const [key, found] of records) {
      assert.ok(key.startsWith(prefix), `list('${prefix}') has the key '${key}'`);
      checkRecord(found, `the record of ${key}`);
    }
  },
};

/** Waits for a call, which the limit ends. */
async function within(limit, what, call) {
  const abort = new AbortController();
  const late = new Error(`${what} has not settled within ${limit} ms`);
  let cancel;
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

/** A register each of whose calls has a limit and whose replies are checked. */
function checked(register, limit) {
  const calls = Object.keys(REPLIES).map((name) => [
    name,
    async (...values) => {
      const reply = await within(limit, `${name}()`, (signal) =>
        register[name](...values, { signal }),
      );
      REPLIES[name](reply, values[0]);
      if (reply.now !== undefined) checkTime(reply.now, `now in a reply of ${name}()`);
      return reply;
    },
  ]);
  return {
    ...Object.fromEntries(calls),
    register,
    async now() {
      const now = await within(limit, 'now()', (signal) => register.now({ signal }));
      checkTime(now, 'now()');
      return now;
    },
    async get(key) {
      return (await this.read(key)).record;
    },
    /** Writes where it must succeed. */
    async put(key, text, before) {
      const written = record(text);
      const { isWritten } = await this.write(key, written, before);
      assert.ok(isWritten, `'${key}' was not written over ${before}`);
      return written;
    },
  };
}

const KEYS = [
  ...['a', 'A', 'a ', ' a', 'a  ', ' ', 'a/b', 'a//b', '/a', 'a/', '.', '..', 'a/./b', 'a/../b'],
  ...['a%', 'a_', 'a_b', 'axb', 'a*', 'a?', '[a-z]', 'a\\', 'a\\b', "'", '"', '`', '``', '--', '#'],
  ...[
    '$1',
    ':a',
    '?',
    '@a',
    '{a}',
    '(a)',
    'a;b',
    'a,b',
    'a=b',
    'a&b',
    'a+b',
    'a|b',
    'a^b',
    '~',
    '!',
  ],
  ...[
    '0',
    '00',
    '-1',
    '1e3',
    'null',
    'NULL',
    'undefined',
    'true',
    '__proto__',
    'constructor',
    'get',
  ],
  ...['%00', '%2F', '%2e%2e', '\\x00', '\\0', '<a>'],
  ...[`${'k'.repeat(199)}1`, `${'k'.repeat(199)}2`, '_'.repeat(200), '%'.repeat(200)],
];

const TEXTS = [
  ...[
    '',
    ' ',
    'a',
    'A',
    'a ',
    ' a',
    '\n',
    'a\n',
    '\r\n',
    '\t',
    '\0',
    'a\0',
    'a\0b',
    '\x01\x1f\x7f',
  ],
  ...[
    '\u00e9',
    'e\u0301',
    '\u212b',
    '\u{1f9ca}',
    '\u05d0\u202e',
    '\ufeff',
    'a\ufeff',
    '\ufffd',
    '\uffff',
  ],
  ...["'", '"', '`', '\\', '\\\\', "\\'", "''", '\\0', '%s', '$1', '?', ':a', '{"a":1}', '[]'],
  ...['0', '007', '1e3', '-0', 'null', 'NULL', 'undefined', 'true', '2020-02-02', '0x41', '\\x41'],
  ...['x'.repeat(4096), '\0'.repeat(4096), '\u{1f9ca}'.repeat(1024), ' '.repeat(4096)],
  ...['\u00e9'.repeat(2048), "'".repeat(4096), '\\'.repeat(4096)],
];

/** The number of the write that a text of `numbered` belongs to, after a check that token and text belong together. */
function numberOf(key, { token, text }) {
  const [ofKey, ofToken, number] = text.split(' ');
  assert.deepEqual([ofKey, ofToken], [key, token], 'a record is one that was written');
  return Number(number);
}

function numbered(key, number) {
  const token = newToken();
  return { token, text: `${key} ${token} ${number}` };
}

/**
 * By title: the checks. Each has a namespace of its own.
 * @param open opens a register of the namespace, as one more process would; the contract closes it
 * @param options those of registerContract()
 */
const CHECKS = {
  async 'a write creates a record only where there is none'({ open }) {
    const [one, other] = [await open(), await open()];
    assert.equal(await one.get('a'), undefined);
    const missing = await one.write('a', record('x'), newToken());
    assert.deepEqual([missing.isWritten, missing.found], [false, undefined]);
    assert.equal(await other.get('a'), undefined, 'a write that was refused changes nothing');
    const first = await one.put('a', 'first', undefined);
    assert.deepEqual(await other.get('a'), first);
    const { isWritten, found } = await other.write('a', record('second'), undefined);
    assert.deepEqual([isWritten, found], [false, first]);
    assert.deepEqual(await one.get('a'), first, 'a write that was refused changes nothing');
    assert.equal(await one.get('b'), undefined);
  },

  async 'a write replaces only the record whose token is before'({ open }) {
    const [one, other] = [await open(), await open()];
    const first = { token: 'ab'.repeat(8), text: 'same' };
    assert.equal((await one.write('a', first, undefined)).isWritten, true);
    const refusals = [newToken(), first.token.toUpperCase(), '0'.repeat(16), `${first.token} `];
    for (const before of refusals) {
      const { isWritten, found } = await other.write('a', record('same'), before);
      assert.deepEqual([isWritten, found], [false, first], `before ${before}`);
    }
    assert.deepEqual(await one.get('a'), first);
    const second = await other.put('a', 'same', first.token);
    const late = await one.write('a', record('same'), first.token);
    assert.deepEqual([late.isWritten, late.found], [false, second], 'a token counts once');
    assert.deepEqual(await one.get('a'), second);
  },

  async 'exactly one of many writers replaces a token'({ open }) {
    const all = await Promise.all(times(REGISTERS, open));
    let before;
    for (let round = 0; round < 8; round++) {
      const writes = await Promise.all(
        times(WRITERS, async (n) => {
          const written = record('same');
          return { written, ...(await all[n % REGISTERS].write('a', written, before)) };
        }),
      );
      const winners = writes.filter(({ isWritten }) => isWritten);
      assert.equal(winners.length, 1, `${winners.length} writers of a round replaced one token`);
      const [{ written }] = winners;
      for (const { isWritten, found } of writes) {
        if (!isWritten) assert.deepEqual(found, written, 'a refused write finds the winner');
      }
      before = written.token;
    }
  },

  async 'nothing that many writers write is lost'({ open }) {
    const all = await Promise.all(times(REGISTERS, open));
    const next = new Map();
    await Promise.all(
      times(WRITERS, async (n) => {
        const one = all[n % REGISTERS];
        let present = await one.get('a');
        for (let isDone = false; !isDone; ) {
          const written = record(String(Number(present?.text ?? 0) + 1));
          const { isWritten, found } = await one.write('a', written, present?.token);
          if (isWritten) {
            assert.ok(!next.has(present?.token), 'a token was replaced twice');
            next.set(present?.token, written);
          }
          isDone = isWritten;
          present = found;
          await turn();
        }
      }),
    );
    let last;
    for (let n = 1; n <= WRITERS; n++) {
      last = next.get(last?.token);
      assert.equal(last?.text, String(n), 'each write builds on the one before');
    }
    assert.deepEqual(await all[0].get('a'), last);
  },

  async 'a write that is sent again is written once'({ open }) {
    const [one, other] = [await open(), await open()];
    for (const before of [undefined, (await one.put('b', 'x')).token]) {
      const key = before === undefined ? 'a' : 'b';
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
    let present = await one.put('a', 'first', undefined);
    for (let n = 0; n < 24; n++) {
      const abort = new AbortController();
      const written = record(`given up ${n}`);
      // Before the call; then in a later turn each time.
      if (n === 0) abort.abort(new Error('given up'));
      const call = within(limit, 'a call that was aborted', () =>
        one.register.write('a', written, present.token, { signal: abort.signal }),
      ).catch((failure) => ({ failure }));
      for (let turns = 1; turns < n; turns++) await (n % 4 === 0 ? pause(1) : turn());
      abort.abort(new Error('given up'));
      const reply = await call;
      assert.ok(!/has not settled/.test(reply.failure), String(reply.failure));
      const seen = await other.get('a');
      const isSeen = seen.token === written.token;
      if (reply.isWritten || n === 0) assert.equal(isSeen, n !== 0, `after abort ${n}`);
      if (!isSeen) assert.deepEqual(seen, present, 'neither old nor new');
      // A late write replaces nothing once its predecessor is gone.
      const next = record(`next ${n}`);
      let { isWritten, found } = await other.write('a', next, seen.token);
      if (!isWritten) {
        assert.deepEqual(found, written, 'nobody else writes');
        ({ isWritten } = await other.write('a', next, written.token));
      }
      assert.ok(isWritten);
      present = next;
    }
    for (let n = 0; n < 10; n++) {
      await pause(5);
      assert.deepEqual(await one.get('a'), present, 'a late write has replaced a later one');
    }
  },

  async 'a call whose signal has aborted does nothing'({ open, limit }) {
    const one = await open();
    const signal = AbortSignal.abort(new Error('given up'));
    const { register } = one;
    const calls = [
      () => register.read('a', { signal }),
      () => register.write('a', record('x'), undefined, { signal }),
      () => register.list('', { signal }),
      () => register.now({ signal }),
    ];
    for (const call of calls) {
      await within(limit, 'a call that was aborted', () => assert.rejects(async () => call()));
    }
    assert.equal(await one.get('a'), undefined);
  },

  async 'keys compare as bytes'({ open }) {
    const [one, other] = [await open(), await open()];
    const written = new Map();
    await Promise.all(
      KEYS.map(async (key) => written.set(key, await one.put(key, `of ${key}`, undefined))),
    );
    for (const [key, found] of written) assert.deepEqual(await other.get(key), found, key);
    const prefixes = [
      '',
      ...KEYS.map((key) => key.slice(0, 2)),
      ...KEYS,
      'kk',
      'none',
      '%',
      '_',
      '*',
    ];
    for (const prefix of new Set(prefixes)) {
      const { records } = await other.list(prefix);
      const expected = [...written].filter(([key]) => key.startsWith(prefix));
      assert.deepEqual(sorted(records), sorted(expected), `list('${prefix}')`);
    }
    for (const [key, { token }] of written) await other.put(key, `next of ${key}`, token);
    for (const key of KEYS) assert.equal((await one.get(key)).text, `next of ${key}`);
  },

  async 'texts come back as they were written'({ open }) {
    const [one, other] = [await open(), await open()];
    for (const [n, text] of TEXTS.entries()) {
      const first = await one.put(`first/${n}`, text, undefined);
      assert.deepEqual(await other.get(`first/${n}`), first, JSON.stringify(text.slice(0, 20)));
      const { token } = await one.put(`second/${n}`, 'x', undefined);
      const second = await one.put(`second/${n}`, text, token);
      const { found } = await other.write(`second/${n}`, record('x'), token);
      assert.deepEqual(found, second, JSON.stringify(text.slice(0, 20)));
    }
    for (const root of ['first/', 'second/']) {
      const { records } = await other.list(root);
      const texts = TEXTS.map((_, n) => records.get(root + n)?.text);
      assert.deepEqual(texts, TEXTS);
    }
  },

  async 'namespaces are apart'({ open, namespace }) {
    const names = [namespace, `${namespace}.`, `${namespace}-a`, namespace.toUpperCase()];
    const all = await Promise.all(names.map((name) => open(undefined, name)));
    for (const [n, one] of all.entries()) await one.put('a', `of ${n}`, undefined);
    for (const [n, one] of all.entries()) {
      const { records } = await one.list('');
      assert.deepEqual(
        [...records].map(([key, { text }]) => [key, text]),
        [['a', `of ${n}`]],
      );
    }
  },

  async 'a read, list or refused write sees each write that was confirmed before it'({ open }) {
    const all = [await open(), await open()];
    let present;
    for (let n = 0; n < 60; n++) {
      const [writer, reader] = n % 2 === 0 ? all : [...all].reverse();
      present = await writer.put('a/b', String(n), present?.token);
      const seen = [
        async () => reader.get('a/b'),
        async () => (await reader.list('a/')).records.get('a/b'),
        async () => (await reader.write('a/b', record('x'), newToken())).found,
      ][n % 3];
      assert.deepEqual(await seen(), present, 'it is stale');
    }
  },

  async 'a list shows each record once while others change'({ open }) {
    const [writer, reader] = [await open(), await open()];
    const keys = times(64, (n) => `list/${n}`);
    /** By key: the numbers of the last write that was sent, and of the last that was confirmed. */
    const [sent, confirmed] = [new Map(), new Map()];
    async function advance(key, present) {
      const number = (sent.get(key) ?? 0) + 1;
      sent.set(key, number);
      const written = numbered(key, number);
      const { isWritten } = await writer.write(key, written, present?.token);
      assert.ok(isWritten);
      confirmed.set(key, number);
      return written;
    }
    const present = await Promise.all(keys.map((key) => advance(key)));
    let isDone = false;
    const writing = times(4, async (n) => {
      for (let at = n; !isDone; at = (at + 4) % keys.length) {
        present[at] = await advance(keys[at], present[at]);
        if (sent.size < 400) await advance(`list/new/${n}/${sent.size}`);
        // A store in memory would leave no turn to others.
        await turn();
      }
    });
    try {
      for (let n = 0; n < 12; n++) {
        const before = new Map(confirmed);
        const { records } = await reader.list('list/');
        for (const [key, least] of before) {
          assert.ok(records.has(key), `the list lacks ${key}`);
          const number = numberOf(key, records.get(key));
          assert.ok(number >= least, `the list is stale: ${number} of ${key}, not ${least}`);
        }
        for (const [key, found] of records) {
          assert.ok(numberOf(key, found) <= sent.get(key), `${key} was not written`);
        }
      }
    } finally {
      isDone = true;
      await Promise.all(writing);
    }
  },

  async 'a list has many large records'({ open }) {
    const [one, other] = [await open(), await open()];
    const texts = times(128, (n) => String(n).padEnd(4096, 'x'));
    await Promise.all(texts.map((text, n) => one.put(`large/${n}`, text, undefined)));
    for (const key of ['large', 'large.', 'large0']) await one.put(key, 'x', undefined);
    const { records } = await other.list('large/');
    assert.equal(records.size, texts.length);
    for (const [n, text] of texts.entries()) assert.equal(records.get(`large/${n}`).text, text);
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
      await all[0].write('a', record('x'), undefined),
      await all[0].write('a', record('y'), newToken()),
      await all[0].read('a'),
      await all[0].list(''),
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
      const calls = times(4, (n) => [
        (signal) => register.read('a', { signal }),
        (signal) => register.write(`${turns}/${n}`, record('x'), undefined, { signal }),
        (signal) => register.list('', { signal }),
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
    for (const [key, { text }] of (await other.list('')).records) assert.equal(text, 'x', key);
  },

  async 'a signal ends the calls of a store that does not answer'({ options, limit }) {
    const register = await options.openSilent();
    const calls = [
      (signal) => register.read('a', { signal }),
      (signal) => register.write('a', record('x'), undefined, { signal }),
      (signal) => register.write('a', record('x'), newToken(), { signal }),
      (signal) => register.list('', { signal }),
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
    const { token } = await one.put('broken/1', 'x', undefined);
    const sound = await one.put('sound/1', 'x', undefined);
    await options.spoil(namespace, 'broken/1');
    const { register } = other;
    const calls = {
      read: (signal) => register.read('broken/1', { signal }),
      list: (signal) => register.list('broken/', { signal }),
      'write over its token': (signal) =>
        register.write('broken/1', record('y'), token, { signal }),
      'write where there is none': (signal) =>
        register.write('broken/1', record('y'), undefined, { signal }),
    };
    for (let n = 0; n < 2; n++) {
      for (const [what, call] of Object.entries(calls)) {
        const settled = within(limit, what, call);
        await assert.rejects(settled, /broken\/1/, `a ${what} must reject, and name the key`);
      }
    }
    assert.deepEqual(await other.get('sound/1'), sound);
    assert.equal((await other.list('sound/')).records.size, 1);
  },
};

const TITLES = Object.keys(CHECKS);

/** By title: the option that a check needs. */
const NEEDS = {
  'a signal ends the calls of a store that does not answer': 'openSilent',
  'a record of another format is an error that names its key': 'spoil',
};

const sorted = (records) => [...records].sort(([a], [b]) => (a < b ? -1 : 1));

let namespaces = 0;

/** Runs one check in a namespace of its own, and closes its registers. */
async function runCheck(title, open, options = NONE) {
  const { limit = 60_000 } = options;
  const namespace = `contract-${process.pid.toString(36)}-${Date.now().toString(36)}-${namespaces++}`;
  const opened = [];
  const openChecked = async (_, name = namespace) => {
    const register = await open(name);
    opened.push(register);
    return checked(register, limit);
  };
  try {
    await CHECKS[title]({ open: openChecked, options, limit, namespace });
  } finally {
    const closing = opened.map(async (register) => register.close?.());
    await within(limit, 'close()', () => Promise.allSettled(closing));
  }
}

function registerContract(name, open, options = NONE) {
  describe(name, { concurrency: options.concurrency ?? 4 }, () => {
    for (const title of TITLES) {
      const need = NEEDS[title];
      const skip = need !== undefined && options[need] === undefined && `without ${need}`;
      test(title, { skip }, () => runCheck(title, open, options));
    }
  });
}

// Shorthands, so that `import` finds the names.
module.exports = { TITLES, registerContract, runCheck };
