'use strict';
// Leases from S3, on the AWS SDK in small: the conditions of each write, the probe, and what becomes of strange replies.
// stores.test.js has real clients, in storms.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');

require('../support/own-directory.js');
const aws = require('../support/lease/fake-aws.js');
const {
  KEY,
  OTHER,
  RECORD,
  contentOf,
  registerObjectTests,
  signal,
} = require('../support/lease/objects.js');
const { connect } = require('../../js/stores/connect.js');
const { registerContract } = require('../../js/stores/contract.js');
const { s3 } = require('../../js/stores/s3.js');
const { CachedSnowFlake, SnowFlake, rejects } = require('../support/support.js');
const { memory } = require('../../js/stores/memory.js');

/** A register, its client, and what is stored. `answer` may take a command before the service does. */
function open({ answer = () => undefined, options, ...more } = {}) {
  const stored = new Map();
  const service = aws.bucket(stored, more);
  const client = new aws.Client((command) => answer(command, stored) ?? service(command));
  return { stored, client, register: s3(client, { bucket: 'ids', ...options }) };
}

const isPut = ({ input }) => input.Body !== undefined;
const isProbe = ({ input }) => input.Key?.endsWith('/probe');

/** The writes of records that were sent. */
const writesOf = ({ sent }) => sent.filter((command) => isPut(command) && !isProbe(command));

describe('S3 in memory', () => {
  const stored = new Map();
  const openOn = (service) => (namespace) =>
    s3(new aws.Client(service), { bucket: 'ids', namespace });
  registerContract('the contract', openOn(aws.bucket(stored)), {
    spoil: (namespace, key) => stored.set(`snowdrift/${namespace}/${key}`, 'nonsense'),
    openSilent: () => openOn(() => new Promise(() => {}))('silent'),
  });
});

test('a write has the ETag of the object whose token it has compared as its condition', async () => {
  const { client, stored, register } = open({
    options: { prefix: 'app/ids', namespace: 'orders' },
  });
  await register.write('0/1', RECORD, undefined, { signal });
  await register.write('0/1', OTHER, RECORD.token, { signal });
  assert.deepEqual([...stored.keys()], ['app/ids/orders/probe', 'app/ids/orders/0/1']);
  const place = { Bucket: 'ids', Key: 'app/ids/orders/0/1' };
  const etag = aws.etagOf(contentOf(RECORD));
  assert.deepEqual(
    writesOf(client).map(({ input }) => input),
    [
      { ...place, Body: contentOf(RECORD), IfNoneMatch: '*' },
      { ...place, Body: contentOf(OTHER), IfMatch: etag },
    ],
  );
});

registerObjectTests((onWrite = () => {}) => {
  const { client, stored, register } = open({
    answer: (command) => (isPut(command) && !isProbe(command) ? onWrite() : undefined),
  });
  const set = (content) => void stored.set(KEY, content);
  return { register, set, get: () => stored.get(KEY), writes: () => writesOf(client) };
});

test('a conflict with another write that then fails is tried again', async () => {
  let conflicts = 3;
  const { stored, register } = open({
    answer(command) {
      if (!isPut(command) || isProbe(command) || conflicts-- <= 0) return undefined;
      throw aws.serviceError('ConditionalRequestConflict', 'Conflict', 409);
    },
  });
  const reply = await register.write('a', RECORD, undefined, { signal });
  assert.equal(reply.isWritten, true);
  assert.equal(stored.get(KEY), contentOf(RECORD));
});

test('a store that ignores a condition is refused at the first lease, and so is one without them', async () => {
  const lacking = () => {
    throw aws.serviceError('NotImplemented', 'A header is not implemented', 501);
  };
  for (const how of [
    { ignores: ['IfNoneMatch'] },
    { ignores: ['IfMatch'] },
    { ignores: ['IfMatch', 'IfNoneMatch'] },
    { answer: (command) => (isPut(command) ? lacking() : undefined) },
  ]) {
    const { client, register } = open(how);
    // Twice, since an earlier probe may have left its object.
    for (let n = 0; n < 2; n++) {
      const lease = SnowFlake.lease(register, { datacenterId: 1 });
      const { message } = await rejects(lease, 'ERR_SNOWFLAKE_CONFIG');
      assert.match(
        message,
        /^.*s3:ids\/snowdrift\/default cannot lease worker IDs: .*If-None-Match/,
      );
      assert.deepEqual(writesOf(client), []);
    }
  }
});

