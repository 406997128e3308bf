'use strict';
// Leases from DynamoDB, on the AWS SDK in small: what is sent, and what becomes of strange replies. stores.test.js has real
// clients, in storms.

const assert = require('node:assert/strict');
const { PassThrough, Readable } = require('node:stream');
const { describe, test } = require('node:test');
const { inspect } = require('node:util');

require('../support/own-directory.js');
const aws = require('../support/lease/fake-aws.js');
const { connect } = require('../../js/stores/connect.js');
const { registerContract } = require('../../js/stores/contract.js');
const { dynamodb } = require('../../js/stores/dynamodb.js');
const { SnowFlake, rejects } = require('../support/support.js');

const { signal } = new AbortController();
const RECORD = { token: '0123456789abcdef', text: 'a text' };
const OTHER = { token: 'fedcba9876543210', text: 'another' };

/** A register, its client, and what is stored. */
function open({ service, options, ...more } = {}) {
  const stored = new Map();
  const client = new aws.Client(service ?? aws.dynamo(stored, more));
  return { stored, client, register: dynamodb(client, options) };
}

const failing = (...error) =>
  open({
    service: () => {
      throw aws.serviceError(...error);
    },
  });

describe('DynamoDB in memory', () => {
  const stored = new Map();
  const silence = () => new Promise(() => {});
  const openOn = (service) => (namespace) => dynamodb(new aws.Client(service), { namespace });
  registerContract('the contract', openOn(aws.dynamo(stored)), {
    spoil: (namespace, key) =>
      stored.set(`${namespace}#${key}`, { token: { S: 'nonsense' }, text: { S: 'x' } }),
    openSilent: () => openOn(silence)('silent'),
  });
});

describe('where a refused write does not return the item', () => {
  const stored = new Map();
  registerContract('the contract', (namespace) =>
    dynamodb(new aws.Client(aws.dynamo(stored, { tells: false })), { namespace }),
  );
});

test('reads are consistent, and each write has its condition', async () => {
  const { client, register } = open({ options: { table: 'ids', namespace: 'orders' } });
  await register.read('0/1', { signal });
  await register.write('0/1', RECORD, undefined, { signal });
  await register.write('0/1', OTHER, RECORD.token, { signal });
  const Item = ({ token, text }) => ({
    ...{ id: { S: 'orders#0/1' }, token: { S: token }, text: { S: text } },
  });
  const put = {
    TableName: 'ids',
    ReturnValues: 'ALL_OLD',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
  assert.deepEqual(
    client.sent.map(({ input }) => input),
    [
      { TableName: 'ids', Key: { id: { S: 'orders#0/1' } }, ConsistentRead: true },
      { ...put, Item: Item(RECORD), ConditionExpression: 'attribute_not_exists(id)' },
      {
        ...{ ...put, Item: Item(OTHER), ConditionExpression: '#token = :before' },
        ExpressionAttributeNames: { '#token': 'token' },
        ExpressionAttributeValues: { ':before': { S: RECORD.token } },
      },
    ],
  );
});

test('its clock is the header Date of a reply, also of a refusal: the middle of that second', async () => {
  const { client, register } = open();
  client.headers = () => ({ date: 'Thu, 26 Nov 2026 13:25:15 GMT' });
  const now = Date.UTC(2026, 10, 26, 13, 25, 15, 500);
  assert.equal(await register.now({ signal }), now);
  const replies = [
    await register.read('a', { signal }),
    await register.write('a', RECORD, undefined, { signal }),
    await register.write('a', OTHER, undefined, { signal }),
    await register.write('b', OTHER, RECORD.token, { signal }),
  ];
  assert.deepEqual(
    replies.map((reply) => reply.now),
    Array(4).fill(now),
  );
});

test('without that header, the clock is an error, and the other calls leave it out', async () => {
  for (const headers of [undefined, {}, { date: 'yesterday' }]) {
    const { client, register } = open();
    client.headers = () => headers;
    assert.equal((await register.read('a', { signal })).now, undefined);
    assert.deepEqual(await register.write('a', RECORD, undefined, { signal }), {
      ...{ isWritten: true, now: undefined },
    });
    await assert.rejects(register.now({ signal }), /no header Date/);
  }
});

test('a table that is missing, or has another key, is an error with the command that creates it', async () => {
  const missing = ['ResourceNotFoundException', 'Requested resource not found'];
  const otherKey = ['ValidationException', 'The provided key element does not match the schema'];
  for (const [error, said] of [
    [missing, /table snowdrift_records is not in this account and Region/],
    [otherKey, /table snowdrift_records has another key than the text id/],
  ]) {
    const { register } = failing(...error);
    const lease = SnowFlake.lease(register, { datacenterId: 1 });
    const { message } = await rejects(lease, 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, said);
    assert.match(
      message,
      /aws dynamodb create-table --table-name snowdrift_records .*=id,KeyType=HASH/,
    );
  }
});

test('an error says what to do about rights and credentials', async () => {
  const denied =
    'User: arn:aws:sts::1:assumed-role/app is not authorized to perform: dynamodb:PutItem on resource: x';
  for (const [name, said, remedy] of [
    ['AccessDeniedException', denied, /denied access: grant this user the rights/],
    [
      'UnrecognizedClientException',
      'The security token included in the request is invalid.',
      /refused the keys/,
    ],
    [
      'ExpiredTokenException',
      'The security token included in the request is expired',
      /refused the keys/,
    ],
    ['CredentialsProviderError', 'Could not load credentials from any providers', /AWS_PROFILE/],
    ['ProvisionedThroughputExceededException', 'Rate exceeded', /failed to .*Rate exceeded/],
  ]) {
    const { register } = failing(name, said);
    const { message } = await rejects(
      SnowFlake.lease(register, { datacenterId: 1 }),
      'ERR_SNOWFLAKE_STORE',
    );
    assert.match(message, remedy);
  }
});

test('an error that quotes the request does not show the token of a session', async () => {
  const token = 'IQoJb3JpZ2luX2VjEJr//EXAMPLE+token==';
  const { client, register } = open({
    service() {
      throw aws.serviceError(
        'InvalidSignatureException',
        `The request signature we calculated does not match the one of ${token}.\n\nx-amz-security-token:${token}`,
      );
    },
  });
  client.signed = { 'x-amz-security-token': token };
  const lease = SnowFlake.lease(register, { datacenterId: 1 });
  const error = await rejects(lease, 'ERR_SNOWFLAKE_STORE');
  assert.match(error.message, /signature we calculated does not match/);
  assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes('EXAMPLE'));
});

