'use strict';
// `snowdrift serve`: clients without the token keep no client with the token out, nor a probe.

const assert = require('node:assert/strict');
const { fork } = require('node:child_process');
const { once } = require('node:events');
const net = require('node:net');
const { join } = require('node:path');
const { describe, test } = require('node:test');

const { gate, storm } = require('../support/amount.js');
const { firstLine, start } = require('../support/cli.js');
const { limitWait } = require('../support/limit-wait.js');
const { TOKEN, ask, raw, refused, serving } = require('../support/serving.js');
const { until } = require('../support/support.js');

const headers = { authorization: `Bearer ${TOKEN}` };
const head = (method, path) => `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n`;
const withToken = `${head('POST', '/id')}Authorization: Bearer ${TOKEN}\r\n\r\n`;
const probe = `${head('GET', '/healthz')}\r\n`;

/** A connection; `reply` is what it has received, `ended` its end. */
async function connect({ port, server }, text = '', localAddress = '127.0.0.1') {
  const socket = net.connect({ host: '127.0.0.1', port, localAddress });
  socket.on('error', () => {});
  socket.ended = new Promise((resolve) => socket.once('close', () => resolve(socket)));
  socket.reply = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    socket.reply += chunk;
  });
  socket.write(text);
  await limitWait(once(server, 'connection'), 'a connection');
  return socket;
}

const firstClosed = (sockets) =>
  limitWait(Promise.race(sockets.map(({ ended }) => ended)), 'an end');
const answered = (socket, count = 1) =>
  until(() => socket.reply.split('HTTP/1.1 200').length > count);

describe('a newcomer', () => {
  test('is closed for the next one where there are too many, the oldest first', async () => {
    const own = await serving({ token: TOKEN, bounds: { newcomers: 3 } });
    const first = await connect(own, head('POST', '/id'), '127.0.0.2');
    const second = await connect(own);
    const third = await connect(own);
    const last = await connect(own);
    assert.equal(await firstClosed([first, second, third, last]), first);
    for (const socket of [second, third, last]) {
      socket.write(withToken);
      await answered(socket);
    }
    assert.match(own.log.join('\n'), /^too many .*, the latest is from 127\.0\.0\.1: closed the/);
    assert.equal(own.log.length, 1, 'it logs once in 10 s');
  });

  test('has one response, whatever it asks', async () => {
    const { port } = await serving({ token: TOKEN });
    const foreign = withToken.replace('\r\n\r\n', '\r\nOrigin: null\r\n\r\n');
    for (const [text, status] of [
      [probe, 200],
      [probe.replace('GET', 'HEAD'), 200],
      [probe.replace('\r\n\r\n', '\r\nExpect: nothing\r\n\r\n'), 200],
      [probe.replace('\r\n\r\n', '\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'), 200],
      [probe.replace('1.1', '1.0').replace('\r\n\r\n', '\r\nConnection: keep-alive\r\n\r\n'), 200],
      [`${head('GET', '/healthz')}Content-Length: 4\r\n\r\nbody`, 200],
      [`${head('POST', '/id')}\r\n`, 401],
      [`${head('POST', '/id')}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`, 401],
      [`${head('GET', '/nothing')}\r\n`, 401],
      [foreign, 403],
      [head('GET', '/healthz').replace(/Host.*/s, '\r\n'), 400],
    ]) {
      const reply = await raw(port, text);
      const statuses = [...reply.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, number]) => Number(number));
      assert.deepEqual(
        statuses.filter((number) => number !== 100),
        [status],
        `${text}${reply}`,
      );
    }
    assert.equal(await raw(port, `${head('CONNECT', 'localhost:1')}\r\n`), '');
  });
});

describe('an authorised connection', () => {
  test('stays, however many newcomers its address has', async () => {
    const own = await serving({ token: TOKEN, bounds: { newcomers: 2 } });
    const kept = [];
    for (let n = 0; n < 4; n++) {
      kept.push(await connect(own, withToken));
      await answered(kept[n]);
    }
    for (let n = 0; n < 4; n++) await connect(own);
    for (const socket of kept) {
      socket.write(withToken);
      await answered(socket, 2);
      // A proxy sends requests of others on it, too.
      socket.write(`${head('POST', '/id')}\r\n`);
      await until(() => /HTTP\/1\.1 401 /.test(socket.reply));
      socket.write(probe);
      await answered(socket, 3);
    }
  });

  test('is one of a number, which keeps no probe out', async () => {
    const bounds = { authorised: 2, newcomers: 1 };
    for (const token of [TOKEN, undefined]) {
      const own = await serving({ token, bounds });
      const kept = [];
      for (let n = 0; n < 2; n++) {
        kept.push(await connect(own, withToken));
        await answered(kept[n]);
      }
      const answer = await ask(own.port, 'POST', '/id', { headers });
      refused(answer, 503, /too many connections are open/);
      assert.equal(answer.headers['retry-after'], '1');
      assert.equal((await ask(own.port, 'GET', '/healthz')).status, 200);
      kept[0].destroy();
      await until(async () => (await ask(own.port, 'POST', '/id', { headers })).status === 200);
      // Nor does a probe ever count as one of them.
      const last = await connect(own, probe);
      await answered(last);
      assert.match(last.reply, /^connection: close\r$/im);
    }
  });
});

test('1,200 connections from one address, and from many, keep nobody out', {
  skip: gate,
}, async () => {
  const own = await serving({ token: TOKEN });
  let accepted = 0;
  own.server.setMaxListeners(0).on('connection', () => accepted++);
  for (const [addresses, text] of [
    [1, ''],
    [240, head('POST', '/id')],
  ]) {
    const held = [];
    accepted = 0;
    // Fewer at once than may wait to be accepted.
    while (held.length < 1200) {
      const some = Array.from({ length: 200 }, (_, n) =>
        connect(own, text, `127.0.1.${1 + (n % addresses)}`),
      );
      held.push(...(await Promise.all(some)));
      await until(() => accepted === held.length);
    }
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        n % 2 === 0 ? ask(own.port, 'POST', '/id', { headers }) : ask(own.port, 'GET', '/healthz'),
      ),
    );
    assert.ok(answers.every(({ status }) => status === 200));
    for (const socket of held) socket.destroy();
  }
});

describe('1,000 clients without the token, which come back at once', { skip: storm }, () => {
  for (const [name, text, addresses] of [
    ['ask /healthz every 3 s, from many addresses', probe, 250],
    ['send nothing, from many addresses', '', 250],
    ['send half a header', head('POST', '/id'), 250],
    ['send a wrong token', withToken.replace(TOKEN, `${TOKEN}x`), 250],
  ]) {
    test(name, async () => {
      const args = ['serve', '--port', '0', '--json', '--datacenter-id', '3', '--worker-id', '7'];
      const server = start(args, { env: { SNOWDRIFT_TOKEN: TOKEN } });
      const { port } = new URL(JSON.parse(await firstLine(server)).url);
      const options = JSON.stringify({ port, text, addresses, clients: 1000 });
      const crowd = fork(join(__dirname, '../support/crowd.js'), [options]);
      try {
        await limitWait(once(crowd, 'message'), 'the crowd');
        for (let n = 0; n < 60; n++) {
          const answers = [
            ask(port, 'POST', '/id', { headers }),
            ask(port, 'POST', '/ids?n=10', { headers }),
            ask(port, 'GET', '/healthz'),
          ];
          for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
        }
      } finally {
        crowd.kill('SIGKILL');
        server.kill('SIGKILL');
      }
    });
  }
});
