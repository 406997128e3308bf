'use strict';
// The contract of registers finds faults: each of these, planted in the register in memory, fails the check that it names.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');

const { TITLES, runCheck } = require('../../js/stores/contract-checks.js');
const { memory } = require('../../js/stores/memory.js');

const [
  CREATES,
  REPLACES,
  ONE_WINS,
  SENT_TWICE,
  GIVEN_UP,
  ABORTED,
  KEYS,
  TEXTS,
  NAMESPACES,
  STALE,
  CLOCK,
  CLOSE,
  SILENT,
  SPOILED,
] = TITLES;

const encode = ({ token, text }) => `${token} ${text}`;
const standing = (now) => () => now;
const silence = () => new Promise(() => {});

/** Changes keys on their way into a register, all in the same way. */
const withKeys = (change) => (base) => ({
  read: (key, options) => base.read(change(key), options),
  write: (key, ...rest) => base.write(change(key), ...rest),
});
/** Changes texts on their way into a register. */
const withTexts = (change) => (base) => ({
  write: (key, { token, text }, ...rest) => base.write(key, { token, text: change(text) }, ...rest),
});
/** A register that takes another register's place in a namespace. */
const inNamespace =
  (change) =>
  (_, { namespace, stored }) =>
    memory({ namespace: change(namespace), stored });
const withNow =
  (now) =>
  (_, { namespace, stored }) =>
    memory({ namespace, stored, now });

/**
 * By name: the check that must fail; the functions of a register with the fault, from one without; and options of the
 * contract. `set` writes a record as it is.
 */