test('a write that is confirmed without what it has replaced, as where conditions are ignored, is an error', async () => {
  for (const reply of [{}, { Attributes: {} }, { Attributes: { token: { S: OTHER.token } } }]) {
    const { register } = open({ service: () => reply });
    const write = register.write('a', RECORD, 'a'.repeat(16), { signal });
    await assert.rejects(write, /without the token of what it has replaced/);
  }
});

test('a reply has a limit, and its body ends with the call', async () => {
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(10_000);
    })(),
  );
  const silent = new PassThrough();
  for (const [body, said] of [
    [endless, /more than 1048576 bytes/],
    [silent, /late/],
  ]) {
    const { client, register } = open();
    client.body = body;
    const abort = new AbortController();
    const call = register.read('a', { signal: abort.signal });
    if (body === silent) setTimeout(() => abort.abort(new Error('late')), 20);
    await assert.rejects(call, said);
    assert.equal(body.destroyed, true);
  }
});

test('items of other types are errors that name the key', async () => {
  for (const Item of [
    {},
    { token: { S: RECORD.token } },
    { token: { N: '1' }, text: { S: 'x' } },
    { token: { S: 7 }, text: { S: 'x' } },
    { token: null, text: undefined },
    'text',
    7,
    [],
  ]) {
    const { register } = open({ service: () => ({ Item }) });
    await assert.rejects(register.read('0/3', { signal }), /0\/3/);
  }
});

test('a new namespace is compared with those of all pages', async () => {
  const { stored, register } = open();
  for (const id of ['orders#namespace', 'orders#0/1', 'users#namespace', 'default#0/0']) {
    stored.set(id, {});
  }
  assert.deepEqual(await register.namespaces({ signal }), ['orders', 'users']);
});

test('what is no client, and no table, is refused', () => {
  for (const client of [undefined, null, {}, { send: 'x' }, 'dynamodb://eu-central-1']) {
    assert.throws(() => dynamodb(client), {
      ...{ code: 'ERR_SNOWFLAKE_CONFIG', message: /dynamodb\(\) takes a DynamoDBClient/ },
    });
  }
  const client = new aws.Client(aws.dynamo());
  for (const table of ['', 'ab', 'a b', 'x'.repeat(256), 7, null]) {
    assert.throws(() => dynamodb(client, { table }), {
      ...{ code: 'ERR_SNOWFLAKE_CONFIG', message: /table must be the name of a table/ },
    });
  }
});

describe('by URL', () => {
  const by = (url) => connect(new URL(url));

  test('names a Region, a table and an endpoint; close() ends the client', async () => {
    aws.DynamoDBClient.service = aws.dynamo();
    const url = 'dynamodb://eu-central-1/ids?namespace=orders&endpoint=http://127.0.0.1:8000';
    const flake = await SnowFlake.lease(url, { datacenterId: 1 });
    assert.equal(typeof flake.nextId(), 'bigint');
    const { client, options } = aws.DynamoDBClient.opened.at(-1);
    assert.deepEqual(options, { region: 'eu-central-1', endpoint: 'http://127.0.0.1:8000' });
    const tables = client.sent.map(({ input }) => input.TableName);
    assert.deepEqual(new Set(tables), new Set(['ids']));
    await flake.close();
    assert.equal(client.isDestroyed, true);
  });

  test('has a table of its own without a path, and no endpoint but the Region’s', async () => {
    const { name, server } = await by('dynamodb://eu-central-1');
    assert.equal(name, 'dynamodb:snowdrift_records/default');
    assert.equal(server, 'DynamoDB at eu-central-1');
    assert.equal(aws.DynamoDBClient.opened.at(-1).options.endpoint, undefined);
  });

  test('with keys, another option or no Region is refused, and shows no key', async () => {
    for (const [url, said] of [
      ['dynamodb://AKIAXX:geheim@eu-central-1/ids', /has a login: remove it.*AWS_PROFILE/],
      ['dynamodb://AKIAgeheim@eu-central-1/ids', /has a login: remove it/],
      [
        'dynamodb://eu-central-1/ids?secretAccessKey=geheim',
        /an option, which its client does not know.*AWS_PROFILE/,
      ],
      ['dynamodb://eu-central-1:8000/ids', /must name a Region and a table/],
      ['dynamodb:///ids', /must name a Region and a table/],
      ['dynamodb://localhost.local/ids', /must name a Region and a table/],
      ['dynamodb://eu-central-1/ids?endpoint=http://a:geheim%40b', /URL .* without login/],
      ['dynamodb://eu-central-1/ids?endpoint=localhost:8000', /must be a URL that begins with/],
      ['dynamodb://eu-central-1/a/b', /table must be the name of a table/],
    ]) {
      const { message } = await rejects(
        SnowFlake.lease(url, { datacenterId: 1 }),
        'ERR_SNOWFLAKE_CONFIG',
      );
      assert.match(message, said);
      assert.doesNotMatch(message, /geheim/);
    }
  });
});
