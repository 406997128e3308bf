'use strict';
// `npx snowdrift`, as it is run: what it prints, where, and how it ends.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const http = require('node:http');
const { hostname, tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

const { createDirectory } = require('./own-directory.js');
const { SnowFlake, countDuplicates } = require('./support.js');

const MAIN = join(__dirname, '..', 'js', 'cli', 'main.js');
const NODE = ['--datacenter-id', '3', '--worker-id', '7'];

function start(args, { env = {}, stdio = ['ignore', 'pipe', 'pipe'] } = {}) {
  const { datacenterId, workerId, SNOWDRIFT_LEASE, ...rest } = process.env;
  return spawn(process.execPath, [MAIN, ...args], { env: { ...rest, ...env }, stdio });
}

async function run(args, options) {
  const child = start(args, options);
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      output[stream] += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, ...output };
}

async function json(args) {
  const { stdout, stderr, code } = await run([...args, '--json']);
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}

test('next prints IDs, one a line, of the node that is named', async () => {
  const { stdout, code } = await run(['next', '-n', '5000', ...NODE]);
  const ids = stdout.trim().split('\n');
  assert.deepEqual([code, ids.length, countDuplicates(ids)], [0, 5000, 0]);
  const { datacenterId, workerId } = SnowFlake.parse(ids[0], 'node');
  assert.deepEqual([datacenterId, workerId], [3, 7]);
  const env = { datacenterId: '3', workerId: '8' };
  const one = await run(['next'], { env });
  assert.equal(SnowFlake.parse(one.stdout.trim(), 'node').workerId, 8);
  assert.match((await run(['next', '--string', ...NODE])).stdout, /^"\d{18,19}"\n$/);
  const list = await json(['next', '-n', '2', '--layout', 'twitter', ...NODE]);
  assert.ok(list.every((id) => typeof id === 'string'));
});

test('next with state draws nothing twice, however often it is run at once', async () => {
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-cli-'));
  try {
    const lease = ['--lease', `file://${state}`, '--datacenter-id', '1'];
    const runs = await Promise.all(
      Array.from({ length: 6 }, () => run(['next', '-n', '50', ...lease])),
    );
    const ids = runs.flatMap(({ stdout }) => stdout.trim().split('\n'));
    assert.equal(ids.length, 300);
    assert.equal(countDuplicates(ids), 0);
  } finally {
    rmSync(state, { recursive: true });
  }
});

test('parse draws the bits of each ID under it, without colours in a pipe', async () => {
  const { stdout, code } = await run(['parse', '1541815603606036480', '--layout', 'twitter']);
  assert.equal(code, 0);
  const [id, bits, letters, time, , worker] = stdout.split('\n');
  assert.equal(id, '1541815603606036480');
  assert.equal(BigInt(`0b${bits.replaceAll(' ', '')}`), 1541815603606036480n);
  assert.equal(letters, `${'t'.repeat(41)} ddddd wwwww ${'s'.repeat(12)}`);
  assert.match(time, /^t {2}timestamp +41 bits {2}2022-06-28T16:07:40\.105Z \(1656432460105\)$/);
  assert.match(worker, /^w {2}workerId +5 bits +26$/);
  assert.ok(!stdout.includes('\x1b'));
  const layout =
    '{"timestampBits":41,"datacenterBits":3,"workerBits":5,"clockBackBits":2,"sequenceBits":12,"tickMs":1,"epoch":0}';
  const [one, two] = await json(['parse', '4194304', '8388609', '--layout', layout]);
  assert.deepEqual([one.timestamp, two.timestamp, two.sequence], [1, 2, 1]);
  assert.equal(two.id, '8388609');
});

