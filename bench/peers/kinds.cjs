'use strict';
// The kinds of IDs that are compared: each opened as its README shows, or with a number if it takes one.

const crypto = require('node:crypto');
const { createRequire } = require('node:module');

const EPOCH = Date.UTC(2020, 0, 1);

/** The IDs of flake-idgen are Buffers. */
const bigintOf = (buffer) => buffer.readBigUInt64BE();

/**
 * `open(number)` returns a function that draws one ID. Without a number: as the README's first example does.
 * - `name`: in tables
 * - `column`: what stores it: bigint, uuid, text, or identity, which draws it, too
 * - `store(id)`: an ID as its column and its order take it
 * - `text(id)`: an ID as a client sees it, if that is not `String(id)`
 * - `numbers`: how many numbers there are for generators; 0 if it takes none
 * - `isFull(error)`: whether a draw failed because a millisecond is full, and users draw again
 * - `isMinor`: README.md does not compare it
 * - `missing`: why it cannot be opened here
 */
const KINDS = {
  snowdrift: {
    name: 'snowdrift',
    package: 'snowdrift',
    column: 'bigint',
    numbers: 256,
    // All processes have one number, as that of the README's example.
    open(number) {
      const { SnowFlake } = require('../..');
      const node = number ?? (1 << 5) + 3;
      return new SnowFlake({ datacenterId: node >> 5, workerId: node & 31 }).nextId;
    },
    text: (id) => require('../../js/id.js').toBase32(id),
  },
  uuidv7: {
    name: 'UUIDv7 (`uuid`)',
    package: 'uuid',
    column: 'uuid',
    numbers: 0,
    open: async () => (await import('uuid')).v7,
  },
  randomUUIDv7: {
    name: 'UUIDv7 (`crypto.randomUUIDv7`)',
    package: 'node:crypto',
    column: 'uuid',
    numbers: 0,
    open: () => crypto.randomUUIDv7,
    missing: crypto.randomUUIDv7 ? undefined : `Node ${process.version} has no randomUUIDv7()`,
  },
  ulid: {
    name: 'ULID (`ulid`)',
    package: 'ulid',
    column: 'text',
    numbers: 0,
    open: () => require('ulid').ulid,
  },
  'ulid, monotonic': {
    name: '`monotonicFactory()` of `ulid`',
    isMinor: true,
    package: 'ulid',
    column: 'text',
    numbers: 0,
    open: () => require('ulid').monotonicFactory(),
  },
  tsid: {
    name: 'TSID (`tsid-ts`)',
    package: 'tsid-ts',
    column: 'bigint',
    numbers: 1024,
    open(number) {
      const { TSIDGenerator, getTsid } = require('tsid-ts');
      if (number === undefined) return () => getTsid().toBigInt();
      const generator = new TSIDGenerator(number);
      return () => generator.create().toBigInt();
    },
    text(id) {
      const { TSID } = require('tsid-ts');
      return new TSID(id).toString();
    },
  },
  'nodejs-snowflake': {
    name: 'nodejs-snowflake',
    package: 'nodejs-snowflake',
    column: 'bigint',
    numbers: 4096,
    open(number) {
      const { Snowflake } = require('nodejs-snowflake');
      const generator = new Snowflake(
        number === undefined ? undefined : { custom_epoch: EPOCH, instance_id: number },
      );
      return () => generator.getUniqueID();
    },
  },
  '@sapphire/snowflake': {
    name: '@sapphire/snowflake',
    package: '@sapphire/snowflake',
    column: 'bigint',
    numbers: 1024,
    open(number) {
      const { Snowflake } = require('@sapphire/snowflake');
      const generator = new Snowflake(new Date(EPOCH));
      if (number !== undefined) {
        generator.workerId = number >> 5;
        generator.processId = number & 31;
      }
      return () => generator.generate();
    },
  },
  'flake-idgen': {
    name: 'flake-idgen',
    package: 'flake-idgen',
    column: 'bigint',
    numbers: 1024,
    open(number) {
      const FlakeId = require('flake-idgen');
      const generator = new FlakeId(number === undefined ? undefined : { id: number });
      return () => generator.next();
    },
    store: bigintOf,
    isFull: ({ message }) => /^Sequence exceeded/.test(message),
  },
  autoincrement: {
    name: 'autoincrement (`pg`)',
    package: 'pg',
    column: 'identity',
    numbers: 0,
    isAsync: true,
    // One row each, as an application that needs the ID of a new row.
    async open() {
      const { Client } = require('pg');
      const client = new Client(process.env.DATABASE_URL);
      // It may outlive the server.
      client.on('error', () => {});
      await client.connect();
      await client.query(
        'CREATE TABLE IF NOT EXISTS counted (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)',
      );
      const insert = { name: 'insert', text: 'INSERT INTO counted DEFAULT VALUES RETURNING id' };
      return async () => BigInt((await client.query(insert)).rows[0].id);
    },
  },
  uuidv4: {
    name: 'UUIDv4 (`crypto.randomUUID`)',
    isMinor: true,
    package: 'node:crypto',
    column: 'uuid',
    numbers: 0,
    open: () => crypto.randomUUID,
  },
};

/** A function that draws one ID, and again when the millisecond is full. */
async function open(kind, number) {
  const { isFull, open: opened } = KINDS[kind];
  const draw = await opened(number);
  if (isFull === undefined) return draw;
  return () => {
    for (;;) {
      try {
        return draw();
      } catch (error) {
        if (!isFull(error)) throw error;
      }
    }
  };
}

/** An ID as its column and its order take it: a bigint or a string. */
function stored(kind, id) {
  return KINDS[kind].store?.(id) ?? id;
}

/** A stored ID as clients see it: text whose order is that of the IDs, where the package writes such. */
function textOf(kind, id) {
  return String(KINDS[kind].text?.(id) ?? id);
}

/** The number of a generator that stays itself: as one would run it. */
const numberOf = (kind) => (KINDS[kind].numbers > 0 ? 3 : undefined);

/** The kinds that can be opened here. */
const namesHere = () =>
  Object.keys(KINDS).filter(
    (kind) => !KINDS[kind].missing && (process.env.DATABASE_URL || !KINDS[kind].isAsync),
  );

/** The version of a kind's package that is loaded here. */
function versionOf(kind) {
  const { package: name } = KINDS[kind];
  if (name === 'snowdrift') return require('../../package.json').version;
  if (name.startsWith('node:')) return process.version;
  const path = require.resolve(name);
  const folder = path.slice(0, path.lastIndexOf(`/${name}/`) + name.length + 2);
  return createRequire(folder)('./package.json').version;
}

module.exports = { KINDS, namesHere, numberOf, open, stored, textOf, versionOf };
