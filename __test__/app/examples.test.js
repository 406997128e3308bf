'use strict';
// The files of examples/: parsed, and what their containers run is run as processes, each with a directory of pages of its own, as
// a container has. Neither Docker nor Helm is here: a template's values are put in by this test.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mkdtempSync, readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { createInterface } = require('node:readline');
const { after, before, describe, test } = require('node:test');

const { parse, parseAllDocuments } = require('yaml');

const { gate } = require('../support/amount.js');
const { createNamespace } = require('../support/lease/namespaces.js');
const { Server, missing } = require('../support/lease/servers.js');
const { createDirectory } = require('../support/own-directory.js');
const { runScript } = require('../support/support.js');

const FOLDER = join(__dirname, '../../examples');
const pages = createDirectory();
const ownPages = () => mkdtempSync(join(pages, 'host-'));
const read = (path) => readFileSync(join(FOLDER, path), 'utf8');

/** What a container runs, in its environment: its `line`, its `id()`, and `end()`, as a platform ends it. */
async function start([program, ...args], env) {
  assert.equal(program, 'node');
  const child = spawn(process.execPath, args, {
    cwd: FOLDER,
    env: { ...env, PATH: process.env.PATH, PORT: '0', SNOWDRIFT_SHARED: ownPages() },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const { value: line } = await lines.next();
  return {
    line,
    async end() {
      child.kill('SIGTERM');
      assert.deepEqual(await exited, [0, null]);
    },
  };
}

/** Whether a worker ID of a datacenter can be claimed by another host at once. */
async function isFree(url, datacenterId, workerId) {
  const options = { datacenterId, workerId, waitForSlot: 0, callTimeout: 60_000 };
  const script = `require('../..').SnowFlake.lease(${JSON.stringify(url)}, ${JSON.stringify(options)})
    .then((flake) => flake.close().then(() => console.log('free')), ({ code }) => console.log(code));`;
  const { stdout } = await runScript(script, { env: { SNOWDRIFT_SHARED: ownPages() } });
  return stdout.trim();
}

describe('compose.yaml', { skip: missing('postgres') ?? gate }, () => {
  let server;
  before(async () => {
    server = await Server.start('postgres');
    await createNamespace(server.url);
  });
  after(() => server?.stop());

  test('its containers lease, or claim their own, and give it back', async () => {
    const { services } = parse(read('compose.yaml'));
    const { db, web, worker } = services;
    const { username, password, host, pathname } = new URL(web.environment.SNOWDRIFT_LEASE);
    const { POSTGRES_USER, POSTGRES_PASSWORD } = db.environment;
    assert.deepEqual([username, password], [POSTGRES_USER, POSTGRES_PASSWORD]);
    // A database has its user's name, unless there is POSTGRES_DB.
    assert.deepEqual([host, pathname], ['db', `/${POSTGRES_USER}`]);
    for (const { depends_on } of [web, worker]) {
      assert.deepEqual(depends_on, { db: { condition: 'service_healthy' } });
    }
    const { url } = server;
    const run = ({ command, environment }) =>
      start(command, { ...environment, SNOWDRIFT_LEASE: url });
    const all = await Promise.all([
      ...Array.from({ length: web.deploy.replicas }, () => run(web)),
      run(worker),
    ]);
    const lines = all.map(({ line }) => line);
    assert.equal(new Set(lines.slice(0, -1)).size, web.deploy.replicas, String(lines));
    assert.equal(lines.at(-1), 'worker ID 7');
    const { datacenterId, workerId } = worker.environment;
    const claim = [url, Number(datacenterId), Number(workerId)];
    assert.equal(await isFree(...claim), 'ERR_SNOWFLAKE_IN_USE');
    await Promise.all(all.map((each) => each.end()));
    assert.equal(await isFree(...claim), 'free');
  });
});

/** A chart's templates as Helm makes them, by kind. */
function render(release, namespace) {
  const values = parse(read('helm/values.yaml'));
  const known = { '.Release.Name': release, '.Release.Namespace': namespace };
  for (const [name, value] of Object.entries(values)) known[`.Values.${name}`] = String(value);
  const objects = readdirSync(join(FOLDER, 'helm/templates')).flatMap((name) => {
    const text = read(`helm/templates/${name}`).replace(/\{\{ (\S+) \}\}/g, (_, key) => {
      assert.ok(Object.hasOwn(known, key), key);
      return known[key];
    });
    return parseAllDocuments(text).map((one) => {
      assert.deepEqual(one.errors, []);
      return one.toJSON();
    });
  });
  return Object.fromEntries(objects.map((one) => [one.kind, one]));
}

describe('helm', { skip: gate }, () => {
  let server;
  before(async () => {
    server = await Server.start('kubernetes');
    await createNamespace(server.url);
  });
  after(() => server?.stop());

  /** The environment of a pod's only container, as Kubernetes makes it. */
  const environmentOf = ({ spec }, labels) => {
    const [{ env }] = spec.template.spec.containers;
    const resolve = ({ value, valueFrom }) => {
      if (value !== undefined) return value;
      const [, label] = /^metadata\.labels\['(.*)'\]$/.exec(valueFrom.fieldRef.fieldPath);
      return labels[label];
    };
    const all = Object.fromEntries(env.map((each) => [each.name, resolve(each)]));
    assert.equal(all.SNOWDRIFT_LEASE, 'kubernetes:///');
    return { ...all, SNOWDRIFT_LEASE: server.url };
  };

  test('its pods lease, or claim their number, with the rights that it grants', async () => {
    const { Deployment, StatefulSet, Role, RoleBinding, ServiceAccount } = render('shop', 'ids');
    const documented = parseAllDocuments(read('kubernetes-rights.yaml')).map((one) => one.toJSON());
    assert.deepEqual(Role.rules, documented.find(({ kind }) => kind === 'Role').rules);
    assert.equal(RoleBinding.roleRef.name, Role.metadata.name);
    const { name } = ServiceAccount.metadata;
    assert.deepEqual(RoleBinding.subjects, [{ kind: 'ServiceAccount', name, namespace: 'ids' }]);
    for (const { spec } of [Deployment, StatefulSet]) {
      assert.equal(spec.template.spec.serviceAccountName, name);
      assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels);
    }
    const run = (workload, labels) =>
      start(workload.spec.template.spec.containers[0].command, environmentOf(workload, labels));
    const pods = [
      ...Array.from({ length: Deployment.spec.replicas }, () => run(Deployment)),
      ...Array.from({ length: StatefulSet.spec.replicas }, (_, index) =>
        run(StatefulSet, { 'apps.kubernetes.io/pod-index': String(index) }),
      ),
    ];
    const all = await Promise.all(pods);
    const lines = all.map(({ line }) => line);
    assert.equal(new Set(lines.slice(0, Deployment.spec.replicas)).size, 3, String(lines));
    assert.deepEqual(lines.slice(Deployment.spec.replicas), ['worker ID 0', 'worker ID 1']);
    assert.equal(await isFree(server.url, 2, 1), 'ERR_SNOWFLAKE_IN_USE');
    await Promise.all(all.map((each) => each.end()));
    assert.equal(await isFree(server.url, 2, 1), 'free');
  });
});
