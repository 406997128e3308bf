'use strict';
// Leases from Google Cloud Storage, on its client in small: the conditions of each write, the probe, and what becomes of strange
// replies. stores.test.js has the real client, in storms.

const assert = require('node:assert/strict');
const Module = require('node:module');
const { PassThrough, Writable } = require('node:stream');
const { describe, test } = require('node:test');
const { inspect } = require('node:util');

require('../support/own-directory.js');
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
const { gcs } = require('../../js/stores/gcs.js');
const { SnowFlake, rejects } = require('../support/support.js');

/** An error as the client makes it of a reply. */
const failure = (code, message, response) =>
  Object.assign(new Error(message), { name: 'ApiError', code, response });

/** A bucket of the client. `answer` may take a call before the service does: it returns a reply, or throws. */
class Bucket {
  name = 'ids';
  /** The uploads that were sent. */
  sent = [];
  #generation = 1;

  constructor(stored = new Map(), { answer = () => undefined, isCareless = false } = {}) {
    Object.assign(this, { stored, answer, isCareless });
  }

  set(path, content) {
    this.stored.set(path, { content, generation: String(++this.#generation) });
  }

  async #get(stream, path) {
    await new Promise(setImmediate);
    const found = this.answer('get', path) ?? this.stored.get(path);
    const { content, generation, date = new Date().toUTCString() } = found ?? {};
    const headers = { date, ...(generation && { 'x-goog-generation': generation }) };
    const statusCode = found === undefined ? 404 : 200;
    stream.emit('response', { statusCode, headers });
    stream.end(content ?? `No such object: ids/${path}`);
  }

  async #put(path, content, options) {
    this.sent.push({ path, content, options });
    await new Promise(setImmediate);
    if (this.answer('put', path)) return;
    const { generation = '0' } = this.stored.get(path) ?? {};
    const { ifGenerationMatch } = options.preconditionOpts;
    if (!this.isCareless && String(ifGenerationMatch) !== generation) {
      throw failure(412, 'At least one of the pre-conditions you specified did not hold.');
    }
    this.set(path, content);
  }

  file(path) {
    return {
      requestStream: () => {
        const stream = new PassThrough();
        this.#get(stream, path).catch((error) => stream.destroy(error));
        return stream;
      },
      createWriteStream: (options) => {
        let content = '';
        return new Writable({
          write(part, _, done) {
            content += part;
            done();
          },
          final: (done) => void this.#put(path, content, options).then(() => done(), done),
        });
      },
    };
  }

  async getFiles({ prefix, pageToken = 0 }) {
    const names = [...this.stored.keys()].map((path) => path.slice(prefix.length).split('/')[0]);
    const prefixes = [...new Set(names)].sort().map((name) => `${prefix}${name}/`);
    // A page has one.
    const next = pageToken + 1 < prefixes.length ? { prefix, pageToken: pageToken + 1 } : null;
    return [[], next, { prefixes: prefixes.slice(pageToken, pageToken + 1) }];
  }
}

function open({ options, stored, ...more } = {}) {
  const bucket = new Bucket(stored, more);
  return { bucket, register: gcs(bucket, options) };
}

const isProbe = ({ path }) => path.endsWith('/probe');
/** The writes of records that were sent. */
const writesOf = ({ sent }) => sent.filter((upload) => !isProbe(upload));

describe('Google Cloud Storage in memory', () => {
  const bucket = new Bucket();
  registerContract('the contract', (namespace) => gcs(bucket, { namespace }), {
    spoil: async (namespace, key) => bucket.set(`snowdrift/${namespace}/${key}`, 'nonsense'),
    openSilent() {
      const file = () => ({
        requestStream: () => new PassThrough(),
        createWriteStream: () => new Writable({ write() {} }),
      });
      return gcs(Object.assign(new Bucket(), { file }), { namespace: 'silent' });
    },
  });
});

test('a write has the generation of the object whose token it has compared as its condition', async () => {
  const { bucket, register } = open({ options: { prefix: 'app/ids', namespace: 'orders' } });
  assert.deepEqual(
    [register.name, register.bucketSize, register.ttl],
    ['gcs:ids/app/ids/orders', 8, 180_000],
  );
  await register.write('0/1', RECORD, undefined, { signal });
  const { generation } = bucket.stored.get('app/ids/orders/0/1');
  await register.write('0/1', OTHER, RECORD.token, { signal });
  const options = {
    ...{ resumable: false, validation: false },
    metadata: { cacheControl: 'no-store', contentType: 'text/plain' },
  };
  const path = 'app/ids/orders/0/1';
  assert.deepEqual(writesOf(bucket), [
    {
      path,
      content: contentOf(RECORD),
      options: { ...options, preconditionOpts: { ifGenerationMatch: 0 } },
    },
    {
      ...{ path, content: contentOf(OTHER) },
      options: { ...options, preconditionOpts: { ifGenerationMatch: generation } },
    },
  ]);
  assert.equal(bucket.sent.filter(isProbe).length, 3);
});

registerObjectTests((onWrite = () => {}) => {
  const { bucket, register } = open({
    answer: (call, path) => (call === 'put' && path === KEY ? onWrite() : undefined),
  });
  const set = (content) => bucket.set(KEY, content);
  const get = () => bucket.stored.get(KEY).content;
  return { register, set, get, writes: () => writesOf(bucket) };
});

test('a write whose condition is not met, since it was done before, is written', async () => {
  const { bucket, register } = open({
    answer(call, path) {
      if (call !== 'put' || path !== KEY) return;
      bucket.set(KEY, contentOf(OTHER));
      throw failure(412, 'conditionNotMet');
    },
  });
  const { isWritten } = await register.write('a', OTHER, undefined, { signal });
  assert.equal(isWritten, true);
});

test('a write that comes too soon after another one is sent again', async () => {
  let isSoon = true;
  const { bucket, register } = open({
    answer(call, path) {
      if (call !== 'put' || path !== KEY || !isSoon) return;
      isSoon = false;
      throw failure(429, 'rateLimitExceeded');
    },
  });
  const { isWritten } = await register.write('a', RECORD, undefined, { signal });
  assert.deepEqual([isWritten, writesOf(bucket).length], [true, 2]);
  assert.equal(bucket.stored.get(KEY).content, contentOf(RECORD));
});

test('an emulator that ignores the condition is refused at the first lease', async () => {
  const { bucket, register } = open({ isCareless: true });
  // Twice, since an earlier probe may have left its object.
  for (let n = 0; n < 2; n++) {
    const lease = SnowFlake.lease(register, { datacenterId: 1 });
    const { message } = await rejects(lease, 'ERR_SNOWFLAKE_CONFIG');
    assert.match(
      message,
      /gcs:ids\/snowdrift\/default cannot lease worker IDs: .*ifGenerationMatch/,
    );
    assert.deepEqual(writesOf(bucket), []);
  }
});

test('an object without a generation, or with 0, is never replaced', async () => {
  for (const generation of [undefined, '', '0', '-1', '1e3', '*']) {
    const { bucket, register } = open({
      answer: (call, path) =>
        call === 'get' && path === KEY ? { content: contentOf(RECORD), generation } : undefined,
    });
    await assert.rejects(
      register.write('a', OTHER, RECORD.token, { signal }),
      /an object with the generation/,
    );
    assert.deepEqual(writesOf(bucket), []);
  }
});

test('strange replies are errors: other formats, long objects, no clock, refused conditions', async () => {
  const reading = (answer) => open({ answer: (call) => (call === 'get' ? answer() : undefined) });
  const { register: html } = reading(() => ({ content: '<html>Sign in</html>', generation: '7' }));
  await assert.rejects(html.read('a', { signal }), /<html>/);
  const { register: long } = reading(() => ({ content: 'x'.repeat(70_000), generation: '7' }));
  await assert.rejects(long.read('a', { signal }), /more than 65536 bytes/);
  const { register: timeless } = reading(() => ({ content: contentOf(RECORD), date: 'never' }));
  await assert.rejects(timeless.now({ signal }), /no header Date/);
  const { register } = open({
    answer(call, path) {
      if (call === 'put' && path === KEY) throw failure(412, 'conditionNotMet');
    },
  });
  await assert.rejects(register.write('a', RECORD, undefined, { signal }), /refused to replace/);
});

test('an error says what lacks, and shows neither the token nor the request', async () => {
  const token = 'ya29.geheim-EXAMPLE';
  const response = { request: { headers: { Authorization: `Bearer ${token}` } } };
  const denied =
    'app@ids.iam.gserviceaccount.com does not have storage.objects.create access to the Google Cloud Storage object.';
  for (const [code, message, ours, said] of [
    [404, 'The specified bucket does not exist.', 'CONFIG', /there is no bucket 'ids'/],
    [403, `${denied} ${token}`, 'STORE', /grant this user the rights/],
    [503, `backendError, for ${token}`, 'STORE', /backendError/],
    [
      undefined,
      'Could not load the default credentials',
      'STORE',
      /GOOGLE_APPLICATION_CREDENTIALS/,
    ],
  ]) {
    const { register } = open({
      answer(call) {
        if (call === 'put') throw failure(code, message, response);
      },
    });
    const error = await rejects(
      SnowFlake.lease(register, { datacenterId: 1, callTimeout: 1000 }),
      `ERR_SNOWFLAKE_${ours}`,
    );
    assert.match(error.message, said);
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /EXAMPLE/);
  }
});

