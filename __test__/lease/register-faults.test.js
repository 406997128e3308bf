'use strict';
// The contract of registers finds faults: each of these, planted in the register in memory, fails the check that it names.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');

const { TITLES, runCheck } = require('../../js/stores/contract.js');
const { memory } = require('../../js/stores/memory.js');

const [
  CREATES,
  REPLACES,
  ONE_WINS,
  NOTHING_LOST,
  SENT_AGAIN,
  GIVEN_UP,
  ABORTED,
  KEYS,
  TEXTS,
  NAMESPACES,
  STALE,
  CHANGING,
  LARGE,
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
    NOTHING_LOST,
    (base, { shared }) => ({
      async write(...values) {
        shared.writes = (shared.writes ?? 0) + 1;
        return shared.writes % 10 === 0 ? { isWritten: true } : base.write(...values);
      },
    }),
  ],
  'does not recognize a write that is sent again': [
    SENT_AGAIN,
    (base) => ({
      async write(key, record, ...rest) {
        const { record: found } = await base.read(key, rest.at(-1));
        if (found?.token === record.token) return { isWritten: false, found };
        return base.write(key, record, ...rest);
      },
    }),
  ],
  'takes a write that was replaced since for written': [
    SENT_AGAIN,
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
  'has keys without case': [KEYS, withKeys((key) => key.toLowerCase())],
  'has keys without trailing spaces': [KEYS, withKeys((key) => key.trimEnd())],
  'has keys as paths': [KEYS, withKeys((key) => key.replaceAll('//', '/').replaceAll('/./', '/'))],
  'has keys of 199 characters': [KEYS, withKeys((key) => key.slice(0, 199))],
  'decodes keys': [KEYS, withKeys((key) => key.replace('%2F', '/').replaceAll('%2e', '.'))],
  'lists by a pattern': [
    KEYS,
    (base) => ({
      async list(prefix, options) {
        const { records } = await base.list('', options);
        const pattern = prefix.replace(/[^a-z0-9_%]/gi, '\\$&').replaceAll('_', '.');
        const found = [...records].filter(([key]) => new RegExp(`^${pattern}`).test(key));
        return { records: new Map(found) };
      },
    }),
  ],
  'lists one key without the prefix': [
    KEYS,
    (base) => ({
      list: async (prefix, options) =>
        base.list(prefix.length > 1 ? prefix.slice(0, -1) : prefix, options),
    }),
  ],
  'lists a list': [
    KEYS,
    (base) => ({
      list: async (...values) => ({ records: [...(await base.list(...values)).records] }),
    }),
  ],
  'trims texts': [TEXTS, withTexts((text) => text.trimEnd())],
  'normalizes texts': [TEXTS, withTexts((text) => text.normalize())],
  'ends texts at \\0': [TEXTS, withTexts((text) => text.split('\0')[0])],
  'drops a byte order mark': [TEXTS, withTexts((text) => text.replace('\ufeff', ''))],
  'has texts of 4095 bytes': [
    TEXTS,
    withTexts((text) => Buffer.from(text).subarray(0, 4095).toString()),
  ],
  'has texts of 16-bit characters': [
    TEXTS,
    withTexts((text) => text.replace(/\p{Cs}|\p{So}/gu, '?')),
  ],
  'has no empty texts': [
    TEXTS,
    (base) => ({
      async read(...values) {
        const { record } = await base.read(...values);
        return { record: record?.text === '' ? undefined : record };
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
  ...Object.fromEntries(
    ['read', 'list'].map((name) => [
      `has a stale ${name}`,
      [
        STALE,
        (base) => {
          let last;
          return {
            async [name](...values) {
              const present = await base[name](...values);
              const seen = last ?? present;
              last = present;
              return seen;
            },
          };
        },
      ],
    ]),
  ),
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
  'misses records that move while it lists': [
    CHANGING,
    (base, { namespace, stored }) => ({
      async write(key, ...rest) {
        const reply = await base.write(key, ...rest);
        if (reply.isWritten) {
          const value = stored.get(`${namespace}/${key}`);
          stored.delete(`${namespace}/${key}`);
          stored.set(`${namespace}/${key}`, value);
        }
        return reply;
      },
      async list(prefix, options) {
        const records = new Map();
        for (let at = 0; ; at += 16) {
          const page = [...(await base.list(prefix, options)).records].slice(at, at + 16);
          for (const [key, record] of page) records.set(key, record);
          if (page.length < 16) return { records };
          await turn();
        }
      },
    }),
  ],
  'lists tokens and texts of different writes': [
    CHANGING,
    (base) => ({
      async list(...values) {
        const { records: first } = await base.list(...values);
        await turn();
        const { records: second } = await base.list(...values);
        const mixed = [...first].map(([key, { token }]) => [
          key,
          { token, text: second.get(key).text },
        ]);
        return { records: new Map(mixed) };
      },
    }),
  ],
  'lists 100 records at most': [
    LARGE,
    (base) => ({
      async list(...values) {
        const { records } = await base.list(...values);
        return { records: new Map([...records].slice(0, 100)) };
      },
    }),
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
      openSilent: () => ({ read: silence, write: silence, list: silence, now: silence }),
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
  'leaves a record of another format out of a list': [
    SPOILED,
    (base) => ({
      list: (...values) => base.list(...values).catch(() => ({ records: new Map() })),
    }),
  ],
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

test('a module imports it by its name', async () => {
  const { registerContract } = await import('snowdrift/lease/contract');
  assert.equal(typeof registerContract, 'function');
});
