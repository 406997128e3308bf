'use strict';
// file: URLs that a parser reads as another directory than was meant, or whose options it drops.

const assert = require('node:assert/strict');
const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');
const { test } = require('node:test');

const { run } = require('../support/cli.js');
const { createDirectory } = require('../support/own-directory.js');
const { CachedSnowFlake, SnowFlake, refuses, rejects } = require('../support/support.js');

const directory = join(createDirectory(), 'ids');
const { href } = pathToFileURL(directory);
const MISTAKES = [
  ['file:ids', /with an absolute path, such as 'file:\/\/\/var\/lib\/app\/ids'/],
  ['file:./ids', /with an absolute path, such as 'file:\/\/\/var\/lib\/app\/ids'/],
  ['file:', /with an absolute path, such as 'file:\/\/\/var\/lib\/app\/ids'/],
  [`${href}?namespace=orders`, /give each namespace a directory of its own/],
  [new URL(`${href}?namespace=orders`), /give each namespace a directory of its own/],
  [`${href}?`, /leave out what begins with/],
  [`${href}#orders`, /leave out what begins with/],
  ['file://app:geheim@db/ids', /three slashes/],
];

test('a file: URL that means another directory, or has options, is refused with what to write', async () => {
  for (const [url, remedy] of MISTAKES) {
    const failures = [
      await rejects(SnowFlake.lease(url, { datacenterId: 1 }), 'ERR_SNOWFLAKE_CONFIG'),
      await rejects(CachedSnowFlake.lease(url, { datacenterId: 1 }), 'ERR_SNOWFLAKE_CONFIG'),
      refuses(() => new SnowFlake({ datacenterId: 1, lease: url }), 'ERR_SNOWFLAKE_CONFIG'),
      refuses(
        () => new SnowFlake({ datacenterId: 1, workerId: 3, state: url }),
        'ERR_SNOWFLAKE_CONFIG',
      ),
    ];
    for (const { message } of failures) {
      assert.match(message, remedy);
      assert.doesNotMatch(message, /geheim|namespace=orders/);
    }
  }
  assert.ok(!existsSync(directory));
});

test('a file: URL of the command or of the environment is refused likewise', async () => {
  for (const [url, remedy] of MISTAKES.filter(([url]) => typeof url === 'string')) {
    for (const [args, env] of [
      [['next', '--datacenter-id', '1', '--lease', url]],
      [['next', '--datacenter-id', '1'], { SNOWDRIFT_LEASE: url }],
      [['next', '--datacenter-id', '1', '--worker-id', '3', '--state', url]],
      [['slots', url]],
    ]) {
      const { code, stderr } = await run(args, { env });
      assert.notEqual(code, 0, `${args}`);
      if (!url.includes('@')) assert.match(stderr, remedy);
      assert.doesNotMatch(stderr, /geheim/);
    }
  }
});

test('a scheme in upper case is the same', async () => {
  const flake = await SnowFlake.lease(href.replace('file:', 'FILE:'), { datacenterId: 1 });
  assert.equal(flake.lease.store, href);
  await flake.close();
});