const FAULTS = {
  'writes over whatever is there': [
    CREATES,
    (_, { set }) => ({ write: async (key, record) => set(key, record) }),
  ],
  'creates a record where its predecessor is missing': [
    CREATES,
    (base, { set }) => ({
      async write(key, record, ...rest) {
        const { record: found } = await base.read(key, rest.at(-1));
        return found === undefined ? set(key, record) : base.write(key, record, ...rest);
      },
    }),
  ],
  'does not return what it found': [
    CREATES,
    (base) => ({
      write: async (...values) => ({ isWritten: (await base.write(...values)).isWritten }),
    }),
  ],
  'returns what it has written as found': [
    CREATES,
    (base) => ({
      write: async (...values) => ({ ...(await base.write(...values)), found: values[1] }),
    }),
  ],
  'does not compare the token': [
    REPLACES,
    (base, { set }) => ({
      write: async (key, record, before, options) =>
        before === undefined ? base.write(key, record, before, options) : set(key, record),
    }),
  ],
  'compares tokens without case': [
    REPLACES,
    (base) => ({
      write: (key, record, before, options) =>
        base.write(key, record, before?.toLowerCase(), options),
    }),
  ],
  'compares tokens without trailing spaces': [
    REPLACES,
    (base) => ({
      write: (key, record, before, options) => base.write(key, record, before?.trim(), options),
    }),
  ],
  'takes a token that was replaced before': [
    REPLACES,
    (base, { set, shared }) => ({
      async write(key, record, before, options) {
        shared.used ??= new Set();
        if (shared.used.has(before)) return set(key, record);
        const reply = await base.write(key, record, before, options);
        if (reply.isWritten) shared.used.add(before);
        return reply;
      },
    }),
  ],
  'compares texts instead of tokens': [
    ONE_WINS,
    (base) => ({
      async write(key, record, ...rest) {
        const reply = await base.write(key, record, ...rest);
        return reply.found?.text === record.text ? { isWritten: true } : reply;
      },
    }),
  ],
  'writes only over what it has read itself': [
    REPLACES,
    (base) => {
      const known = new Set([undefined]);
      return {
        async read(...values) {
          const reply = await base.read(...values);
          known.add(reply.record?.token);
          return reply;
        },
        async write(...values) {
          if (!known.has(values[2])) {
            const { record: found } = await base.read(values[0], values[3]);
            known.add(found?.token);
            return { isWritten: false, found };
          }
          return base.write(...values);
        },
      };
    },
  ],
  'finds the text of one write and the token of a later one': [
    ONE_WINS,
    (base, { shared }) => ({
      async write(key, ...rest) {
        const { isWritten, found } = await base.write(key, ...rest);
        if (isWritten) return { isWritten };
        shared.turns = (shared.turns ?? 0) + 1;
        for (let n = shared.turns % 3; n > 0; n--) await turn();
        const { record } = await base.read(key, rest.at(-1));
        return { isWritten, found: found && { token: record.token, text: found.text } };
      },
    }),
  ],
  'refuses what it finds busy': [
    ONE_WINS,
    (base, { shared }) => ({
      async write(key, record, before, options) {
        const { record: found } = await base.read(key, options);
        shared.writes = (shared.writes ?? 0) + 1;
        if (found?.token === before && shared.writes > 9) return { isWritten: false, found };
        return base.write(key, record, before, options);
      },
    }),
  ],
  'compares in one step and writes in the next': [
    ONE_WINS,
    (base, { set }) => ({
      async write(key, record, before, options) {
        const { record: found } = await base.read(key, options);
        await turn();
        return found?.token === before ? set(key, record) : { isWritten: false, found };
      },
    }),
  ],
  'loses one write in ten': [
    ONE_WINS,
    (base, { shared }) => ({
      async write(...values) {
        shared.writes = (shared.writes ?? 0) + 1;
        return shared.writes % 10 === 0 ? { isWritten: true } : base.write(...values);
      },
    }),
  ],
  'does not recognize a write that is sent again': [
    SENT_TWICE,
    (base) => ({
      async write(key, record, ...rest) {
        const { record: found } = await base.read(key, rest.at(-1));
        if (found?.token === record.token) return { isWritten: false, found };
        return base.write(key, record, ...rest);
      },
    }),
  ],
  'writes again what is sent again': [
    SENT_TWICE,
    (base, { set, shared }) => ({
      async write(key, record, ...rest) {
        shared.sent ??= new Set();
        if (shared.sent.has(record.token)) return set(key, record);
        shared.sent.add(record.token);
        return base.write(key, record, ...rest);
      },
    }),
  ],
  'takes a write that was replaced since for written': [
    SENT_TWICE,
    (base, { shared }) => ({
      async write(key, record, ...rest) {
        shared.sent ??= new Set();
        const reply = await base.write(key, record, ...rest);
        if (reply.isWritten) shared.sent.add(record.token);
        return shared.sent.has(record.token) ? { isWritten: true } : reply;
      },
    }),
  ],
  'writes late, and without its condition, after it was given up': [
    GIVEN_UP,
    (base, { set, shared }) => ({
      async write(...values) {
        await turn();
        const [key, record, , { signal }] = values;
        if (signal.aborted) {
          shared.late = () => set(key, record);
          throw signal.reason;
        }
        const reply = await base.write(...values);
        shared.late?.();
        shared.late = undefined;
        return reply;
      },
    }),
  ],
  'ignores a signal that has aborted': [
    ABORTED,
    (base) => {
      const { signal } = new AbortController();
      return { write: (...values) => base.write(...values.slice(0, 3), { signal }) };
    },
  ],
  'has one key': [KEYS, withKeys(() => '0/0')],
  'has keys without their slash': [KEYS, withKeys((key) => key.replace('/', ''))],
  'has keys of the bucket alone': [KEYS, withKeys((key) => key.split('/').pop())],
  'has keys of 38 characters': [KEYS, withKeys((key) => key.slice(0, 38))],
  'trims texts': [TEXTS, withTexts((text) => text.trimEnd())],
  'normalizes texts': [TEXTS, withTexts((text) => text.normalize())],
  'has texts of one line': [TEXTS, withTexts((text) => text.split('\n')[0])],
  'ends lines with \\r\\n': [TEXTS, withTexts((text) => text.replaceAll('\n', '\r\n'))],
  'drops a byte order mark': [TEXTS, withTexts((text) => text.replace('\ufeff', ''))],
  'has texts of 16383 bytes': [
    TEXTS,
    withTexts((text) => Buffer.from(text).subarray(0, 16_383).toString()),
  ],
  'has texts of 16-bit characters': [
    TEXTS,
    withTexts((text) => text.replace(/\p{Cs}|\p{So}/gu, '?')),
  ],
  'has texts of numbers': [
    TEXTS,
    (base) => ({
      async read(...values) {
        const { record } = await base.read(...values);
        const isNumber = Number.isFinite(Number(record?.text || 'none'));
        return { record: isNumber ? { ...record, text: `${Number(record.text)}` } : record };
      },
    }),
  ],
  'has one namespace': [NAMESPACES, inNamespace(() => 'one')],
  'has namespaces without case': [NAMESPACES, inNamespace((name) => name.toLowerCase())],
  'replies before it writes': [
    STALE,
    (base, { set }) => ({
      async write(key, record, before, options) {
        const { record: found } = await base.read(key, options);
        if (found?.token !== before) return { isWritten: false, found };
        setTimeout(set, 1, key, record);
        return { isWritten: true };
      },
    }),
  ],
  'has a stale read': [
    STALE,
    (base) => {
      let last;
      return {
        async read(...values) {
          const present = await base.read(...values);
          const seen = last ?? present;
          last = present;
          return seen;
        },
      };
    },
  ],
  'finds what was there before': [
    STALE,
    (base) => {
      let last;
      return {
        async write(...values) {
          const reply = await base.write(...values);
          if (reply.isWritten) return reply;
          const found = last ?? reply.found;
          last = reply.found;
          return { isWritten: false, found };
        },
      };
    },
  ],
  'counts seconds': [CLOCK, withNow(() => Date.now() / 1000)],
  'counts microseconds': [CLOCK, withNow(() => Date.now() * 1000)],
  'has a clock that stands still': [CLOCK, withNow(standing(Date.now())), { limit: 300 }],
  'has a clock that goes back': [
    CLOCK,
    (base) => {
      let calls = 0;
      return { now: async () => Date.now() - ++calls * 2000, read: base.read };
    },
  ],
  'replies with a time of another clock': [
    CLOCK,
    (base) => ({
      read: async (...values) => ({ ...(await base.read(...values)), now: Date.now() - 3_600_000 }),
    }),
  ],
  'leaves calls behind at close()': [
    CLOSE,
    (base) => {
      let isClosed = false;
      return {
        async read(...values) {
          await turn();
          return isClosed ? silence() : base.read(...values);
        },
        async close() {
          isClosed = true;
        },
      };
    },
    { limit: 300 },
  ],
  'does not close twice': [
    CLOSE,
    () => {
      let isClosed = false;
      return {
        async close() {
          if (isClosed) throw new Error('it is closed');
          isClosed = true;
        },
      };
    },
  ],
  'waits for a store that does not answer': [
    SILENT,
    () => ({}),
    {
      limit: 300,
      openSilent: () => ({ read: silence, write: silence, now: silence }),
    },
  ],
  ...Object.fromEntries(
    Object.entries({
      'takes a record of another format for none': () => undefined,
      'returns a record of another format': (stored) => ({ token: '', text: stored }),
      'does not name a record of another format': () => {
        throw new Error('a record of another format');
      },
    }).map(([fault, decoded]) => [
      fault,
      [
        SPOILED,
        (base) => ({
          read: (...values) => base.read(...values).catch(() => ({ record: decoded('nonsense') })),
        }),
      ],
    ]),
  ),
  'writes over a record of another format': [
    SPOILED,
    (base, { set }) => ({
      write: (key, record, ...rest) =>
        base.write(key, record, ...rest).catch(() => set(key, record)),
    }),
  ],
};

