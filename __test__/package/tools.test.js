'use strict';
// The blocks of docs/tools.md, with the packages from a registry in a project of their own.

const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { Server, missing } = require('../support/lease/servers.js');
const { Scratch, skipped } = require('../support/package/scratch.js');
const { blocksOf, runProgram } = require('../support/page.js');

const PAGE = 'docs/tools.md';
const PACKAGES = ['bson@7', 'bullmq@6', 'ioredis@6', 'protobufjs@8'];

describe(PAGE, { skip: skipped() || missing('redis'), concurrency: 1 }, () => {
  const scratch = new Scratch();
  let project;
  let redis;
  before(async () => {
    await scratch.publish();
    project = scratch.project('tools');
    const install = ['npm', 'install', '--ignore-scripts', 'snowdrift', ...PACKAGES];
    await scratch.run(project, install);
    redis = await Server.start('redis');
  });
  after(async () => {
    await redis?.stop();
    scratch.remove();
  });

  for (const block of blocksOf(PAGE)) {
    test(`line ${block.line}`, () => {
      const env = { datacenterId: '1', workerId: '3', REDIS_URL: redis.url };
      return runProgram(block, env, { modules: join(project, 'node_modules') });
    });
  }
});