test('layout tells what a cut of bits allows', async () => {
  const { stdout } = await run(['layout', 'node']);
  assert.match(stdout, /^node\nbits +41\/3\/5\/2\/12 .*0 unused\n/);
  assert.match(stdout, /2020-01-31T16:00:00\.000Z to 2089-10-07T07:47:35\.552Z/);
  assert.match(stdout, /256: 8 datacenters x 32 workers/);
  assert.match(stdout, /4,096 a tick and node, 4,096,000 a second/);
  const all = await json(['layout']);
  assert.deepEqual(Object.keys(all), ['node', 'twitter', 'uid', 'discord']);
  assert.equal(all.uid.yearsLeft, 0);
  const later = await json(['layout', 'uid', '--epoch', '2026-01-01']);
  assert.equal(later.ends, '2034-07-04T21:24:16.000Z');
  const short = await json(['layout', '28/0/22/0/13@1000', '--epoch', '2026-01-01']);
  assert.deepEqual(short, { ...later, yearsLeft: short.yearsLeft });
});

test('what is not understood ends with 2 and says what to do; what cannot be done with 1', async () => {
  for (const [args, code, said] of [
    [['nope'], 2, /no command 'nope': snowdrift --help lists them/],
    [['next'], 2, /environment variable datacenterId is not set/],
    [['next', '--wrong'], 2, /--wrong.*snowdrift next --help/s],
    [['next', '-n', '0', ...NODE], 2, /-n must be 1 to 1000000; it is 0/],
    [['next', '-n', 'x', ...NODE], 2, /--n must be a whole number; it is 'x'/],
    [['next', 'more', ...NODE], 2, /next takes no 'more'/],
    [['next', '--lease', 'file:///tmp', '--worker-id', '1'], 2, /leave out --worker-id/],
    [['next', '--worker-id', '99', '--datacenter-id', '1'], 2, /workerId must be .* 0 to 31/],
    [['slots', 'file:///a', 'file:///b'], 2, /slots takes one URL, not 2/],
    [['slots', '/var'], 2, /slots needs a URL/],
    [['create', 'file:///var'], 2, /create is for namespaces.*snowdrift reset/],
    [['create', 'redis://localhost'], 2, /create needs --new/],
    [['raise', 'redis://localhost'], 2, /raise needs --ttl or --max-clock-skew or --max-ahead/],
    [['raise', 'redis://localhost', '--ttl', '5'], 2, /ttl must be a whole number from 1000/],
    [['raise', 'redis://localhost', '--max-ahead', '-1'], 2, /--max-ahead/],
    [['recover', 'redis://localhost', '--layout', 'x'], 2, /layout must be 'node'/],
    [['slots', 'gopher://x'], 2, /lease knows URLs of file:/],
    [['slots', 'file:///no/such'], 1, /ERR_SNOWFLAKE_STORE: .*\/no\/such/],
    [['parse'], 2, /parse needs an ID/],
    [['parse', '12', '1.5'], 1, /ERR_SNOWFLAKE_INVALID_ID: .*it is '1\.5'/],
    [['parse', '1', '--layout', '{'], 2, /--layout is not JSON/],
    [['parse', '1', '--layout', 'mastodon'], 2, /layout must be 'node'/],
    [['layout', '41/5/5/12'], 2, /layout must be 'node'.* or an object; it is '41\/5\/5\/12'/],
    [['layout', '60/5/5/0/12'], 2, /add up to/],
    [['layout', '41/5/5/0/12@0'], 2, /tickMs must be a whole number from 1/],
    [['layout', 'node', '--epoch', 'soon'], 2, /--epoch must be Unix ms or a date; it is 'soon'/],
    [['serve', '--port', '99999', ...NODE], 2, /--port must be 0 to 65535/],
  ]) {
    const answer = await run(args);
    assert.deepEqual([answer.code, answer.stdout], [code, ''], args.join(' '));
    assert.match(answer.stderr, said);
  }
});