test('the probe costs two or three writes, once', async () => {
  const { client, stored, register } = open();
  await register.read('a', { signal });
  assert.equal(client.sent.filter(isProbe).length, 0);
  await register.write('a', RECORD, undefined, { signal });
  await register.write('a', OTHER, RECORD.token, { signal });
  assert.equal(client.sent.filter(isProbe).length, 3);
  const next = new aws.Client(aws.bucket(stored));
  await s3(next, { bucket: 'ids' }).write('a', RECORD, OTHER.token, { signal });
  assert.equal(next.sent.filter(isProbe).length, 2);
});

test('an object without an ETag, or with one that matches all, is never replaced', async () => {
  for (const ETag of [undefined, null, '', '*', 7]) {
    const { client, register } = open({
      answer: (command) =>
        command instanceof aws.GetObjectCommand
          ? { Body: aws.bodyOf(contentOf(RECORD)), ETag }
          : undefined,
    });
    await assert.rejects(
      register.write('a', OTHER, RECORD.token, { signal }),
      /an object with the ETag/,
    );
    assert.deepEqual(writesOf(client), []);
  }
});

test('a store that never accepts its own ETag ends the call with an error', async () => {
  const { stored, register } = open({
    answer(command) {
      if (!isPut(command) || isProbe(command)) return undefined;
      throw aws.serviceError('PreconditionFailed', 'A condition did not hold', 412);
    },
  });
  await assert.rejects(register.write('a', RECORD, undefined, { signal }), /refused to replace/);
  stored.set(KEY, contentOf(RECORD));
  await assert.rejects(register.write('a', OTHER, RECORD.token, { signal }), /refused to replace/);
});

test('objects of another format are errors', async () => {
  for (const [body, said] of [
    ['', /snowdrift.*a/s],
    ['<html>', /<html>/],
  ]) {
    const { stored, register } = open();
    stored.set(KEY, body);
    await assert.rejects(register.read('a', { signal }), said);
  }
});

test('a write that is confirmed without an ETag is an error', async () => {
  const { register } = open({
    answer: (command) => (isPut(command) && !isProbe(command) ? {} : undefined),
  });
  await assert.rejects(register.write('a', RECORD, undefined, { signal }), /without the ETag/);
});

test('an error says what lacks: the bucket, a right, or the right to see what is not there', async () => {
  for (const [error, code, said] of [
    [['NoSuchBucket', 'The bucket does not exist', 404], 'CONFIG', /there is no bucket ids/],
    [['AccessDenied', 'Access Denied', 403], 'STORE', /grant this user the rights.*s3:ListBucket/],
    [
      ['InvalidAccessKeyId', 'The AWS Access Key Id you provided does not exist', 403],
      'STORE',
      /refused the keys/,
    ],
  ]) {
    const { register } = open({
      answer() {
        throw aws.serviceError(...error);
      },
    });
    const lease = SnowFlake.lease(register, { datacenterId: 1 });
    assert.match((await rejects(lease, `ERR_SNOWFLAKE_${code}`)).message, said);
  }
});

test('a new namespace is compared with those of all pages', async () => {
  const { stored, register } = open();
  for (const key of ['orders/namespace', 'orders/0/1', 'users/0/0'])
    stored.set(`snowdrift/${key}`, '');
  assert.deepEqual(await register.namespaces({ signal }), ['orders', 'users']);
});