test('a new namespace is compared with those of all pages', async () => {
  const { bucket, register } = open();
  for (const key of ['orders/namespace', 'orders/0/1', 'users/0/0']) {
    bucket.set(`snowdrift/${key}`, '');
  }
  assert.deepEqual(await register.namespaces({ signal }), ['orders', 'users']);
});

test('what is no bucket and no prefix is refused', () => {
  for (const [given, options, message] of [
    [{}, {}, /gcs\(\) takes a Bucket/],
    [{ bucket() {} }, {}, /gcs\(\) takes a Bucket/],
    [new Bucket(), { prefix: '/a' }, /prefix must be/],
    [new Bucket(), { prefix: '' }, /prefix must be/],
    [new Bucket(), { bucket: 'ids' }, /bucket/],
  ]) {
    assert.throws(() => gcs(given, options), { code: 'ERR_SNOWFLAKE_CONFIG', message });
  }
});

describe('by URL', () => {
  const opened = [];
  const { _load: load } = Module;
  const Storage = class {
    constructor(options) {
      opened.push(options);
    }

    bucket(name) {
      return Object.assign(new Bucket(), { name });
    }
  };
  Module._load = (request, ...rest) =>
    request === '@google-cloud/storage' ? { Storage } : load.call(Module, request, ...rest);

  test('names a bucket and a prefix, and leaves trying again to the lease', async () => {
    const own = await connect(new URL('gs://ids/a/b/?namespace=x&endpoint=http://127.0.0.1:9000'));
    assert.deepEqual([own.name, own.server], ['gcs:ids/a/b/x', 'Google Cloud Storage at ids/a/b/']);
    const { apiEndpoint, retryOptions, timeout } = opened.at(-1);
    assert.deepEqual([apiEndpoint, retryOptions.autoRetry], ['http://127.0.0.1:9000', false]);
    assert.ok(timeout > 0);
    const { name } = await connect(new URL('gs://ids'));
    assert.equal(name, 'gcs:ids/snowdrift/default');
  });

  test('leases for three minutes', async () => {
    const flake = await SnowFlake.lease('gs://ids/app', { datacenterId: 1, scope: 'process' });
    const { expires } = flake.lease;
    await flake.close();
    assert.equal(Math.round((expires - Date.now()) / 10_000), 18);
  });

  test('with a login, another option or no bucket is refused', async () => {
    for (const [url, said] of [
      ['gs://app:geheim@ids/app', /has a login: remove it.*GOOGLE_APPLICATION_CREDENTIALS/],
      ['gs://ids/app?keyFilename=geheim', /which its client does not know/],
      ['gs:///app', /must name a bucket/],
      ['gs://ids:443/app', /must name a bucket/],
      ['gs://ids/app?endpoint=ftp://x', /must be a URL that begins with/],
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