test('slots without a URL: this host’s pages, and the processes of each', {
  skip: process.platform === 'linux' ? false : 'pages are of Linux by default',
}, async () => {
  const env = { SNOWDRIFT_SHARED: createDirectory() };
  assert.match((await run(['slots'], { env })).stdout, /No process of this user has drawn IDs/);
  const own = start(['serve', '--port', '0', ...NODE], { env });
  await once(own.stdout, 'data');
  const { directory, pages } = JSON.parse((await run(['slots', '--json'], { env })).stdout);
  assert.ok(directory.startsWith(env.SNOWDRIFT_SHARED), directory);
  const [{ path, datacenterId, workerId, processes }] = pages;
  assert.deepEqual([pages.length, datacenterId, workerId], [1, 3, 7]);
  assert.ok(path.startsWith(directory), path);
  const [{ pid, users, isAlive }] = processes;
  assert.deepEqual([pid, users, isAlive], [own.pid, 1, true]);
  assert.match((await run(['slots'], { env })).stdout, new RegExp(` ${own.pid} .*worker-7[.]page`));
  own.kill('SIGKILL');
  await once(own, 'exit');
  const { stdout } = await run(['slots'], { env });
  assert.match(stdout, / none .*worker-7[.]page/, 'a page outlives its processes');
  writeFileSync(path, 'damage');
  assert.match((await run(['slots'], { env })).stdout, /is 6 bytes long and should be 4096/);
});

test('slots of a directory: held, died, free', async () => {
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-slots-'));
  const url = `file://${state}`;
  try {
    assert.equal((await run(['slots', url])).stdout, 'No slot was ever used there.\n');
    const open = async () => {
      const own = start(['serve', '--port', '0', '--lease', url, '--datacenter-id', '1']);
      await once(own.stdout, 'data');
      return own;
    };
    const states = async () => (await json(['slots', url])).slots.map(({ state: one }) => one);
    const [first, second] = [await open(), await open()];
    const {
      namespace,
      slots: [slot],
    } = await json(['slots', url]);
    assert.equal(namespace, null);
    assert.deepEqual(
      [slot.datacenterId, slot.workerId, slot.pid, slot.host],
      [1, 0, first.pid, hostname()],
    );
    assert.ok(new Date(slot.startedAt) <= Date.now() && slot.ceiling > Date.now());
    assert.deepEqual(await states(), ['held', 'held']);
    first.kill('SIGKILL');
    second.kill('SIGTERM');
    await Promise.all([once(first, 'close'), once(second, 'close')]);
    assert.deepEqual(await states(), ['died', 'free']);
    const { stdout } = await run(['slots', url]);
    assert.match(stdout, /^datacenter {2}worker {2}state .*\n1 +0 +died .*\n1 +1 +free /);
    // One that cannot be read does not hide the others.
    writeFileSync(join(state, 'datacenter-1-worker-0.slot'), 'damaged');
    assert.deepEqual(await states(), ['unusable', 'free']);
    const { stdout: both } = await run(['slots', url]);
    assert.match(both, /\n1 +0 +unusable\n1 +1 +free .*\n.*worker-0\.slot is 7 bytes long/);
  } finally {
    rmSync(state, { recursive: true });
  }
});

test('help and version', async () => {
  assert.match((await run(['--help'])).stdout, /Usage: snowdrift <command>/);
  assert.equal((await run([])).code, 0);
  for (const command of [
    'next',
    'parse',
    'layout',
    'slots',
    'reset',
    'recover',
    'create',
    'raise',
    'serve',
  ]) {
    const { stdout, code } = await run([command, '--help']);
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`^Usage: snowdrift ${command} `));
    assert.ok(stdout.split('\n').every((line) => line.length <= 110));
  }
  assert.equal((await run(['--version'])).stdout, `${require('../package.json').version}\n`);
});

test('a pipe that is closed early is no failure', async () => {
  const child = start(['next', '-n', '200000', ...NODE]);
  child.stdout.once('data', () => child.stdout.destroy());
  let complaint = '';
  child.stderr.on('data', (text) => {
    complaint += text;
  });
  const [code] = await once(child, 'close');
  assert.deepEqual([code, complaint], [0, '']);
});

