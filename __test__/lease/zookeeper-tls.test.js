'use strict';
// Real ZooKeeper servers with TLS, with and without client certificates.

const assert = require('node:assert/strict');
const {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { dirname, join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { connect } = require('../../js/stores/connect.js');
const { registerContract } = require('../../js/stores/contract.js');
const { zookeeper } = require('../../js/stores/zookeeper.js');
const { storm } = require('../support/amount.js');
const { createAuthority } = require('../support/lease/certificates.js');
const { inTime } = require('../support/lease/rounds.js');
const { Server, missing, serves } = require('../support/lease/servers.js');
const { SnowFlake, runScript, until } = require('../support/support.js');

const PASSWORD = 'g3heim/&t:x';
const { signal } = new AbortController();
const NAMES = 'IP:127.0.0.1,DNS:zk1';
const skip = missing('zookeeper');

/** Debian's script leaves out what TLS needs. */
const JAVA = [
  ...[
    '-XX:TieredStopAtLevel=1',
    '-XX:+UseSerialGC',
    '-Xmx128m',
    '-Dzookeeper.jmx.log4j.disable=true',
    '-cp',
  ],
  ['zookeeper', 'netty-codec', 'netty-resolver']
    .map((jar) => `/usr/share/java/${jar}.jar`)
    .join(':'),
  'org.apache.zookeeper.server.quorum.QuorumPeerMain',
];

/** Writes the certificate and the key of a server into its folder. */
function writeServer(folder, { key, cert }) {
  const pem = join(folder, 'server.pem');
  writeFileSync(pem, `${readFileSync(key)}${readFileSync(cert)}`);
  return pem;
}

/** Starts a server with TLS. */
function startServer(files, { auth = 'none', protocols = 'TLSv1.3,TLSv1.2' } = {}) {
  const url = (port) => `zookeepers://127.0.0.1:${port}`;
  return Server.start('zookeeper', {
    other: {
      url,
      programs: () => ['java'],
      args: (folder) => [...JAVA, join(folder, 'zoo.cfg')],
      configure(folder, port) {
        const pem = writeServer(folder, files);
        const settings = {
          ...{
            tickTime: 500,
            maxSessionTimeout: 20_000,
            dataDir: folder,
            'admin.enableServer': false,
          },
          ...{ secureClientPort: port, secureClientPortAddress: '127.0.0.1' },
          serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
          ...{ 'ssl.keyStore.location': pem, 'ssl.trustStore.location': files.clients },
          ...{ 'ssl.clientAuth': auth, 'ssl.enabledProtocols': protocols },
        };
        const lines = Object.entries(settings).map((pair) => pair.join('='));
        writeFileSync(join(folder, 'zoo.cfg'), lines.join('\n'));
      },
      isUp: (where) => serves(`${where}?ca=${files.ca}${files.login ?? ''}`),
    },
  });
}

describe('zookeeper with TLS', { skip: skip ?? storm }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-zookeeper-tls-'));
  const closing = [];
  /** It needs client certificates; the next ones do not, and the last one has no TLS. */
  let server;
  let lax;
  let moving;
  let plain;
  let bundle;
  let ca;
  let app;
  let stranger;
  const queryOf = (options) => new URLSearchParams(options).toString();
  const urlOf = (where, options) => new URL(`${where.url}?${queryOf(options)}`);
  const opened = async (where, options) => {
    const store = await connect(urlOf(where, options));
    closing.push(() => store.close());
    return store;
  };
  const refusal = async (url, options = {}) => {
    let error;
    // No longer than callTimeout.
    await inTime(3000 + 3000, async () => {
      const start = Date.now();
      error = await SnowFlake.lease(url, {
        ...{ datacenterId: 1, scope: 'process', callTimeout: 3000 },
        ...options,
      }).then(
        (flake) => flake.close().then(() => assert.fail('it was not refused')),
        (e) => e,
      );
      return Date.now() - start;
    });
    const shown = inspect(error, { depth: 9, showHidden: true });
    assert.doesNotMatch(shown, /g3heim|PRIVATE KEY/);
    assert.equal(error.code, 'ERR_SNOWFLAKE_STORE', shown);
    return error.message;
  };

  before(async () => {
    const authority = createAuthority(folder, 'servers');
    const clients = createAuthority(folder, 'clients');
    ca = authority.certificate;
    app = clients.issue('app');
    stranger = createAuthority(folder, 'strangers').issue('app');
    const files = { ca, clients: clients.certificate, ...authority.issue('zk', '/O=zk', NAMES) };
    bundle = join(folder, 'bundle.pem');
    copyFileSync(ca, bundle);
    const login = `&${queryOf(app)}`;
    [server, lax, moving, plain] = await Promise.all([
      startServer({ ...files, login }, { auth: 'need' }),
      startServer(files, { protocols: 'TLSv1.2' }),
      startServer({ ...files, ca: bundle }),
      Server.start('zookeeper'),
    ]);
  });
  after(async () => {
    await Promise.all(closing.map((close) => close()));
    await Promise.all([server, lax, moving, plain].map((each) => each?.stop()));
    rmSync(folder, { recursive: true, force: true });
  });

  registerContract('by TLS', (namespace) => connect(urlOf(server, { ca, ...app, namespace })), {
    limit: 240_000,
  });

  test('leases by URL and by zookeeper(), whose tls is options or a function', async () => {
    const tls = { ca: readFileSync(ca), cert: readFileSync(app.cert, 'utf8') };
    tls.key = readFileSync(app.key);
    const stores = [tls, async () => tls].map((given) =>
      zookeeper(`127.0.0.1:${server.port}`, { namespace: 'both', tls: given }),
    );
    const { href } = urlOf(server, { ca, ...app, namespace: 'both' });
    const flakes = [];
    for (const store of [...stores, href]) {
      flakes.push(await SnowFlake.lease(store, { datacenterId: 1, scope: 'process' }));
    }
    assert.equal(new Set(flakes.map(({ workerId }) => workerId)).size, 3);
    const ids = flakes.flatMap((flake) => Array.from({ length: 1000 }, () => flake.nextId()));
    assert.equal(new Set(ids).size, 3000);
    for (const flake of flakes) await flake.close();
  });

  test('with a login over TLS, the nodes are of that user and of the certificate', async () => {
    const login = (url) => Object.assign(url, { username: 'app', password: PASSWORD });
    const store = await connect(login(urlOf(server, { ca, ...app, namespace: 'closed' })));
    closing.push(() => store.close());
    const record = { token: '0123456789abcdef', text: '' };
    await store.write('namespace', record, undefined, { signal });
    // The same certificate is enough.
    const same = await opened(server, { ca, ...app, namespace: 'closed' });
    assert.deepEqual((await same.read('namespace', { signal })).record, record);
    const own = await connect(login(urlOf(lax, { ca, namespace: 'closed' })));
    closing.push(() => own.close());
    await own.write('namespace', record, undefined, { signal });
    const { href } = urlOf(lax, { ca, namespace: 'closed' });
    assert.match(await refusal(href), /^ZooKeeper at \S+ denied access: grant this user/);
  });

  test('each session with a login over TLS opens, also where the server would answer the login first', async () => {
    const url = urlOf(lax, { ca, namespace: 'many' });
    Object.assign(url, { username: 'app', password: PASSWORD });
    for (let count = 0; count < 60; count++) {
      const store = await connect(url);
      await store.now({ signal });
      await store.close();
    }
  });

  test('a CA that is not trusted, and another name, are refused', async () => {
    for (const url of [urlOf(lax, {}), urlOf(lax, { ca: stranger.cert })]) {
      const message = await refusal(url.href);
      assert.match(message, /^Cannot agree on TLS with ZooKeeper at 127.*: check .*InvalidCert/);
      assert.match(message, /UnknownIssuer/);
    }
    const other = urlOf(lax, { ca });
    other.hostname = 'localhost';
    const message = await refusal(other.href);
    assert.match(message, /^Cannot agree on TLS with ZooKeeper at localhost/);
    assert.match(message, /NotValidForName/);
    other.hostname = 'not_a_host-.';
    assert.match(await refusal(other.href), /is no name of a host/);
  });

  test('CAs of NODE_EXTRA_CA_CERTS are trusted, unless there is a ca', async () => {
    const script = `
      const options = { datacenterId: 1, scope: 'process', callTimeout: 30_000 };
      require('../..').SnowFlake.lease(process.env.URL_OF_ENGINE, options)
        .then(async (flake) => { console.log(typeof flake.nextId()); await flake.close(); }, ({ message }) => console.log(message));`;
    const output = async (options, env) => {
      const { href } = urlOf(lax, { namespace: 'extra', ...options });
      return (await runScript(script, { env: { URL_OF_ENGINE: href, ...env } })).stdout;
    };
    assert.equal(await output({}, { NODE_EXTRA_CA_CERTS: ca }), 'bigint\n');
    const own = await output({ ca: stranger.cert }, { NODE_EXTRA_CA_CERTS: ca });
    assert.match(own, /^Cannot agree on TLS with ZooKeeper/);
  });

  test('without a client certificate, or with one of another CA, a server that needs one refuses', async () => {
    for (const files of [{}, stranger]) {
      const message = await refusal(urlOf(server, { ca, ...files }).href);
      assert.match(message, /^Cannot agree on TLS with ZooKeeper at 127.*client certificate/);
    }
  });

  test('TLS to a server without it, and the reverse, are named', async () => {
    const tls = new URL(plain.url.replace('zookeeper:', 'zookeepers:'));
    assert.match(await refusal(`${tls}?ca=${ca}`), /^Cannot agree on TLS with ZooKeeper at 127/);
    for (const each of [server, lax]) {
      const message = await refusal(each.url.replace('zookeepers:', 'zookeeper:'));
      assert.match(message, /^(ZooKeeper at \S+ closed the connection|Cannot agree on TLS)/);
      assert.match(message, /TLS/);
    }
  });

  test('certificates and keys that cannot be used are named', async () => {
    const encrypted = join(folder, 'encrypted.key');
    writeFileSync(
      encrypted,
      '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n',
    );
    for (const files of [
      { ...app, key: encrypted },
      { ...app, key: stranger.key },
      { ...app, cert: app.key },
      { ...app, ca: app.key },
    ]) {
      const message = await refusal(urlOf(server, { ca, ...files }).href);
      assert.match(message, /^Cannot use the certificate or key for ZooKeeper at 127/);
    }
    for (const options of [{ ca: join(folder, 'absent') }, { cert: app.cert }, { x: 1 }]) {
      const error = await SnowFlake.lease(urlOf(lax, options).href, { datacenterId: 1 }).catch(
        (e) => e,
      );
      assert.equal(error.code, 'ERR_SNOWFLAKE_CONFIG', inspect(error));
    }
    const { href } = new URL(`${plain.url}?ca=${ca}`);
    const error = await SnowFlake.lease(href, { datacenterId: 1 }).catch((e) => e);
    assert.match(error.message, /^ca of a URL needs zookeepers:\/\//);
  });

  test('a session and its lease survive a restart of the server with a certificate of another CA', async () => {
    const options = { ca: bundle, namespace: 'restarted' };
    const flake = await SnowFlake.lease(urlOf(moving, options).href, {
      ...{ datacenterId: 1, ttl: 10_000, scope: 'process', callTimeout: 30_000, maxWait: 60_000 },
    });
    const first = flake.nextId();
    const { workerId } = flake;
    const store = await opened(moving, options);
    await store.now({ signal });
    const next = createAuthority(folder, 'successors');
    appendFileSync(bundle, readFileSync(next.certificate));
    const renewal = async () => {
      const { renewals } = flake.lease;
      await until(() => flake.lease.renewals > renewals);
    };
    await renewal();
    await moving.kill();
    writeServer(dirname(moving.certificate), next.issue('zk', '/O=zk', NAMES));
    await moving.run();
    const start = Date.now();
    await until(() => store.now({ signal }).then(Boolean, () => false));
    // A session that waited for its connection, with the CA of before, would be replaced after 14 s.
    assert.ok(Date.now() - start < 12_000, `${Date.now() - start} ms`);
    await renewal();
    assert.equal(flake.workerId, workerId);
    assert.ok((await flake.nextIdAsync()) > first);
    await flake.close();
  });
});

test('the options of tls are checked, and not shown', { skip }, () => {
  for (const tls of [
    ...['g3heim', ['g3heim'], null, { key: 'g3heim' }, { cert: 'g3heim' }],
    ...[{ passphrase: 'g3heim' }, { ca: { g3heim: 1 } }, { rejectUnauthorized: false }],
  ]) {
    assert.throws(
      () => zookeeper('zk1:2281', { tls }),
      (error) => {
        assert.equal(error.code, 'ERR_SNOWFLAKE_CONFIG');
        assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /g3heim/);
        return true;
      },
    );
  }
});
