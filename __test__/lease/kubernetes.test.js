'use strict';
// Leases in Kubernetes: the contract on a server, which is the stand-in or, with KUBE_APISERVER, a kube-apiserver; and fakes
// for what servers, proxies and tokens do rarely.

const assert = require('node:assert/strict');
const { execFile, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const https = require('node:https');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { redactForeign } = require('../../js/messages/secrets.js');
const { connect } = require('../../js/stores/connect.js');
const { registerContract } = require('../../js/stores/contract.js');
const { kubernetes } = require('../../js/stores/kubernetes.js');
const { gate } = require('../support/amount.js');
const { createAuthority } = require('../support/lease/certificates.js');
const { Leases, handler } = require('../support/lease/kubernetes-server.js');
const { ask, isReal } = require('../support/lease/kubernetes.js');
const { linkedServer } = require('../support/lease/link.js');
const { SnowFlake } = require('../support/support.js');

const options = () => ({ signal: AbortSignal.timeout(60_000) });
const record = { token: '0123456789abcdef', text: 'first' };
const byUrl = (url, namespace) => connect(new URL(`${url}&namespace=${namespace}`));
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/ids/leases';

const leasesOf = async (url) => JSON.parse((await ask(url, 'GET', LEASES)).text).items;

describe(isReal ? 'on a kube-apiserver' : 'on a stand-in of the API server', { skip: gate }, () => {
  const own = linkedServer('kubernetes');

  registerContract('kubernetes', (namespace) => byUrl(own.server.url, namespace), {
    limit: 240_000,
    async spoil(namespace, key) {
      const [{ metadata }] = (await leasesOf(own.server.url)).filter(
        ({ metadata: { annotations } }) => annotations['snowdrift/key'] === `${namespace}/${key}`,
      );
      const { name, annotations } = metadata;
      const object = {
        metadata: { name, annotations: { ...annotations, 'snowdrift/token': 'x' } },
      };
      await ask(own.server.url, 'DELETE', `${LEASES}/${name}`);
      assert.equal((await ask(own.server.url, 'POST', LEASES, object)).status, 201);
    },
    async openSilent() {
      const { url, link } = await own.linked();
      const register = await byUrl(url, 'silent');
      await register.now(options());
      link.halfOpen();
      link.silent();
      return register;
    },
  });

  test('a write whose reply was lost may be sent again', async () => {
    const { url, link } = await own.linked();
    const [linked, direct] = [await byUrl(url, 'lost'), await byUrl(own.server.url, 'lost')];
    await direct.write('0/0', record, undefined, options());
    await linked.read('0/0', options());
    link.loseReplies(0);
    const abort = new AbortController();
    const next = { token: 'f'.repeat(16), text: 'second' };
    const call = linked.write('0/0', next, record.token, { signal: abort.signal });
    call.catch(() => {});
    while ((await direct.read('0/0', options())).record.token !== next.token);
    abort.abort();
    await assert.rejects(call);
    link.reset();
    assert.equal((await linked.write('0/0', next, record.token, options())).isWritten, true);
    await Promise.all([linked.close(), direct.close()]);
  });

  test('keys are apart, whatever the case and the characters of a namespace', async () => {
    const names = ['ab', 'Ab', 'aB', 'a-', '-a', '-', 'a.b', 'a_b', 'x41b', 'x', 'X', '.', 'z'];
    const all = [...names, 'A'.repeat(64), '_'.repeat(64)];
    const opened = await Promise.all(all.map((name) => byUrl(own.server.url, name)));
    const write = (store, n, token) =>
      store.write('0/12', { token, text: String(n) }, undefined, options());
    for (const [n, store] of opened.entries()) {
      assert.equal((await write(store, n, `${n + 10}`.padStart(16, '0'))).isWritten, true, all[n]);
    }
    for (const [n, store] of opened.entries()) {
      const { record } = await store.read('0/12', options());
      assert.equal(record.text, String(n), all[n]);
      await store.close();
    }
  });

  test('a lease, and what an operator sees of it', async () => {
    const flake = await SnowFlake.lease(`${own.server.url}&namespace=seen`, {
      ...{ datacenterId: 1, callTimeout: 60_000, scope: 'process' },
    });
    assert.equal(typeof flake.nextId(), 'bigint');
    const seen = (await leasesOf(own.server.url))
      .map(({ metadata }) => metadata)
      .filter(({ name }) => name.startsWith('snowdrift.seen.'));
    const labels = seen.map((each) => each.labels['app.kubernetes.io/managed-by']);
    assert.deepEqual(labels, ['snowdrift', 'snowdrift']);
    const bucket = seen.find(({ name }) => name !== 'snowdrift.seen.namespace');
    assert.match(bucket.annotations['snowdrift/key'], /^seen\/1\/\d+$/);
    assert.match(bucket.annotations['snowdrift/text'], / held /);
    await flake.close();
  });
});

describe('requests to Kubernetes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-kubernetes-'));
  const closing = [];
  let files;
  let ca;
  before(() => {
    const authority = createAuthority(folder, 'ca');
    const { cert, key } = authority.issue('server', '/O=server', 'IP:127.0.0.1');
    ca = readFileSync(authority.certificate, 'utf8');
    files = { cert: readFileSync(cert), key: readFileSync(key) };
  });
  after(() => {
    for (const server of closing) server.close();
    for (const server of closing) server.closeAllConnections();
    rmSync(folder, { recursive: true });
  });

  /** The URL of a server whose requests `answer` gets. */
  async function serve(answer) {
    const server = https.createServer(files, answer);
    closing.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `https://127.0.0.1:${server.address().port}`;
  }

  const SECRET = 'a.token-of-Pods_1';
  const open = (server, more) =>
    kubernetes({ server, ca, token: SECRET, kubernetesNamespace: 'ids', ...more });
  /** A stand-in, and a register of it. `spoil` may answer a request instead: it returns true then. */
  async function standIn({ spoil, isToken = (token) => token === SECRET, ...more } = {}) {
    const answer = handler({ leases: new Leases(), isToken, ...more });
    const requests = [];
    const url = await serve((request, response) => {
      requests.push(request);
      if (!spoil?.(request, response)) answer(request, response);
    });
    return { url, requests, open: (own) => open(url, own) };
  }
  const says = (code, message, more) => (_, response) => {
    response.writeHead(code, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ kind: 'Status', code, message, ...more }));
    return true;
  };
  const html = (code) => (_, response) => {
    response.writeHead(code, { 'Content-Type': 'text/html' });
    response.end('<html><h1>Sign in</h1></html>');
    return true;
  };
  const failureOf = async (call) => {
    const failure = await call.then(
      (reply) => assert.fail(`it returned ${inspect(reply)}`),
      (failure) => failure,
    );
    assert.ok(failure instanceof Error);
    assert.doesNotMatch(inspect(failure, { depth: 9, showHidden: true }), /a\.token-of/);
    return failure;
  };

  test('a refused write differs from one whose condition does not hold', async () => {
    const webhook = 'admission webhook "policy.example.com" denied the request: no annotations';
    let refusal;
    const isWrite = ({ method }) => method !== 'GET';
    const { open } = await standIn({
      spoil: (...both) => refusal && isWrite(both[0]) && refusal(...both),
    });
    const store = open();
    assert.equal((await store.write('0/0', record, undefined, options())).isWritten, true);
    const other = { token: 'e'.repeat(16), text: 'other' };
    for (const [code, message] of [
      [422, 'Lease.coordination.k8s.io "x" is invalid: metadata.annotations: Too long'],
      [409, 'Operation cannot be fulfilled on leases.coordination.k8s.io "x"'],
      [403, 'leases.coordination.k8s.io "x" is forbidden: exceeded quota'],
      [400, webhook],
      [429, 'Too many requests, please try again later.'],
      [500, 'etcdserver: request timed out'],
      [504, 'Timeout: request did not complete within requested timeout'],
    ]) {
      refusal = says(code, message);
      const write = (before) => store.write('0/0', other, before, options());
      const { message: said } = await failureOf(write(record.token));
      assert.equal(said, `Kubernetes returned ${code}: '${message}'`);
      if (![409, 422].includes(code)) await failureOf(write(undefined));
    }
    assert.deepEqual((await store.read('0/0', options())).record, record);
    refusal = undefined;
    const { isWritten, found } = await store.write('0/0', other, 'f'.repeat(16), options());
    assert.deepEqual([isWritten, found], [false, record]);
  });

  test('a namespace of Kubernetes that is not there is an error, and no missing record', async () => {
    const details = { name: 'ids', kind: 'namespaces' };
    const gone = says(404, 'namespaces "ids" not found', { reason: 'NotFound', details });
    const { open } = await standIn({ spoil: gone });
    const store = open();
    for (const call of [
      store.read('0/0', options()),
      store.write('0/0', record, undefined, options()),
      store.write('0/0', record, record.token, options()),
    ]) {
      assert.match((await failureOf(call)).message, /404: 'namespaces "ids" not found'/);
    }
  });

  test('what no API server says is an error, in time', async () => {
    const object = (annotations) => ({ kind: 'Lease', metadata: { annotations } });
    const json =
      (value, code = 200) =>
      (_, response) => {
        response.writeHead(code, { 'Content-Type': 'application/json' });
        response.end(typeof value === 'string' ? value : JSON.stringify(value));
        return true;
      };
    const endless = (_, response) => {
      const part = Buffer.alloc(2 ** 16, ' ');
      const fill = () => {
        while (response.write(part));
      };
      response.on('drain', fill).on('error', () => {});
      fill();
      return true;
    };
    const cut = (_, response) => {
      response.writeHead(200, { 'Content-Length': 1000 });
      response.write('{"kind":"Lease",');
      setImmediate(() => response.destroy());
      return true;
    };
    const token = record.token;
    const own = { 'snowdrift/token': token, 'snowdrift/text': 'x', 'snowdrift/key': 'default/0/0' };
    for (const [name, spoil] of Object.entries({
      'a page of a proxy': html(200),
      'a page that there is none': html(404),
      'a missing path': says(404, 'the server could not find the requested resource'),
      'an empty body': json(''),
      null: json('null'),
      'a list': json([]),
      'no Lease': json({}),
      'no metadata': json({ kind: 'Lease' }),
      'metadata of another type': json({ kind: 'Lease', metadata: 7 }),
      'annotations of another type': json(object('x')),
      'no annotations': json(object(null)),
      'a record of another key': json(object({ ...own, 'snowdrift/key': 'default/0/1' })),
      'a record of another namespace': json(object({ ...own, 'snowdrift/key': 'other/0/0' })),
      'a token of another type': json(object({ ...own, 'snowdrift/token': 1 })),
      'no text': json(object({ ...own, 'snowdrift/text': undefined })),
      'a longer token': json(object({ ...own, 'snowdrift/token': `${token}0` })),
      'details of another type': json({ details: 'x' }, 404),
      'an endless body': endless,
      'a cut body': cut,
    })) {
      const { open } = await standIn({ spoil });
      const store = open();
      await failureOf(store.read('0/0', options())).catch((failure) => {
        throw new Error(name, { cause: failure });
      });
      await failureOf(store.write('0/0', record, undefined, options()));
      await failureOf(store.write('0/0', record, token, options()));
      await failureOf(store.namespaces(options()));
      await store.close();
    }
  });

  test('a reply that leaves a part out has none of Object.prototype', async () => {
    const annotations = { 'snowdrift/token': 'f'.repeat(16), 'snowdrift/text': 'x' };
    annotations['snowdrift/key'] = 'default/0/0';
    const polluted = { kind: 'Lease', metadata: { annotations }, annotations, ...annotations };
    const { open } = await standIn({ spoil: says(404, 'no', { kind: undefined }) });
    const bare = await standIn({
      spoil(_, response) {
        response.end('{"kind":"Lease"}');
        return true;
      },
    });
    Object.assign(Object.prototype, polluted, { items: [1], details: { kind: 'leases' } });
    try {
      for (const store of [open(), bare.open()]) {
        await assert.rejects(store.read('0/0', options()));
        await assert.rejects(store.write('0/0', record, undefined, options()));
        await assert.rejects(store.namespaces(options()));
      }
    } finally {
      for (const name of [...Object.keys(polluted), 'items', 'details']) {
        delete Object.prototype[name];
      }
    }
  });

  test('a server that changes what is written is an error', async () => {
    const { open } = await standIn({
      spoil: ({ method }, response) =>
        method === 'POST' &&
        says(201, '', {
          kind: 'Lease',
          metadata: {
            annotations: {
              ...{ 'snowdrift/token': record.token, 'snowdrift/text': 'FIRST' },
              'snowdrift/key': 'default/0/0',
            },
          },
        })(undefined, response),
    });
    const { message } = await failureOf(open().write('0/0', record, undefined, options()));
    assert.match(message, /another record: an admission webhook changes it/);
  });

  test('a reply without its time is an error', async () => {
    const { open } = await standIn({
      spoil(_, response) {
        response.sendDate = false;
      },
    });
    const store = open();
    for (const call of [store.now(options()), store.read('0/0', options())]) {
      assert.match((await failureOf(call)).message, /its reply has no header Date/);
    }
  });

  test('a redirect is not followed', async () => {
    const elsewhere = await standIn();
    const { open } = await standIn({
      spoil(request, response) {
        response.writeHead(307, { Location: elsewhere.url + request.url }).end('{}');
        return true;
      },
    });
    await failureOf(open().read('0/0', options()));
    assert.deepEqual(elsewhere.requests, []);
  });

  test('a token is read for each request; after it has expired, the next call has the new one', async () => {
    let [valid, given] = ['token-1-Xy', 'token-1-Xy'];
    const { open, requests } = await standIn({ isToken: (token) => token === valid });
    const store = open({ token: async () => given });
    const url = new URL('kubernetes://h:1/ids');
    await store.write('0/0', record, undefined, options());
    for (const next of ['token-2-Xy', 'token-3-Xy']) {
      valid = next;
      const { message } = await failureOf(store.read('0/0', options()));
      assert.equal(message, "Kubernetes returned 401: 'Unauthorized'");
      given = next;
      assert.deepEqual((await store.read('0/0', options())).record, record);
    }
    assert.equal(requests.length, 5);
    assert.equal(redactForeign(`${url} token-3-Xy`), `${url} ***`);
    assert.equal(redactForeign('token-1-Xy'), 'token-1-Xy');
  });

  test('no error shows a token that a server or a proxy repeats', async () => {
    const echo = ({ headers }, response) =>
      says(403, `${headers.authorization} and ${SECRET} are forbidden`)(undefined, response);
    const { url } = await standIn({ spoil: echo });
    const [path, file] = [join(folder, 'token'), join(folder, 'ca.pem')];
    writeFileSync(path, `${SECRET}\n`);
    const lease = `${url.replace('https', 'kubernetes')}/ids?tokenFile=${path}&ca=${file}`;
    const own = { datacenterId: 1, callTimeout: 60_000 };
    const { message } = await failureOf(SnowFlake.lease(lease, own));
    assert.match(
      message,
      /^Kubernetes at 127\.0\.0\.1:\d+ denied access: grant this user the rights.*'Bearer \*\*\* and \*\*\* are forbidden'/,
    );
    for (const token of [
      '',
      ' ',
      'two words',
      'a\r\nX-Injected: 1',
      'x'.repeat(2 ** 15),
      7,
      null,
    ]) {
      const failure = await failureOf(open(url, { token: () => token }).read('0/0', options()));
      assert.match(failure.message, /token of kubernetes\(\) must be 1 to 16384 visible/);
    }
  });

  test('each failure says what to do', async () => {
    const file = join(folder, 'token');
    writeFileSync(file, SECRET);
    const lease = async (url, more = '') => {
      const path = `${url.replace('https', 'kubernetes')}/ids?tokenFile=${file}${more}`;
      const own = { datacenterId: 1, callTimeout: 60_000, waitForSlot: 0 };
      return (await failureOf(SnowFlake.lease(path, own))).message;
    };
    const trusted = `&ca=${join(folder, 'ca.pem')}`;
    const { url } = await standIn({ isToken: () => false });
    assert.match(await lease(url, trusted), /refused the token: check that it is one of this/);
    assert.match(await lease(url), /^Cannot agree on TLS with Kubernetes .*trusts the server's/);
    assert.match(
      await lease(url, `${trusted}x`),
      /cannot read the file of the option ca of Kubernetes at 127.0.0.1:\d+ \(ENOENT\)/,
    );
    const { url: page } = await standIn({ spoil: html(200) });
    assert.match(await lease(page, trusted), /not in the protocol of Kubernetes.*its port/);
    const { url: slow } = await standIn({ rights: ['get'] });
    assert.match(await lease(slow, trusted), /denied access.*cannot create resource \\?"leases/);
  });

  test('wrong options are refused', async () => {
    const right = { server: 'https://h', token: SECRET, kubernetesNamespace: 'ids' };
    const { token, kubernetesNamespace, ...alone } = right;
    for (const [wrong, expected] of [
      [{ ...right, server: 'http://h' }, /server of kubernetes\(\) must be an https: URL/],
      [{ ...right, server: `https://app:${SECRET}@h` }, /without a login/],
      [{ ...right, server: `https://h?token=${SECRET}` }, /without a login/],
      [{ ...right, server: 7 }, /it is 7/],
      [{ ...right, token: [SECRET] }, /token of kubernetes\(\) must be text, or a function/],
      [{ ...right, ca: 7 }, /ca of kubernetes\(\) must be text, or a function/],
      [
        { ...right, kubernetesNamespace: '../x' },
        /kubernetesNamespace must be the name of a namespace/,
      ],
      [
        { ...right, kubernetesNamespace: ['ids'] },
        /kubernetesNamespace must be the name of a namespace/,
      ],
      [{ ...right, namespace: 'a b' }, /namespace must be 1 to 64/],
      [
        { ...right, url: 'x' },
        /has no 'url'. It knows namespace, server, token, ca, kubernetesNamespace/,
      ],
      [{}, /needs KUBERNETES_SERVICE_HOST, which each pod has/],
      [{ ...alone, kubernetesNamespace }, /token of kubernetes\(\) must be text, or a function/],
      [{ ...alone, token }, /kubernetesNamespace must be the name of a namespace/],
    ]) {
      assert.throws(
        () => kubernetes(wrong),
        ({ code, message }) => {
          assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
          assert.match(message, expected);
          assert.ok(!message.includes(SECRET), message);
          return true;
        },
      );
    }
    for (const [url, expected] of [
      ['kubernetes:///', /needs KUBERNETES_SERVICE_HOST/],
      ['kubernetes:///ids', /needs KUBERNETES_SERVICE_HOST/],
      ['kubernetes:///ids?ca=/x', /has the option 'ca' and no host/],
      [
        'kubernetes://h/ids',
        /needs a namespace of Kubernetes after it, and the option 'tokenFile'/,
      ],
      ['kubernetes://h?tokenFile=/x', /needs a namespace of Kubernetes after it/],
      ['kubernetes://h/a/b?tokenFile=/x', /must be kubernetes:\/\/host:port\/NAMESPACE/],
      [`kubernetes://app:${SECRET}@h/ids?tokenFile=/x`, /and no login/],
      [`kubernetes://h/ids?token=${SECRET}`, /has an option, which its client does not know/],
    ]) {
      const { code, message } = await failureOf(SnowFlake.lease(url, { datacenterId: 1 }));
      assert.equal(code, 'ERR_SNOWFLAKE_CONFIG', message);
      assert.match(message, expected);
    }
  });

  /** A mount of its own, in which /var/run is a pod's. */
  const unshare = ['unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/var/run']];
  const noMounts = spawnSync(...unshare).status !== 0 && 'needs the right to mount';

  test('in a pod it needs no option, and uses a renewed token', { skip: noMounts }, async () => {
    let valid = 'first-Token';
    const { url, requests } = await standIn({ isToken: (token) => token === valid });
    const pod = join(folder, 'pod');
    mkdirSync(pod);
    const write = (name, text) => writeFileSync(join(pod, name), text);
    write('token', `${valid}\n`);
    write('ca.crt', ca);
    write('namespace', 'ids');
    const script = `
      const { SnowFlake } = require('.');
      const { connect } = require('./js/stores/connect.js');
      (async () => {
        const store = await connect(new URL('kubernetes:///?namespace=pods'));
        const signal = AbortSignal.timeout(60_000);
        const { record } = await store.read('0/0', { signal });
        console.log(store.name.replace(/\\d+\\//, 'PORT/'), record);
        process.stdin.once('data', async () => {
          console.log((await store.read('0/0', { signal })).record);
          const flake = await SnowFlake.lease('kubernetes:///ids', { datacenterId: 1, callTimeout: 60_000 });
          console.log(typeof flake.nextId(), flake.lease.state);
          await flake.close();
          process.exit();
        });
      })();`;
    const at = '/var/run/secrets/kubernetes.io/serviceaccount';
    const inPod = `mount -t tmpfs tmpfs /var/run && mkdir -p ${at} && mount --bind '${pod}' ${at} && exec "$@"`;
    const { hostname, port } = new URL(url);
    const child = execFile(
      'unshare',
      ['--mount', 'sh', '-c', inPod, 'sh', process.execPath, '-e', script],
      {
        cwd: join(__dirname, '../..'),
        env: {
          ...process.env,
          ...{ KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port },
        },
      },
    );
    let output = '';
    child.stdout.on('data', (text) => {
      output += text;
      if (output.split('\n').length !== 2) return;
      valid = 'second-Token';
      write('token', valid);
      child.stdin.write('\n');
    });
    child.stderr.on('data', (text) => {
      output += text;
    });
    await once(child, 'close');
    assert.equal(output, 'kubernetes:127.0.0.1:PORT/pods undefined\nundefined\nbigint held\n');
    assert.ok(requests.length > 5);
  });
});