test('its ttl is three minutes, unless a lease has another; so may be that of an own store', async () => {
  const ttlOf = async (store, options, of = SnowFlake) => {
    const flake = await of.lease(store, { datacenterId: 1, scope: 'process', ...options });
    const { expires } = flake.lease;
    await flake.close();
    return Math.round((expires - Date.now()) / 10_000) * 10_000;
  };
  aws.S3Client.service = aws.bucket();
  const url = 's3://ids/app?region=eu-central-1';
  assert.equal(await ttlOf(open().register), 180_000);
  assert.equal(await ttlOf(open().register, {}, CachedSnowFlake), 180_000);
  assert.equal(await ttlOf(url), 180_000);
  assert.equal(await ttlOf(open().register, { ttl: 60_000 }), 60_000);
  assert.equal(await ttlOf({ ...memory(), ttl: 90_000 }), 90_000);
  assert.equal(await ttlOf(memory()), 30_000);
  for (const ttl of [7, 'long', null, 4_000_000]) {
    await rejects(
      SnowFlake.lease({ ...memory(), ttl }, { datacenterId: 1 }),
      'ERR_SNOWFLAKE_CONFIG',
    );
  }
  const throwing = memory();
  Object.defineProperty(throwing, 'ttl', {
    get() {
      throw new Error('no');
    },
  });
  await rejects(SnowFlake.lease(throwing, { datacenterId: 1 }), 'ERR_SNOWFLAKE_CONFIG');
});

test('what is no client, no bucket and no prefix is refused', () => {
  const client = new aws.Client(aws.bucket());
  for (const [given, options, message] of [
    [{}, { bucket: 'ids' }, /s3\(\) takes an S3Client/],
    [client, {}, /bucket must be/],
    [client, { bucket: 'a b' }, /bucket must be/],
    [client, { bucket: 'ids', prefix: '' }, /prefix must be/],
    [client, { bucket: 'ids', prefix: '/a' }, /prefix must be/],
    [client, { bucket: 'ids', prefix: 'a//b' }, /prefix must be/],
    [client, { bucket: 'ids', prefix: 'a'.repeat(301) }, /prefix must be/],
  ]) {
    assert.throws(() => s3(given, options), { code: 'ERR_SNOWFLAKE_CONFIG', message });
  }
});

describe('by URL', () => {
  test('names a bucket and a prefix; a service of its own gets what such services know', async () => {
    const endpoint = 'http://127.0.0.1:9000';
    const own = await connect(
      new URL(`s3://ids/a/b/?region=auto&namespace=x&endpoint=${endpoint}`),
    );
    assert.equal(own.name, 's3:ids/a/b/x');
    assert.equal(own.server, 'S3 at ids/a/b/');
    assert.deepEqual(aws.S3Client.opened.at(-1).options, {
      ...{ region: 'auto', endpoint, forcePathStyle: true },
      ...{
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
      },
    });
    const { name } = await connect(new URL('s3://ids?region=eu-central-1'));
    assert.equal(name, 's3:ids/snowdrift/default');
    assert.deepEqual(aws.S3Client.opened.at(-1).options, {
      ...{ region: 'eu-central-1', endpoint: undefined },
    });
  });

  test('has no endpoint and no region of Object.prototype', async () => {
    const polluted = { endpoint: 'http://evil', region: 'evil' };
    Object.assign(Object.prototype, polluted);
    try {
      await connect(new URL('s3://ids'));
    } finally {
      for (const name of Object.keys(polluted)) delete Object.prototype[name];
    }
    const { region, endpoint } = aws.S3Client.opened.at(-1).options;
    assert.deepEqual([region, endpoint], [undefined, undefined]);
  });

  test('with keys, another option or no bucket is refused, and shows no key', async () => {
    for (const [url, said] of [
      ['s3://AKIAXX:geheim@ids/app', /has a login: remove it.*AWS_PROFILE/],
      ['s3://ids/app?accessKeyId=geheim', /an option, which its client does not know/],
      ['s3:///app', /must name a bucket/],
      ['s3://ids:443/app', /must name a bucket/],
      ['s3://ids/app?endpoint=ftp://x', /must be a URL that begins with/],
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
