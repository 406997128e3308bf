'use strict';
// Real etcd servers with users, TLS, client certificates and several endpoints. All are storms: tokens
// expire, members stop, and the contract runs a second time.
//
//   TESTS=storms node --test __test__/lease/etcd.test.js

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { randomBytes } = require('node:crypto');
const { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { connect } = require('../../js/stores/connect.js');
const { createClient } = require('../../js/stores/etcd-client.js');
const { registerContract } = require('../../js/stores/contract.js');
const { etcd } = require('../../js/stores/etcd.js');
const { storm } = require('../support/amount.js');
const { createAuthority } = require('../support/lease/certificates.js');
const { prefixed, requireLogin } = require('../support/lease/etcd-users.js');
const { Server, freePort, missing } = require('../support/lease/servers.js');
const { SnowFlake, until } = require('../support/support.js');

const PASSWORD = 'g3heim/&t+x';
const readwrite = (prefix) => [['READWRITE', prefix]];

const skip = missing('etcd') ?? storm;

const { signal } = new AbortController();

/** Reads and creates a record: with rights for both, under a key of its own. */
async function use(store) {
  const key = randomBytes(8).toString('hex');
  await store.read(key, { signal });
  await change(store, { key });
}

/** Replaces a record, or creates it. Returns what replaces it next. */
async function change(store, { key, token: before }) {
  const token = randomBytes(8).toString('hex');
  const { isWritten } = await store.write(key, { token, text: '' }, before, { signal });
  assert.equal(isWritten, true);
  return { key, token };
}

/** How a store refuses its use. */
async function refusal(store, call = () => use(store)) {
  try {
    await call();
  } catch (error) {
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /g3heim/);
    return error;
  } finally {
    await store.close?.();
  }
  assert.fail('it was not refused');
}

/** A URL of a server with user, password and options. */
function urlOf(server, { user = 'app', password = PASSWORD, ...options }) {
  const url = new URL(server.url);
  Object.assign(url, { username: user, password: encodeURIComponent(password) });
  for (const [name, value] of Object.entries(options)) url.searchParams.set(name, value);
  return url;
}

