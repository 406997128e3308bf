'use strict';
// Requests to etcd: fakes for what real servers do rarely.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { once } = require('node:events');
const http = require('node:http');
const net = require('node:net');
const { after, describe, test } = require('node:test');
const { inspect, promisify } = require('node:util');

const { storm } = require('../support/amount.js');
const { redactForeign } = require('../../js/messages/secrets.js');
const { connect } = require('../../js/stores/connect.js');
const { createClient } = require('../../js/stores/etcd-client.js');
const { etcd } = require('../../js/stores/etcd.js');
const { serverUrl } = require('../../js/stores/url.js');
const { inRounds } = require('../support/lease/rounds.js');
const { freePort } = require('../support/lease/servers.js');
const { SnowFlake, until } = require('../support/support.js');

const PASSWORD = 'g3heim/&t+x';

const read = (store) => store.read('a', { signal: AbortSignal.timeout(60_000) });

describe('requests to etcd', () => {
  const servers = [];
  after(() => {
    for (const server of servers) server.close();
  });
  const listening = async (server) => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    return `http://127.0.0.1:${server.address().port}`;
  };
  /** An etcd whose replies `answer` makes: [status, value]. */
  const fake = async (answer) => {
    const requests = [];
    const url = await listening(
      http.createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
        let text = '';
        for await (const chunk of request) text += chunk;
        const { url: path, headers } = request;
        const received = { path, token: headers.authorization, body: JSON.parse(text) };
        requests.push(received);
        const [status, value] = answer(received);
        response.writeHead(status, { 'Content-Type': 'application/json' });
        response.end(JSON.stringify(value));
      }),
    );
    return { url, requests };
  };
  const works = () => fake(() => [200, { ok: true }]);
  const closed = async () => `http://127.0.0.1:${await freePort()}`;

  test('a reply that leaves a field out, as etcd does for false, has none of Object.prototype', async () => {
    // A transaction whose comparison failed, and found nothing; a range without records.
    const { url } = await fake(({ path }) => [
      200,
      path.endsWith('/txn') ? { responses: [{ response_range: {} }] } : {},
    ]);
    const store = etcd([url]);
    const options = { signal: AbortSignal.timeout(60_000) };
    const kvs = [{ key: 'YQ==', value: 'YQ==' }];
    const polluted = { succeeded: true, kvs, found: { token: 'f'.repeat(16), text: '' } };
    Object.assign(Object.prototype, polluted);
    try {
      const record = { token: '0'.repeat(16), text: 'mine' };
      const { isWritten, found } = await store.write('a', record, 'e'.repeat(16), options);
      assert.deepEqual([isWritten, found], [false, undefined]);
      assert.equal((await store.read('a', options)).record, undefined);
    } finally {
      for (const name of Object.keys(polluted)) delete Object.prototype[name];
    }
  });

  // Among several endpoints, one that takes a second is passed over: a busy machine is as late.
  test('one that fails goes to the next endpoint, and later ones start there', {
    skip: storm,
  }, async () => {
    const good = await works();
    const cut = await listening(
      net.createServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => socket.destroy());
      }),
    );
    const late = await fake(() => [503, { message: 'etcdserver: request timed out' }]);
    const learner = await fake(() => [
      400,
      { message: 'etcdserver: rpc not supported for learner' },
    ]);
    for (const first of [await closed(), cut, late.url, learner.url]) {
      const client = createClient([first, await closed(), good.url], {});
      const before = good.requests.length;
      for (let n = 1; n <= 2; n++) {
        assert.deepEqual((await client.post('/v3/kv/txn', { n })).reply, { ok: true });
        assert.equal(good.requests.length, before + n, first);
      }
      client.close();
    }
    assert.equal(late.requests.length, 1);
  });

  test('a write that was sent again after its reply was lost is written once', {
    skip: storm,
  }, async () => {
    let stored;
    const member = (answers) => async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      const { compare, success } = JSON.parse(text);
      const succeeded = stored === undefined && compare[0].target === 'CREATE';
      if (succeeded) stored = success[0].request_put;
      if (!answers) return request.socket.destroy();
      response.end(
        JSON.stringify({ succeeded, responses: [{ response_range: { kvs: [stored] } }] }),
      );
    };
    const urls = [];
    for (const answers of [false, true]) {
      urls.push(await listening(http.createServer(member(answers))));
    }
    const store = etcd(urls);
    const record = { token: '0123456789abcdef', text: 'first' };
    const signal = AbortSignal.timeout(60_000);
    assert.equal((await store.write('a', record, undefined, { signal })).isWritten, true);
    const { isWritten, found } = await store.write('a', { ...record, text: 'x' }, undefined, {
      signal,
    });
    assert.deepEqual([isWritten, found], [false, record]);
    store.close();
  });

  test('silent endpoints do not keep a lease from starting; the event loop stays free', {
    skip: storm,
  }, async () => {
    const good = await fake(() => [200, { token: 'another-token' }]);
    const silent = await listening(net.createServer((socket) => socket.on('error', () => {})));
    for (const login of [{}, { user: 'app', password: PASSWORD }]) {
      await inRounds('the event loop ticks', async () => {
        const client = createClient([silent, silent, good.url], login);
        const before = good.requests.length;
        let ticks = 0;
        const ticking = setInterval(() => {
          ticks += 1;
        }, 10);
        await client.post('/v3/maintenance/status', {});
        clearInterval(ticking);
        await client.post('/v3/kv/txn', {});
        const paths = good.requests.slice(before).map(({ path }) => path);
        assert.deepEqual(paths.slice(-2), ['/v3/maintenance/status', '/v3/kv/txn']);
        client.close();
        return ticks > 50;
      });
    }
    // What a lease begins with.
    const store = etcd([silent, silent, good.url]);
    assert.equal((await read(store)).record, undefined);
    store.close();
  });

  test('a member without a leader is passed over, and one that refuses is believed', {
    skip: storm,
  }, async () => {
    const good = await works();
    const alone = await fake(() => [503, { message: 'etcdserver: no leader' }]);
    const denying = await fake(() => [403, { message: 'etcdserver: permission denied' }]);
    const client = createClient([alone.url, good.url], {});
    assert.deepEqual((await client.post('/v3/kv/txn', {})).reply, { ok: true });
    client.close();
    const other = createClient([denying.url, good.url], {});
    for (let n = 0; n < 2; n++) await assert.rejects(other.post('/v3/kv/txn', {}), { status: 403 });
    other.close();
    assert.equal(good.requests.length, 1);
  });

  test('no error shows password or token, and a replaced token is forgotten', async () => {
    let tokens = 0;
    const echo = await fake(({ path, token, body }) => {
      if (path === '/v3/auth/authenticate') return [200, { token: `its-token-${++tokens}` }];
      if (token.endsWith('-1'))
        return [401, { message: `etcdserver: invalid auth token ${token}` }];
      return [500, { message: `${token} of ${PASSWORD} for ${JSON.stringify(body)}` }];
    });
    const url = new URL(echo.url.replace('http:', 'etcd:'));
    Object.assign(url, { username: 'app', password: encodeURIComponent(PASSWORD) });
    const { message, cause } = await SnowFlake.lease(url, { datacenterId: 1 }).catch(
      (error) => error,
    );
    for (const text of [message, inspect(cause), cause.stack]) {
      assert.doesNotMatch(text, /g3heim|its-token/, text);
    }
    assert.match(message, /etcd returned 500: '\*\*\* of \*\*\*/);
    assert.deepEqual(
      echo.requests.map(({ token }) => token),
      [undefined, 'its-token-1', undefined, 'its-token-2'],
    );
    assert.equal(redactForeign('its-token-2'), '***');
    assert.equal(redactForeign('its-token-1'), 'its-token-1');
  });

  test('a redirect is not followed, and a reply that is no object is refused', async () => {
    const elsewhere = await works();
    const url = await listening(
      http.createServer((_, response) => {
        response.writeHead(301, { Location: `${elsewhere.url}/v3/kv/txn` }).end('<html>');
      }),
    );
    await assert.rejects(createClient(url, {}).post('/v3/kv/txn', {}), /returned 301/);
    assert.deepEqual(elsewhere.requests, []);
    for (const value of [null, 5, 'g3heim', true]) {
      const odd = await fake(() => [200, value]);
      const client = createClient(odd.url, {});
      await assert.rejects(client.post('/v3/kv/txn', {}), /not valid JSON of an object/);
      client.close();
    }
  });

  test('a token that no header holds is refused, and a user cannot add a header', async () => {
    const login = { user: 'a\r\nX-Injected: 1', password: `${PASSWORD}\r\nX-Injected: 2` };
    for (const token of ['', 7, 'x'.repeat(2 ** 20), 'its-token\r\nX-Injected: 3']) {
      const odd = await fake(() => [200, { token }]);
      const client = createClient(odd.url, login);
      const error = await client.post('/v3/kv/txn', {}).catch((failure) => failure);
      assert.ok(error instanceof Error);
      assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /g3heim|its-token/);
      assert.deepEqual(
        odd.requests.map(({ path, body }) => [path, body.name, body.password]),
        [['/v3/auth/authenticate', login.user, login.password]],
      );
      client.close();
    }
  });

  test('a login that was abandoned is not kept: the next call logs in anew', async () => {
    let isSilent = true;
    let unanswered = 0;
    const tokens = [];
    const url = await listening(
      http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
        request.resume();
        if (isSilent) {
          unanswered += 1;
          return;
        }
        tokens.push(request.headers.authorization);
        response.end(JSON.stringify({ token: 'its-token' }));
      }),
    );
    const client = createClient(url, { user: 'app', password: PASSWORD });
    const limit = new AbortController();
    const abandoned = [1, 2].map(() => client.post('/v3/kv/txn', {}, limit.signal));
    await until(() => unanswered === 2);
    limit.abort();
    for (const call of abandoned) await assert.rejects(call, { name: 'AbortError' });
    const closed = client.post('/v3/kv/txn', {});
    await until(() => unanswered === 3);
    client.close();
    await assert.rejects(closed, 'a call under way at close()');
    isSilent = false;
    await client.post('/v3/kv/txn', {});
    assert.deepEqual(tokens, [undefined, 'its-token']);
    client.close();
  });

  test('a connection that is kept does not keep the process alive', async () => {
    const { url } = await works();
    const script = `const { createClient } = require(${JSON.stringify(require.resolve('../../js/stores/etcd-client.js'))});
      createClient(${JSON.stringify(url)}, {}).post('/v3/kv/txn', {}).then(() => console.log('replied'));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], {
      timeout: 60_000,
    });
    assert.equal(stdout, 'replied\n');
  });

  test('close() returns a promise, before a request and after one', async () => {
    const { url } = await works();
    const store = etcd(url);
    for (const send of [() => {}, () => read(store)]) {
      await send();
      const closing = store.close();
      assert.ok(closing instanceof Promise);
      await closing;
    }
  });

  test('wrong options are refused', async () => {
    const { ca } = { ca: 'x' };
    for (const [call, expected] of [
      [() => etcd('http://h', { user: 'app' }), /needs both user and password/],
      [() => etcd('http://app@h'), /needs both user and password/],
      [() => etcd('http://a:%zz@h'), /not percent-encoded/],
      [
        () => etcd(['http://a:x@h1', 'http://b:g3heim@h2']),
        /all URLs must have the same user and password/,
      ],
      [() => etcd(['http://h1', 'http://b:g3heim@h2']), /the same user and password/],
      [
        () => etcd('http://h', { user: 'app', password: 7 }),
        /needs both user and password as text/,
      ],
      [() => etcd('http://h', { tls: { ca } }), /tls needs https: URLs/],
      [() => etcd('https://h', { tls: 'g3heim' }), /tls must be options of node:tls/],
      [() => etcd(['https://h', 'http://h']), /all http: or all https:; this is 'http:/],
      [() => etcd([]), /all http: or all https:; this is undefined/],
      [
        () => etcd('http://h', { tsl: {} }),
        /has no 'tsl'. It knows namespace, user, password, tls/,
      ],
      [() => etcd('etcd://h'), /all http: or all https:; this is 'etcd:/],
    ]) {
      assert.throws(call, ({ code, message }) => {
        assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
        assert.doesNotMatch(message, /g3heim/);
        assert.match(message, expected);
        return true;
      });
    }
    for (const [url, expected] of [
      ['etcd://h?ca=/x', /ca of a URL needs etcds:/],
      ['etcds://h?cafile=/x', /does not know.* It knows namespace, host, ca, cert, key/],
      ['etcd://h?host=a:b:c', /each option 'host' of the URL must be host or host:port/],
      ['etcd://app@h', /needs both user and password/],
    ]) {
      await assert.rejects(connect(new URL(url)), ({ code, message }) => {
        assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
        assert.match(message, expected);
        return true;
      });
    }
    for (const url of [
      'etcd://h1:1,h2:x',
      'etcd://app:g3heim@h1,,h2',
      'etcd://h1,h2:99999',
      'etcd://app:g3heim@h1,b:g3heim@h2',
      'etcds://app:g3heim@h1,b:g3heim@h2,h3',
      'zookeeper://app:g3heim@zk1:1,app:g3heim@zk2:1',
    ]) {
      const { code, message } = await SnowFlake.lease(url).catch((error) => error);
      assert.equal(code, 'ERR_SNOWFLAKE_CONFIG', url);
      assert.doesNotMatch(message, /g3heim/);
    }
  });

  test('the URL of several servers names each, with its port or the usual one', async () => {
    const url = serverUrl('the URL', 'etcd://app:p%40ss@h1:1,h2,[::1]:3?namespace=x');
    const store = await connect(url);
    assert.equal(store.server, 'etcd at h1:1,h2:2379,[::1]:3');
    assert.equal(store.name, 'etcd:h1:1,h2:2379,[::1]:3/x');
    const { href } = serverUrl('the URL', 'zookeeper://zk1,zk2:2182/below');
    assert.equal(href, 'zookeeper://zk1/below?host=zk2%3A2182');
  });
});
