'use strict';
// `snowdrift serve` asks its peers at the start: the living servers of its datacenter that lease from the same store.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const { after, afterEach, before, describe, test } = require('node:test');

const { SnowFlake } = require('../support/support.js');
const { endOf, firstLine, run, start } = require('../support/cli.js');
const { createDirectory } = require('../support/own-directory.js');
const { Server, missing } = require('../support/lease/servers.js');
const { limitWait } = require('../support/limit-wait.js');

const TOKEN = 'a-token-of-the-service-4711';

describe('peers', { skip: missing('etcd') }, () => {
  let store;
  let url;
  let count = 0;
  const ends = [];

  before(async () => {
    store = await Server.start('etcd');
  });
  after(() => store?.stop());
  afterEach(async () => {
    await Promise.all(ends.splice(0).map((end) => end()));
  });

  /** A peer on a host of its own, whose address gives `respond`'s answers. */
  async function peer(workerId, respond) {
    url ??= `${store.url}?namespace=peers-${count++}`;
    const requests = [];
    const server = http.createServer((request, response) => {
      requests.push(request);
      respond(response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = `127.0.0.1:${server.address().port}`;
    const flake = await SnowFlake.lease(url, {
      ...{ datacenterId: 1, workerId, address, ttl: 600_000, scope: 'process' },
    });
    ends.push(async () => {
      server.closeAllConnections();
      server.close();
      await flake.close();
      url = undefined;
    });
    return { address, requests };
  }

  const says = (node) => (response) => response.end(JSON.stringify(node));
  const now = () => Date.now();

  /** The arguments and environment of a server on another host. */
  function serve(...flags) {
    const args = ['serve', '--port', '0', '--address', '127.0.0.1:1', '--datacenter-id', '1'];
    const env = { SNOWDRIFT_LEASE: url, SNOWDRIFT_SHARED: createDirectory() };
    return [[...args, '--worker-id', '9', ...flags], { env }];
  }

  /** Starts a server, and returns what it complained of until it served. */
  async function starts(...flags) {
    const { code, stdout, stderr } = await run(...serve(...flags));
    assert.equal(code, 0, stderr);
    assert.match(stdout, /serves IDs of datacenterId 1, workerId 9/);
    return stderr;
  }

  test('a server starts beside peers that answer as they are registered', async () => {
    const { requests } = await peer(3, (response) =>
      says({ datacenterId: 1, workerId: 3, now: now() })(response),
    );
    assert.equal(await starts(), '');
    assert.deepEqual(
      requests.map(({ method, url: path }) => [method, path]),
      [['GET', '/node']],
    );
  });

  test('a peer that answers as another node ends the start, by its name', async () => {
    const { address } = await peer(3, (response) =>
      says({ datacenterId: 1, workerId: 4, now: now() })(response),
    );
    const { code, stderr } = await run(...serve());
    assert.equal(code, 1);
    assert.match(
      stderr,
      new RegExp(
        `${address} is registered with datacenterId 1 and workerId 3, and answers as 1 and 4`,
      ),
    );
    assert.equal(await starts('--no-peers'), '');
  });

  test('a server that was restarted under another worker ID is not taken for another one', async () => {
    const { address } = await peer(3, (response) =>
      says({ datacenterId: 1, workerId: 4, now: now() })(response),
    );
    const again = await SnowFlake.lease(url, {
      ...{ datacenterId: 1, workerId: 4, address, ttl: 600_000, scope: 'process' },
    });
    ends.push(() => again.close());
    assert.equal(await starts(), '');
  });

  test('clocks that differ on average end the start, by their names', async () => {
    const ahead = (workerId, ms) => (response) =>
      says({ datacenterId: 1, workerId, now: now() + ms })(response);
    const { address } = await peer(3, ahead(3, 70_000));
    await peer(4, ahead(4, 10_000));
    const { code, stderr } = await run(...serve());
    assert.equal(code, 1);
    assert.match(
      stderr,
      /clocks of the peers are on average (39|4\d)\d{3} ms ahead of this machine's/,
    );
    assert.match(stderr, new RegExp(`${address} by (69|7\\d)\\d{3} ms`));
  });

  test('peers that do not answer are named and skipped', async () => {
    const silent = await peer(3, () => {});
    const wrong = await peer(4, (response) => response.end('<html>'));
    const long = await peer(5, (response) => response.end('1'.repeat(1_000_000)));
    const complaints = await limitWait(starts(), 'a start beside silent peers');
    for (const [one, workerId] of [
      [silent, 3],
      [wrong, 4],
      [long, 5],
    ]) {
      assert.match(
        complaints,
        new RegExp(`skipped the peer ${one.address} \\(workerId ${workerId}\\)`),
      );
    }
  });

  test('peers are asked with the token, and those of other datacenters are not', async () => {
    const { requests } = await peer(3, (response) =>
      says({ datacenterId: 1, workerId: 3, now: now() })(response),
    );
    const [args, options] = serve();
    await run(args, { env: { ...options.env, SNOWDRIFT_TOKEN: TOKEN } });
    assert.equal(requests[0].headers.authorization, `Bearer ${TOKEN}`);
    const other = args.map((one, n) => (args[n - 1] === '--datacenter-id' ? '2' : one));
    assert.match((await run(other, options)).stdout, /datacenterId 2, workerId 9/);
    assert.equal(requests.length, 1);
  });

  test('a server answers its peers, and shows its address to operators', async () => {
    await peer(3, (response) => says({ datacenterId: 1, workerId: 3, now: now() })(response));
    const [args, options] = serve();
    const child = start(args, options);
    const served = /^(http:\S+) /.exec(await firstLine(child))[1];
    const [response] = await once(http.get(`${served}/node`, { agent: false }), 'response');
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    const { now: time, ...node } = JSON.parse(text);
    assert.deepEqual(node, { datacenterId: 1, workerId: 9 });
    assert.ok(Math.abs(time - now()) < 60_000);
    const { stdout } = await run(['slots', url, '--json']);
    const slot = JSON.parse(stdout).slots.find(({ workerId }) => workerId === 9);
    assert.deepEqual([slot.address, slot.state], ['127.0.0.1:1', 'held']);
    child.kill('SIGTERM');
    await endOf(child);
  });
});
