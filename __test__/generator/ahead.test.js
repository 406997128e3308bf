'use strict';
// Ahead of the clock needs proof: maxAhead above 0 takes a record or a lease, whose ceiling survives the process and
// its page. Without one, every door refuses it.

const assert = require('node:assert/strict');
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { afterEach, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { SnowFlakeModule } = require('../../js/nestjs.js');
const { memory } = require('../../js/stores/memory.js');
const { removeDirectory } = require('../support/own-directory.js');
const {
  CachedSnowFlake,
  SnowFlake,
  entry,
  layouts,
  refuses,
  runWorker,
  standing,
} = require('../support/support.js');

const ahead = { maxAhead: 250 };
const node = { datacenterId: 2, workerId: 1 };
const text =
  /^maxAhead is 250 ms, and nothing records this node: .* state: '.*', lease .*, or leave out maxAhead$/;

/** What a test has opened, and directories that it has made. */
const flakes = [];
const directories = [];
const opened = (flake) => {
  flakes.push(flake);
  return flake;
};
const directory = () => {
  const path = mkdtempSync(join(tmpdir(), 'snowdrift-ahead-'));
  directories.push(path);
  return path;
};

afterEach(async () => {
  await Promise.all(flakes.splice(0).map((flake) => flake.close()));
  for (const path of directories.splice(0)) removeDirectory(path);
});

for (const Class of [SnowFlake, CachedSnowFlake]) {
  test(`a ${Class.name} of a named node is refused in every scope and layout`, () => {
    for (const more of [
      {},
      { scope: 'auto' },
      { scope: 'host' },
      { scope: 'process' },
      // Shorter than a tick.
      { datacenterId: 0, layout: { ...layouts.uid, epoch: Date.UTC(2026, 0) } },
      { datacenterId: 0, layout: 'safe' },
    ]) {
      const { message } = refuses(
        () => new Class({ ...node, ...ahead, ...more }),
        'ERR_SNOWFLAKE_CONFIG',
      );
      assert.match(message, text);
    }
    assert.equal(typeof opened(new Class({ ...node, maxAhead: 0 })).nextId(), 'bigint');
  });

  test(`a ${Class.name} may run ahead with a record or a lease`, async () => {
    const state = directory();
    const file = pathToFileURL(directory()).href;
    // Another holder of these slots may have issued IDs ahead: the next one waits for the clock.
    const of = { datacenterId: 3, ...ahead, maxWait: 60_000 };
    for (const flake of [
      () => new Class({ ...of, workerId: 0, state }),
      () => new Class({ ...of, workerId: 1, state, scope: 'process' }),
      () => new Class({ ...of, lease: file }),
      () => Class.lease(file, { ...of, scope: 'process' }),
      () => Class.lease(memory(), of),
      () => Class.lease(memory(), { ...of, scope: 'process' }),
    ]) {
      const one = opened(await flake());
      assert.equal(typeof (await one.nextIdAsync()), 'bigint');
      await one.close();
    }
  });
}

test('the environment names the record or the lease of options', async () => {
  for (const [name, value, options] of [
    ['SNOWDRIFT_STATE', directory(), { ...node, ...ahead }],
    ['SNOWDRIFT_LEASE', pathToFileURL(directory()).href, { datacenterId: 2, ...ahead }],
  ]) {
    process.env[name] = value;
    try {
      await opened(new SnowFlake(options)).close();
    } finally {
      delete process.env[name];
    }
  }
});

test('an instance with a clock has a sequence of its own, and may run ahead of it', () => {
  const flake = opened(new SnowFlake({ ...node, ...ahead, clock: standing(Date.now()) }));
  assert.equal(flake.nextIds(200 * 4096).length, 200 * 4096);
});

test('the default instance, the module of NestJS and worker threads have no other rule', async () => {
  const options = { ...node, ...ahead };
  assert.match(refuses(() => SnowFlake.configure(options), 'ERR_SNOWFLAKE_CONFIG').message, text);
  for (const cached of [false, true]) {
    const Class = cached ? CachedSnowFlake : SnowFlake;
    const { providers } = SnowFlakeModule.forRoot({ ...options, cached });
    const { useFactory } = providers.find(({ provide }) => provide === Class);
    await assert.rejects(useFactory(options), { code: 'ERR_SNOWFLAKE_CONFIG', message: text });
  }
  const message = await runWorker(
    `const { parentPort, workerData } = require('node:worker_threads');
    const { SnowFlake } = require(${JSON.stringify(entry)});
    let message;
    try { new SnowFlake(workerData); } catch (refusal) { ({ message } = refusal); }
    parentPort.postMessage(message);`,
    { workerData: options },
  );
  assert.match(message, text);
});