describe('etcd with users, TLS and client certificates', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-etcd-tls-'));
  const closing = [];
  let server;
  let files;
  let stranger;
  let named;
  const opened = async (options) => {
    const store = await connect(urlOf(server, { ca: server.certificate, ...files, ...options }));
    closing.push(() => store.close());
    return store;
  };

  before(async () => {
    const clients = createAuthority(folder, 'clients');
    files = clients.issue('app');
    named = clients.issue('named', '/CN=app');
    stranger = createAuthority(folder, 'strangers').issue('app');
    server = await Server.start('etcd', {
      tls: true,
      args: (data) => {
        // The gateway is a client of its own server, with the server's certificate.
        const trusted = join(data, 'trusted');
        copyFileSync(join(data, 'certificate'), trusted);
        appendFileSync(trusted, readFileSync(clients.certificate));
        return ['--client-cert-auth', '--trusted-ca-file', trusted];
      },
    });
    const tls = {
      ca: readFileSync(server.certificate),
      cert: readFileSync(files.cert),
      key: readFileSync(files.key),
    };
    const url = server.url.replace('etcds', 'https');
    const probe = createClient(url, { tls });
    await until(() => probe.post('/v3/kv/txn', {}).then(Boolean, () => false));
    probe.close();
    const users = {
      app: { password: PASSWORD, permissions: readwrite('snowdrift/') },
      reader: { password: PASSWORD, permissions: [['READ', 'snowdrift/']] },
      writer: { password: PASSWORD, permissions: [['WRITE', 'snowdrift/']] },
      other: { password: PASSWORD, permissions: readwrite('snowdrift/other/') },
      nobody: { password: PASSWORD, permissions: [] },
    };
    (await requireLogin(url, users, { tls })).close();
  });
  after(async () => {
    await Promise.all(closing.map((close) => close()));
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  registerContract(
    'by TLS',
    (namespace) => connect(urlOf(server, { ca: server.certificate, ...files, namespace })),
    { limit: 240_000 },
  );

  test('a lease by URL', async () => {
    const { href } = urlOf(server, { ca: server.certificate, ...files, namespace: 'leased' });
    const flake = await SnowFlake.lease(href, { datacenterId: 1, callTimeout: 60_000 });
    assert.equal(flake.lease.store, `etcd:127.0.0.1:${server.port}/leased`);
    assert.equal(typeof flake.nextId(), 'bigint');
    await flake.close();
  });

  test('a lease by etcd(), whose tls is options or a function', async () => {
    const tls = { ca: readFileSync(server.certificate) };
    for (const name of ['cert', 'key']) tls[name] = readFileSync(files[name], 'utf8');
    for (const given of [tls, async () => tls]) {
      const store = etcd(`https://127.0.0.1:${server.port}`, {
        ...{ namespace: 'direct', user: 'app', password: PASSWORD, tls: given },
      });
      const flake = await SnowFlake.lease(store, {
        ...{ datacenterId: 1, scope: 'process', callTimeout: 60_000 },
      });
      assert.equal(typeof flake.nextId(), 'bigint');
      await flake.close();
    }
  });

  test('a role with a right less is denied', async () => {
    for (const user of ['reader', 'writer', 'other', 'nobody']) {
      const { code, message } = await refusal(await opened({ user, namespace: 'less' }));
      assert.equal(code, 'ERR_SNOWFLAKE_STORE');
      assert.equal(
        message,
        `etcd at 127.0.0.1:${server.port} denied access: grant this user the rights. Its client says: Error: etcd returned 403: 'etcdserver: permission denied'`,
      );
    }
    // A role for one namespace is enough for that.
    const own = await opened({ user: 'other', namespace: 'other' });
    await use(own);
  });

  test('a wrong password, an unknown user and no user are refused', async () => {
    for (const login of [{ password: 'g3heim' }, { user: 'g3heim' }]) {
      const { message } = await refusal(await opened(login));
      assert.match(message, /^etcd at \S+ refused the login: check user and password\. Its client/);
    }
    // With client certificates, the gateway is a user without rights.
    const { message } = await refusal(await opened({ user: '', password: '' }));
    assert.match(message, /^etcd at \S+ (refused the login|denied access)/);
  });

  test('without the CA, or with a certificate that the server does not trust, TLS is refused', async () => {
    const { ca } = { ca: server.certificate };
    for (const [what, url] of [
      ['no CA', urlOf(server, files)],
      ['another CA', urlOf(server, { ...files, ca: files.cert })],
      ['no certificate', urlOf(server, { ca })],
      ['the certificate of a stranger', urlOf(server, { ca, ...stranger })],
      ['a common name', urlOf(server, { ca, ...named })],
    ]) {
      const { code, message } = await refusal(await connect(url));
      assert.equal(code, 'ERR_SNOWFLAKE_STORE');
      const expected = what.includes('CA')
        ? /^Cannot agree on TLS with etcd at/
        : /^(Cannot agree on TLS with etcd at|etcd at \S+ closed the connection)/;
      assert.match(message, expected, what);
    }
    const plain = new URL(`etcd://127.0.0.1:${server.port}`);
    const { message } = await refusal(await connect(plain));
    assert.match(message, /^(Cannot agree on TLS with etcd|etcd at \S+ closed the connection)/);
  });

  test('a certificate that was renewed on disk is used, and a missing file is named', async () => {
    const [cert, key] = [join(folder, 'renewed.pem'), join(folder, 'renewed.key')];
    const put = (from) => {
      copyFileSync(from.cert, cert);
      copyFileSync(from.key, key);
    };
    put(stranger);
    const store = await opened({ cert, key, namespace: 'renewed' });
    await assert.rejects(use(store), { code: 'ERR_SNOWFLAKE_STORE' });
    put(files);
    await use(store);
    rmSync(key);
    const { code, message } = await refusal(store);
    assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
    assert.match(message, /cannot read the file of the option key of etcd at \S+ \(ENOENT\)/);
  });
});

describe('tokens of etcd', { skip }, () => {
  const users = { app: { password: PASSWORD, permissions: readwrite('snowdrift/') } };
  /** Calls `use` with a store, its server and a client of root. */
  async function withLogin(args, use) {
    const server = await Server.start('etcd', { args });
    const root = await requireLogin(server.url.replace('etcd', 'http'), users);
    const store = await connect(urlOf(server, {}));
    try {
      await use({ store, server, root });
    } finally {
      root.close();
      await store.close();
      await server.stop();
    }
  }

  test('one that has expired is renewed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'snowdrift-etcd-jwt-'));
    const [key, pub] = [join(folder, 'key'), join(folder, 'pub')];
    execFileSync('openssl', ['genrsa', '-out', key, '2048'], { stdio: 'pipe' });
    execFileSync('openssl', ['rsa', '-in', key, '-pubout', '-out', pub], { stdio: 'pipe' });
    const jwt = `jwt,pub-key=${pub},priv-key=${key},sign-method=RS256,ttl=1s`;
    await withLogin(['--auth-token', jwt], async ({ store, root }) => {
      let record = await change(store, { key: 'a' });
      const start = performance.now();
      let token;
      // Longer than two tokens live.
      while (performance.now() - start < 2500) {
        // The next token may expire on its way, too, on a busy machine.
        const isWritten = () =>
          change(store, record).then(
            (next) => {
              record = next;
              return true;
            },
            () => false,
          );
        await until(isWritten);
        token ??= (await root.post('/v3/auth/authenticate', { name: 'app', password: PASSWORD }))
          .reply.token;
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
      assert.equal(token.split('.').length, 3, 'a JWT');
    });
    rmSync(folder, { recursive: true });
  });

  test('one that is refused is renewed: after a restart, and after a change of users', async () => {
    await withLogin([], async ({ store, server, root }) => {
      let record = await change(store, { key: 'a' });
      await server.kill();
      await server.run();
      record = await change(store, record);
      await root.post('/v3/auth/role/add', { name: 'another' });
      record = await change(store, record);
      // A right that is taken away is not asked for again and again.
      const range = prefixed('snowdrift/');
      await root.post('/v3/auth/role/revoke', { role: 'app', ...range });
      const { message } = await refusal(store, () => change(store, record));
      assert.match(message, /denied access/);
      await root.post('/v3/auth/role/grant', {
        ...{ name: 'app', perm: { permType: 'READWRITE', ...range } },
      });
      record = await change(store, record);
    });
  });

  test('a server without users yet is used without a token, until it has users', async () => {
    const server = await Server.start('etcd');
    const store = await connect(urlOf(server, {}));
    try {
      let record = await change(store, { key: 'a' });
      const root = await requireLogin(server.url.replace('etcd', 'http'), users);
      record = await change(store, record);
      root.close();
    } finally {
      await store.close();
      await server.stop();
    }
  });
});

describe('the versions that etcd keeps', { skip }, () => {
  const LINE = `held ${'f'.repeat(16)} ${'f'.repeat(8)} 205113630000 205113670000 1785600030000 4711 1785590000000 10.0.12.34:8080 web-7f9c4d5b6d-x2x9k`;
  const text = Array.from({ length: etcd('http://h').bucketSize }, (_, n) => `${n} ${LINE}`);

  /** Writes a full record many times, on a server with these arguments. */
  async function withVersions(args, count, use) {
    const server = await Server.start('etcd', { args });
    const store = await connect(new URL(server.url));
    const client = createClient(server.url.replace('etcd', 'http'), {});
    const sizeOf = async () =>
      Number((await client.post('/v3/maintenance/status', {})).reply.dbSize);
    try {
      let token;
      const write = async () => {
        const record = { token: randomBytes(8).toString('hex'), text: text.join('\n') };
        const limit = new AbortController();
        await store.write('0/0', record, token, { signal: limit.signal });
        token = record.token;
      };
      await write();
      const before = await sizeOf();
      for (let n = 0; n < count; n++) await write();
      await use({ store, write, perWrite: ((await sizeOf()) - before) / count });
    } finally {
      client.close();
      await store.close();
      await server.stop();
    }
  }

  test('take the room that docs/stores.md says', async () => {
    const page = readFileSync(join(__dirname, '../../docs/stores.md'), 'utf8');
    const [, said] = /A renewal adds ([\d.]+) KB/.exec(page);
    await withVersions([], 5000, async ({ perWrite }) => {
      assert.ok(Math.abs(perWrite - said * 1000) < 150, `${perWrite} bytes for each write`);
    });
  });

  test('fill it: an error says what to do, and reads go on', async () => {
    await withVersions(['--quota-backend-bytes', '8000000'], 4000, async ({ store, write }) => {
      const full = async () => {
        for (;;) await write();
      };
      await assert.rejects(full, {
        code: 'ERR_SNOWFLAKE_STORE',
        message: /^etcd at \S+ is full of old versions: run "etcdctl compact"/,
      });
      const { record } = await store.read('0/0', { signal });
      assert.equal(record.text, text.join('\n'));
    });
  });

  test('go with a compaction', async () => {
    const args = ['--auto-compaction-retention', '1s', '--quota-backend-bytes', '16000000'];
    await withVersions(args, 30_000, async ({ perWrite }) => {
      assert.ok(perWrite < 700, `${perWrite} bytes for each write`);
    });
  });
});

describe('several endpoints of etcd', { skip }, () => {
  test('a lease goes on while members are killed and stopped', async () => {
    const ports = [];
    while (ports.length < 3) ports.push([await freePort(), await freePort()]);
    const peers = ports.map(([, peer], n) => `n${n}=http://127.0.0.1:${peer}`).join(',');
    const members = await Promise.all(
      ports.map((pair, n) =>
        Server.start('etcd', {
          ports: pair,
          args: [
            ...['--name', `n${n}`, '--initial-cluster', peers],
            ...['--heartbeat-interval', '100', '--election-timeout', '1000'],
          ],
        }),
      ),
    );
    const hosts = ports.map(([port]) => `127.0.0.1:${port}`).join(',');
    try {
      let flake;
      const lease = async () => {
        flake = await SnowFlake.lease(`etcd://${hosts}?namespace=three`, {
          ...{ datacenterId: 1, ttl: 6000, callTimeout: 1500, scope: 'process' },
        });
        return true;
      };
      // Members that are busy may be slower than callTimeout.
      await until(() =>
        lease().catch((error) => {
          if (error.code !== 'ERR_SNOWFLAKE_STORE') throw error;
          return false;
        }),
      );
      assert.equal(flake.lease.store, `etcd:${hosts}/three`);
      const goesOn = async () => {
        const { renewals } = flake.lease;
        await until(() => flake.lease.renewals > renewals);
        await until(() => flake.lease.state === 'held');
        await until(() => {
          try {
            return typeof flake.nextId() === 'bigint';
          } catch ({ code }) {
            assert.equal(code, 'ERR_SNOWFLAKE_LEASE_EXPIRED');
            return false;
          }
        });
      };
      await goesOn();
      for (const member of members) {
        await member.kill();
        await goesOn();
        await member.run();
        member.signal('SIGSTOP');
        await goesOn();
        member.signal('SIGCONT');
      }
      await flake.close();
    } finally {
      for (const member of members) {
        member.signal('SIGCONT');
        await member.stop();
      }
    }
  });
});
