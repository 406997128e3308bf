'use strict';
// docs/tools.md: its blocks, and what its table says of each tool, with the packages from a registry in a project of their own.

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { Server, missing } = require('../support/lease/servers.js');
const { Scratch, skipped } = require('../support/package/scratch.js');
const { blocksOf, runProgram } = require('../support/page.js');

const PAGE = 'docs/tools.md';
const PACKAGES = [
  'bson@7',
  'bullmq@6',
  'csv-parse@7',
  'ioredis@6',
  'jq-wasm@1',
  'kafkajs@2',
  'pino@10',
  'protobufjs@8',
  'redis@6',
  'winston@3',
  'yaml@2',
];
const ID = '900710334548459521';
const ROUNDED = 900710334548459500;

/** Why a program is not tried, if it is not. */
const without = (program) =>
  spawnSync('which', [program]).status === 0 ? undefined : `${program} is not installed`;

describe(PAGE, { skip: skipped() || missing('redis'), concurrency: 1 }, () => {
  const scratch = new Scratch();
  let project;
  let redis;
  const env = () => ({ datacenterId: '1', workerId: '3', REDIS_URL: redis.url });
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
    test(`line ${block.line}`, () =>
      runProgram(block, env(), { modules: join(project, 'node_modules') }));
  }

  /** What the body of an async function returns, by way of JSON. */
  async function facts(body) {
    const script = `
      const ID = '${ID}';
      const saidBy = (call) => { try { return call() } catch ({ message }) { return message } };
      const main = async () => {${body}};
      main().then((facts) => {
        console.log('\\n' + JSON.stringify(facts));
        process.exit();
      });`;
    const command = [process.execPath, '-e', script];
    return await scratch.report(project, command, env());
  }

  test('BullMQ refuses decimal IDs that are numbers, colons and bigints, and takes a prefix', async () => {
    const { first, share, colon, bigint, prefix } = await facts(`
      const { Queue } = require('bullmq');
      const { SnowFlake } = require('snowdrift');
      const queue = new Queue('facts', { connection: { url: process.env.REDIS_URL } });
      const add = (jobId) => queue.add('x', {}, { jobId }).then(({ id }) => id, ({ message }) => message);
      let refused = 0;
      let first;
      // IDs with the sequence 0, of 2,500 ms.
      const from = Date.UTC(2026, 10, 25);
      for (let ms = 0; ms < 2500; ms++) {
        const id = String(SnowFlake.default.compose({ timestamp: from + ms }));
        const said = await add(id);
        if (said !== id) refused++;
        if (said !== id) first ??= said;
      }
      return {
        first, share: refused / 2500,
        colon: await add('order:' + ID), bigint: await add(BigInt(ID)), prefix: await add('order-' + ID),
      };`);
    assert.equal(first, 'Custom Id cannot be integers');
    assert.equal(share, 0.04);
    assert.match(colon, /cannot contain :/);
    assert.match(bigint, /not a function/);
    assert.equal(prefix, `order-${ID}`);
  });

  test('scores, counters, scripts and clients of Redis', async () => {
    const answer = await facts(`
      const Redis = require('ioredis');
      const { createClient } = require('redis');
      const { SnowFlake } = require('snowdrift');
      const ioredis = new Redis(process.env.REDIS_URL);
      const texts = new Redis(process.env.REDIS_URL, { stringNumbers: true });
      const client = await createClient({ url: process.env.REDIS_URL }).connect();
      const next = BigInt(ID) & ~127n;
      for (let n = 0n; n < 100n; n++) await ioredis.zadd('scores', String(next + n), 'member' + n);
      const scores = (await ioredis.zrange('scores', 0, -1, 'WITHSCORES')).filter((_, at) => at % 2);
      await ioredis.set('count', ID);
      return {
        scores: new Set(scores).size,
        returned: [await ioredis.incr('count'), await client.incr('count')],
        counted: await ioredis.get('count'),
        asText: await texts.incr('count'),
        equal: await ioredis.eval(
          'return tonumber(ARGV[1]) == tonumber(ARGV[2]) and 1 or 0', 0, ID, String(BigInt(ID) + 1n)),
        bigint: [await ioredis.set('x', BigInt(ID)), await client.set('x', BigInt(ID)).catch(({ message }) => message)],
      };`);
    assert.equal(answer.scores, 2);
    assert.deepEqual(answer.returned, [ROUNDED, ROUNDED]);
    assert.equal(answer.counted, String(BigInt(ID) + 2n));
    assert.equal(answer.asText, String(BigInt(ID) + 3n));
    assert.equal(answer.equal, 1);
    assert.equal(answer.bigint[0], 'OK');
    assert.match(answer.bigint[1], /must be of type/);
  });

  test('Kafka’s partitions of a key as text and as 8 bytes', async () => {
    const [text, buffer, bytes] = await facts(`
      const { Partitioners } = require('kafkajs');
      const partition = Partitioners.DefaultPartitioner();
      const partitionMetadata = Array.from({ length: 12 }, (_, partitionId) => ({ partitionId, leader: 0 }));
      const of = (key) => partition({ topic: 'orders', partitionMetadata, message: { key } });
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64BE(BigInt(ID));
      return [ID, Buffer.from(ID), bytes].map(of);`);
    assert.equal(text, buffer);
    assert.notEqual(text, bytes);
  });

  test('logs of pino and winston', async () => {
    const log = (body) => scratch.run(project, [process.execPath, '-e', body]);
    const pino = await log(`require('pino')().info({ id: ${ID}n, text: String(${ID}n) })`);
    assert.match(pino.stdout, new RegExp(`"id":${ID},"text":"${ID}"`));
    const winston = await log(`
      const { createLogger, transports } = require('winston');
      createLogger({ transports: new transports.Console() }).info('x', { id: ${ID}n });`);
    assert.match(winston.stdout, new RegExp(`"id":"${ID}"`));
  });

  test('protobufjs, BSON, YAML, CSV and numbers', async () => {
    const answer = await facts(`
      const { BSON, EJSON, Long } = require('bson');
      const { parse } = require('csv-parse/sync');
      const protobuf = require('protobufjs').default ?? require('protobufjs');
      const yaml = require('yaml');
      const Order = protobuf.parse('syntax = "proto3"; message Order { int64 id = 1; }').root.lookupType('Order');
      const options = { longs: String, defaults: true };
      const sent = (id) => Order.toObject(Order.decode(Order.encode({ id }).finish()), options).id;
      const stored = BSON.serialize({ id: BigInt(ID) });
      const csv = 'id\\n' + ID;
      return {
        protobuf: [sent(BigInt(ID)), sent(ID)],
        long: BSON.deserialize(stored).id instanceof Long,
        json: JSON.stringify(BSON.deserialize(stored)),
        bigint: String(BSON.deserialize(stored, { useBigInt64: true }).id),
        ejson: [EJSON.stringify({ id: BigInt(ID) }), EJSON.stringify({ id: BigInt(ID) }, { relaxed: false })],
        yaml: [yaml.parse('id: ' + ID).id, yaml.parse('id: "' + ID + '"').id],
        csv: [parse(csv, { cast: true })[1][0], parse(csv)[1][0]],
        number: Number(ID),
      };`);
    assert.deepEqual(answer.protobuf, ['0', ID]);
    assert.ok(answer.long);
    assert.match(answer.json, /^\{"id":\{"high":\d+,"low":-?\d+/);
    assert.equal(answer.bigint, ID);
    assert.deepEqual(answer.ejson, [`{"id":${ROUNDED}}`, `{"id":{"$numberLong":"${ID}"}}`]);
    assert.deepEqual(answer.yaml, [ROUNDED, ID]);
    assert.deepEqual(answer.csv, [ROUNDED, ID]);
    assert.equal(answer.number, ROUNDED);
  });

  test('jq 1.7 keeps digits until it calculates', async () => {
    const [version, same, other, sum] = await facts(`
      const { raw } = await import('jq-wasm');
      const jq = (...args) => raw('{"id":' + ID + '}', ...args);
      return [
        await jq('.', ['--version']), await jq('.id'),
        await jq('.id == ' + (BigInt(ID) + 1n)), await jq('.id + 0'),
      ];`);
    assert.match(version, /^jq-1\.7/);
    assert.deepEqual([same, other, sum], [ID, 'false', String(ROUNDED)]);
  });

  const shell = (code) => execFileSync('sh', ['-ec', code], { encoding: 'utf8' }).trim();

  test('jq', { skip: without('jq') }, () => {
    const json = `echo '{"id":${ID}}'`;
    const other = `${ID.slice(0, -1)}2`;
    const equal = shell(`${json} | jq '.id == ${other}'`);
    const minor = Number(/jq-1\.(\d+)/.exec(shell('jq --version'))[1]);
    assert.equal(equal, String(minor < 7));
    assert.equal(shell(`${json} | jq .id`), minor < 7 ? String(ROUNDED) : ID);
    assert.equal(shell(`${json} | jq '.id + 0'`), String(ROUNDED));
  });

  test('SQLite’s shell', { skip: without('sqlite3') }, () => {
    const directory = mkdtempSync(join(tmpdir(), 'snowdrift-tools-'));
    const file = join(directory, 'ids.csv');
    writeFileSync(file, `id\n1${ID}\n${ID}\n`);
    const imported = (...lines) => {
      const all = [...lines, 'SELECT typeof(id), id FROM t ORDER BY id;', '.mode json'];
      all.push(`SELECT id FROM t WHERE id = ${ID};`);
      return shell(`printf '%s\\n' ${all.map((line) => `'${line}'`).join(' ')} | sqlite3`).split(
        '\n',
      );
    };
    const csv = ['.mode csv', `.import ${file} t`];
    const text = imported(...csv);
    const integer = imported('CREATE TABLE t (id INTEGER);', ...csv);
    rmSync(directory, { recursive: true });
    assert.deepEqual(text, [`text,1${ID}`, `text,${ID}`, `[{"id":"${ID}"}]`], 'sorted as text');
    // The heading of the file is a row, there.
    assert.deepEqual(integer, [`integer,${ID}`, `integer,1${ID}`, 'text,id', `[{"id":${ID}}]`]);
  });

  test('LibreOffice', { skip: without('soffice') }, () => {
    const directory = mkdtempSync(join(tmpdir(), 'snowdrift-tools-'));
    const at = (name) => join(directory, name);
    writeFileSync(at('ids.csv'), `id,text\n${ID},order-${ID}\n`);
    const convert = `soffice -env:UserInstallation=file://${at('profile')} --headless --convert-to fods`;
    shell(`${convert} --outdir ${directory} ${at('ids.csv')} 2>&1`);
    const sheet = readFileSync(at('ids.fods'), 'utf8');
    rmSync(directory, { recursive: true });
    assert.match(sheet, /office:value="9\.0071033454846E\+017"/);
    assert.match(sheet, new RegExp(`<text:p>order-${ID}</text:p>`));
  });
});