describe('faults of a register', { concurrency: 4 }, () => {
  for (const [fault, [check, plant, options]] of Object.entries(FAULTS)) {
    test(`one that ${fault} fails: ${check}`, async () => {
      const stored = new Map();
      const shared = {};
      const open = (namespace) => {
        const base = memory({ namespace, stored });
        const set = (key, record) => {
          stored.set(`${namespace}/${key}`, encode(record));
          return { isWritten: true };
        };
        return { ...base, ...plant(base, { namespace, stored, shared, set }) };
      };
      const spoil = (namespace, key) => stored.set(`${namespace}/${key}`, 'nonsense');
      const failure = await runCheck(check, open, { spoil, ...options }).then(
        () => assert.fail('the contract has not found it'),
        (thrown) => thrown,
      );
      const isFound =
        failure instanceof assert.AssertionError ||
        /has not settled|it is closed/.test(failure.message);
      assert.ok(isFound, failure);
    });
  }

  test('each check finds one', () => {
    const finding = new Set(Object.values(FAULTS).map(([check]) => check));
    assert.deepEqual(
      TITLES.filter((check) => !finding.has(check)),
      [],
    );
  });
});

test('the contract names the call that goes on after its signal has aborted', async () => {
  const { signal } = new AbortController();
  for (const call of ['read', 'write', 'now']) {
    const open = () => {
      const base = memory();
      return { ...base, [call]: (...values) => base[call](...values.slice(0, -1), { signal }) };
    };
    const what = `${call}() goes on after its signal has aborted: `;
    await assert.rejects(runCheck(ABORTED, open), ({ message }) => message.includes(what));
  }
});

test('a module imports it by its name', async () => {
  const { registerContract } = await import('snowdrift/lease/contract');
  assert.equal(typeof registerContract, 'function');
});