describe('serve', () => {
  let child;
  let url;
  before(async () => {
    child = start(['serve', '--port', '0', '--json', ...NODE]);
    const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
    ({ url } = JSON.parse(line));
  });
  after(() => child.kill('SIGKILL'));

  const get = async (path, options) => {
    const response = await fetch(url + path, options);
    const text = await response.text();
    const isJson = response.headers.get('content-type') === 'application/json';
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text ? JSON.parse(text) : text,
    };
  };

  test('it listens on the loopback only, and gives IDs', async () => {
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
    const { status, headers, body } = await get('/id');
    assert.deepEqual([status, typeof body.id], [200, 'string']);
    assert.equal(headers.get('cache-control'), 'no-store');
    const many = await Promise.all(Array.from({ length: 50 }, () => get('/ids?n=200')));
    const ids = [body.id, ...many.flatMap(({ body: { ids: some } }) => some)];
    assert.deepEqual([ids.length, countDuplicates(ids)], [10_001, 0]);
    const { body: parsed } = await get(`/parse/${body.id}`);
    assert.deepEqual([parsed.id, parsed.datacenterId, parsed.workerId], [body.id, 3, 7]);
  });

  test('what is asked wrongly is told, with the right status', async () => {
    for (const [path, status, said] of [
      ['/ids', 400, /n must be a whole number from 1 to 10000; it is ''/],
      ['/ids?n=0', 400, /it is '0'/],
      ['/ids?n=10001', 400, /it is '10001'/],
      ['/ids?n=1e3', 400, /it is '1e3'/],
      ['/parse/abc', 400, /must be a bigint or a string of decimal digits/],
      ['/parse/', 400, /it is ''/],
      ['/nothing', 404, /there are \/id/],
      ['/constructor', 404, /there are/],
    ]) {
      const answer = await get(path);
      assert.equal(answer.status, status, path);
      assert.match(answer.body.error.message, said);
    }
    const posted = await get('/id', { method: 'POST' });
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD']);
    const head = await get('/healthz', { method: 'HEAD' });
    assert.deepEqual([head.status, head.body], [200, '']);
  });

  test('healthz and metrics', async () => {
    assert.deepEqual((await get('/healthz')).body, { status: 'ok' });
    const { body, headers } = await get('/metrics');
    assert.match(headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
    assert.match(
      body,
      /# TYPE snowdrift_ids_issued_total counter\nsnowdrift_ids_issued_total\{datacenter="3",worker="7"\} \d+\n/,
    );
    assert.ok(
      body.split('\n').every((line) => line === '' || /^(# |\w+\{.*\} [\d.e+]+$)/.test(line)),
      body,
    );
  });

  test('SIGTERM lets requests end, frees the slot, and ends it with 0', async () => {
    const state = mkdtempSync(join(tmpdir(), 'snowdrift-serve-'));
    const lease = ['--lease', `file://${state}`, '--datacenter-id', '1'];
    try {
      const own = start(['serve', '--port', '0', '--json', ...lease]);
      const [line] = await once(own.stdout.setEncoding('utf8'), 'data');
      // A connection that is kept open does not hold it up.
      const agent = new http.Agent({ keepAlive: true });
      await once(http.get(`${JSON.parse(line).url}/id`, { agent }), 'response');
      own.kill('SIGTERM');
      assert.deepEqual(await once(own, 'close'), [0, null]);
      agent.destroy();
      const next = await run(['next', ...lease]);
      assert.equal(SnowFlake.parse(next.stdout.trim(), 'node').workerId, 0);
    } finally {
      rmSync(state, { recursive: true });
    }
  });

  test('a port that is taken is said', async () => {
    const { code, stderr } = await run(['serve', '--port', new URL(url).port, ...NODE]);
    assert.deepEqual([code, /cannot listen: .*EADDRINUSE/.test(stderr)], [2, true], stderr);
  });
});
