'use strict';
// The application of docs/ten-minutes.md, as its reader makes it: from the packed package, in an empty folder, by the blocks of the
// page. Without containers, `docker` and `kubectl` write down what they are asked for, and this test does it with processes.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { Client } = require('pg');
const { parseAllDocuments } = require('yaml');

require('../support/own-directory.js');
const { storm } = require('../support/amount.js');
const { countDuplicates, layouts, SnowFlake } = require('../support/support.js');
const { Server, freePort, missing } = require('../support/lease/servers.js');
const { buildImage } = require('../support/package/dockerfile.js');
const { pack } = require('../support/package/tarball.js');
const { blocksOf, query } = require('../support/page.js');
const { Deployment, ask } = require('../support/pods.js');

const PAGE = 'docs/ten-minutes.md';
const PATIENCE_MS = 600_000;
const CLIENTS = 8;
/** What the page has in place of a database, of a port and of an ID. */
const DATABASE = 'postgres://postgres:example@127.0.0.1/shop';
const PORT = 'localhost:3000';
const ID = /902713140990050304/g;

/** What main.ts prints once it listens: NestJS reports its own start before. */
const LISTENS = 'Worker ID';

/** A request that a pod has when it ends. */
const LAST = { path: '/customers', body: { name: 'the last one' } };

const STUB = `#!/usr/bin/env node
const { basename } = require('node:path');
const [name, args] = [basename(process.argv[1]), process.argv.slice(2)];
require('node:fs').appendFileSync(process.env.CALLS, JSON.stringify([name, ...args]) + '\\n');
if (args[0] === 'exec') {
  const [program, ...rest] = args.slice(args.indexOf('--') + 1);
  const { IMAGE: cwd, POD_DATABASE_URL: DATABASE_URL } = process.env;
  const env = { ...process.env, DATABASE_URL };
  const { status } = require('node:child_process').spawnSync(program, rest, { cwd, env, stdio: 'inherit' });
  process.exitCode = status;
}
`;

/** Of /proc, which is Linux's. */
const skip = storm ?? (process.platform === 'linux' ? missing('postgres') : 'it reads /proc');

describe(PAGE, { skip, concurrency: 1 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-application-'));
  const [folder, bin] = ['shop', 'bin'].map((name) => join(directory, name));
  const calls = join(directory, 'calls');
  const running = new Set();
  const blocks = blocksOf(PAGE);
  const used = new Set();
  let server;
  let port;
  /** The databases of the reader's machine and of the cluster. */
  const databases = {};
  let created;

  before(async () => {
    for (const each of [folder, bin]) mkdirSync(each);
    for (const name of ['docker', 'kubectl']) {
      writeFileSync(join(bin, name), STUB);
      chmodSync(join(bin, name), 0o755);
    }
    pack(folder, '.');
    port = await freePort();
    server = await Server.start('postgres');
    for (const name of ['local', 'cluster']) {
      await query(server.url, `CREATE DATABASE ${name}`);
      databases[name] = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
    }
    created = await run(blockWith('npm install'));
    // So that most tests can run alone.
    await run(blockWith('npm start').replace(/^npm start$/m, ''));
  });

  after(async () => {
    for (const child of running) process.kill(-child.pid, 'SIGKILL');
    await Promise.all(deployment.pods.map((pod) => pod.kill()));
    await server?.stop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  });

  /** The block of the page that has this text, in place: with the databases and the port of this test. */
  function blockWith(text) {
    const found = blocks.filter(({ code }) => code.includes(text));
    assert.equal(found.length, 1, text);
    used.add(found[0]);
    return found[0].code
      .replaceAll(DATABASE, databases.local)
      .replaceAll(PORT, `localhost:${port}`);
  }

  /** A program of the reader's terminal. @returns its process with `output` and `ended` */
  function start(program, args, { cwd = folder, env = {} } = {}) {
    const child = spawn(program, args, {
      cwd,
      env: {
        ...process.env,
        ...{ PATH: `${bin}:${process.env.PATH}`, CALLS: calls, PORT: String(port) },
        ...{ npm_config_prefer_offline: 'true', npm_config_audit: 'false', ...env },
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    running.add(child);
    child.output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        child.output += text;
        child.emit('output');
      });
    }
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), PATIENCE_MS);
    child.ended = once(child, 'close').then((how) => {
      clearTimeout(timer);
      running.delete(child);
      return how;
    });
    return child;
  }

  /** Runs a block as its reader does. @returns what it printed, and what it asked of Docker and Kubernetes */
  async function run(code, options) {
    writeFileSync(calls, '');
    const child = start('sh', ['-ec', code], options);
    const [status] = await child.ended;
    assert.equal(status, 0, child.output);
    const lines = readFileSync(calls, 'utf8').trim().split('\n');
    const asked = lines.filter((line) => line !== '').map((line) => JSON.parse(line).join(' '));
    return { printed: child.output, asked };
  }

  /** Until a program has printed a text so many times. */
  async function printed(child, text, times = 1) {
    const count = () => child.output.split(text).length - 1;
    while (count() < times) {
      const how = await Promise.race([once(child, 'output'), child.ended]);
      assert.equal(child.signalCode ?? child.exitCode, null, `${how} ${child.output}`);
    }
  }

  /** Slots that are held, by `npx snowdrift slots`. */
  async function heldSlots(database) {
    const env = { SNOWDRIFT_LEASE: `${databases[database]}?schema=ids` };
    const { printed } = await run('npx snowdrift slots --json', { env });
    return JSON.parse(printed).slots.filter(({ state }) => state === 'held');
  }

  const manifests = (name) =>
    parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map((one) => {
      assert.deepEqual(one.errors, []);
      return one.toJSON();
    });

  test('a reader creates it from the packed package', async () => {
    const { asked } = created;
    const { username, password, pathname } = new URL(DATABASE);
    const [command, ...others] = asked;
    assert.deepEqual(others, []);
    const variables = `--env POSTGRES_DB=${pathname.slice(1)} --env POSTGRES_PASSWORD=${password}`;
    assert.ok(command.startsWith('docker run ') && command.includes(variables), command);
    assert.ok(command.endsWith(` ${image('postgres')}`));
    assert.equal(username, 'postgres');
  });

  /** The image of a container that manifests name. */
  const image = (name) =>
    ['postgres.yaml', 'kubernetes.yaml']
      .flatMap(manifests)
      .flatMap(({ spec }) => spec?.template?.spec.containers ?? [])
      .find((container) => container.name === name).image;

  test('it starts, and answers as the page shows', async () => {
    const app = start('sh', ['-ec', blockWith('npm start')]);
    await printed(app, LISTENS);
    const [, workerId] = /Worker ID (\d+)/.exec(app.output);
    const shape = (text) => text.replace(/\d{18,19}/g, '<id>');
    const shown = (code) => Array.from(code.matchAll(/^# (.*)$/gm), ([, line]) => shape(line));
    const create = blockWith('curl -d name=Ada');
    const { printed: customer } = await run(create);
    assert.ok(shape(customer).endsWith(shown(create)[0]), customer);
    const read = blockWith('curl -d item=tea').replace(ID, /"id":"(\d+)"/.exec(customer)[1]);
    const { printed: answers } = await run(read);
    for (const line of shown(read)) assert.ok(shape(answers).includes(line), answers);
    const { status } = await ask(port, 'POST', '/customers', { name: 'A\0da' });
    assert.equal(status, 400);
    const held = await heldSlots('local');
    assert.deepEqual(
      held.map((slot) => slot.workerId),
      [Number(workerId)],
    );
    process.kill(-app.pid, 'SIGINT');
    await app.ended;
    assert.deepEqual(await heldSlots('local'), []);
  });

  test('SIGTERM ends it while a client keeps a connection busy', async () => {
    const app = start('node', ['dist/main.js'], { env: { DATABASE_URL: databases.local } });
    await printed(app, LISTENS);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const post = (headers) => {
      const options = { agent, port, method: 'POST', path: LAST.path };
      return http.request({
        ...options,
        headers: { 'Content-Type': 'application/json', ...headers },
      });
    };
    const reply = async (request) => {
      request.end(JSON.stringify(LAST.body));
      const [response] = await once(request, 'response');
      await once(response.resume(), 'end');
      assert.equal(response.statusCode, 201);
      return response.headers.connection;
    };
    const first = post({ Expect: '100-continue' });
    first.flushHeaders();
    await once(first, 'continue');
    app.kill('SIGTERM');
    await refusesConnections();
    assert.equal(await reply(first), 'keep-alive');
    const second = post();
    assert.equal(await reply(second), 'close');
    assert.equal(second.reusedSocket, true);
    assert.deepEqual(await app.ended, [null, 'SIGTERM']);
    assert.deepEqual(await heldSlots('local'), []);
  });

  async function refusesConnections() {
    for (;;) {
      const socket = net.connect(port, '127.0.0.1');
      const failure = await once(socket, 'connect').catch((error) => error);
      socket.destroy();
      if (failure.code === 'ECONNREFUSED') break;
      await sleep(20);
    }
  }

  test('the tables are those of the entities', async () => {
    const child = start('npm', ['run', 'generate'], { env: { DATABASE_URL: databases.local } });
    const [code] = await child.ended;
    assert.equal(code, 1);
    assert.match(child.output, /No changes in database schema were found/);
  });

  test('a migration that waits for another one does not stop an index that is built concurrently', async () => {
    const [holder, builder] = [1, 2].map(() => new Client({ connectionString: databases.local }));
    await Promise.all([holder.connect(), builder.connect()]);
    await holder.query('BEGIN');
    await holder.query("SELECT pg_advisory_xact_lock(hashtext('migrate'))");
    const child = start('npm', ['run', 'migrate'], { env: { DATABASE_URL: databases.local } });
    const asking = `SELECT FROM pg_stat_activity
      WHERE query LIKE '%advisory%' AND pid NOT IN (pg_backend_pid(), ${holder.processID})`;
    while ((await builder.query(asking)).rowCount === 0) await sleep(50);
    await builder.query("SET statement_timeout = '20s'");
    await builder.query('CREATE INDEX CONCURRENTLY by_name ON customers (name)');
    await builder.query('DROP INDEX by_name');
    await holder.query('COMMIT');
    assert.deepEqual(await child.ended, [0, null], child.output);
    await Promise.all([holder.end(), builder.end()]);
  });

  test('a user without the right to create schemas migrates where there is one', async () => {
    await query(server.url, 'CREATE ROLE shop LOGIN');
    await query(server.url, 'CREATE DATABASE granted');
    const url = Object.assign(new URL(server.url), { pathname: '/granted' });
    await query(url.href, 'CREATE SCHEMA ids AUTHORIZATION shop');
    await query(url.href, 'GRANT CREATE ON SCHEMA public TO shop');
    const env = { DATABASE_URL: Object.assign(url, { username: 'shop' }).href };
    const child = start('node', ['dist/migrate.js'], { env });
    assert.deepEqual(await child.ended, [0, null], child.output);
  });

  for (const program of ['migrate', 'main']) {
    test(`${program} refuses a URL that is none, and does not show its password`, async () => {
      const env = { DATABASE_URL: 'postgres://app:ge#heim@127.0.0.1/shop' };
      const child = start('node', [`dist/${program}.js`], { env });
      const [code] = await child.ended;
      assert.equal(code, 1);
      assert.match(child.output, /DATABASE_URL must be as/);
      assert.doesNotMatch(child.output, /ge#|heim/);
    });
  }

  test('a pod that waits for the floor of a recovered namespace is not killed', () => {
    const { spec } = manifests('kubernetes.yaml').find(({ kind }) => kind === 'Deployment');
    const { periodSeconds, failureThreshold } = spec.template.spec.containers[0].startupProbe;
    const [ttl, maxClockSkew] = [30, 10];
    // Its clock may be behind that of the store.
    assert.ok(periodSeconds * failureThreshold >= ttl + 3 * maxClockSkew);
  });

  describe('the workers of cluster', () => {
    let primary;
    const ids = [];
    const workers = require('node:os').availableParallelism();
    const [, command] = /`(node dist\/cluster\.js)`/.exec(
      readFileSync(join(__dirname, '../..', PAGE)),
    );

    async function startPrimary() {
      const [program, ...args] = command.split(' ');
      primary = start(program, args, { env: { DATABASE_URL: databases.local } });
      await printed(primary, LISTENS, workers);
    }

    async function create(count) {
      const customers = Array.from({ length: count }, (_, n) =>
        ask(port, 'POST', '/customers', { name: `customer ${n}` }),
      );
      for (const { status, body } of await Promise.all(customers)) {
        assert.equal(status, 201, JSON.stringify(body));
        ids.push(body.id);
      }
    }

    const pidsOfWorkers = () =>
      readFileSync(`/proc/${primary.pid}/task/${primary.pid}/children`, 'utf8')
        .trim()
        .split(' ')
        .map(Number);

    test('that cannot start are replaced once a second', async () => {
      const begun = Date.now();
      primary = start('node', command.split(' ').slice(1), { env: { DATABASE_URL: '' } });
      const generations = 6;
      await printed(primary, 'Error: DATABASE_URL must be as', generations * workers);
      assert.ok(Date.now() - begun >= (generations - 1) * 1000);
      primary.kill('SIGTERM');
      assert.deepEqual(await primary.ended, [0, null]);
    });

    test('share one worker ID', async () => {
      await startPrimary();
      assert.equal(pidsOfWorkers().length, workers);
      for (let n = 0; n < 10; n++) await create(40);
      const [{ workerId }, ...others] = await heldSlots('local');
      assert.deepEqual(others, [], 'one slot for the host');
      assert.ok(ids.every((id) => SnowFlake.parse(id, layouts.node).workerId === workerId));
    });

    test('that are killed are replaced by some that join the slot', async () => {
      const before = await heldSlots('local');
      process.kill(pidsOfWorkers()[0], 'SIGKILL');
      await printed(primary, LISTENS, workers + 1);
      await create(40);
      const held = await heldSlots('local');
      assert.deepEqual(
        held.map(({ workerId }) => workerId),
        before.map(({ workerId }) => workerId),
      );
    });

    test('of a primary that was killed and started again join the slot', async () => {
      const [slot] = await heldSlots('local');
      primary.kill('SIGKILL');
      await primary.ended;
      await startPrimary();
      await create(40);
      const [now, ...others] = await heldSlots('local');
      assert.deepEqual([now.workerId, others], [slot.workerId, []]);
    });

    const ends = {
      'SIGTERM to the primary': () => primary.kill('SIGTERM'),
      'SIGINT to the primary': () => primary.kill('SIGINT'),
      'Ctrl-C': () => process.kill(-primary.pid, 'SIGINT'),
    };
    for (const [name, end] of Object.entries(ends)) {
      test(`end by ${name}, and release the slot`, async () => {
        if (primary?.exitCode !== null) await startPrimary();
        const pids = pidsOfWorkers();
        end();
        assert.deepEqual(await primary.ended, [0, null], primary.output);
        assert.doesNotMatch(primary.output, /EPIPE/);
        for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
        assert.deepEqual(await heldSlots('local'), []);
      });
    }

    test('after a restart, generate IDs above all others, none of them a duplicate', async () => {
      const highest = ids.map(BigInt).reduce((a, b) => (a > b ? a : b));
      const before = ids.length;
      await startPrimary();
      await create(40);
      assert.ok(ids.slice(before).every((id) => BigInt(id) > highest));
      assert.equal(countDuplicates(ids), 0);
      primary.kill('SIGTERM');
      await primary.ended;
      assert.deepEqual(await heldSlots('local'), []);
    });
  });

  /** By tag. */
  const images = new Map();
  const deployment = new Deployment();
  const secrets = {};
  /** As they were confirmed, with their `orders`. */
  const customers = [];
  const refused = [];
  const killed = new Set();
  const workerIdOf = (pod) => pod.ready.details.snowdrift.workerId;

  /** Does what the page asks of Docker and Kubernetes. */
  async function obey(command) {
    const [, tag] = /^docker build --tag (\S+) \.$/.exec(command) ?? [];
    const [, file] = /^kubectl apply -f (\S+)$/.exec(command) ?? [];
    const [, job] = /^kubectl create -f (\S+)$/.exec(command) ?? [];
    const [, count] = /^kubectl scale deployment\/shop --replicas=(\d)$/.exec(command) ?? [];
    if (tag) await build(tag);
    else if (file) await apply(file);
    else if (job) await create(job);
    else if (count === '0') assertServed(await deployment.stop(LAST));
    else if (count) {
      await deployment.restart();
      assert.equal(deployment.pods.length, Number(count));
    } else {
      assert.match(command, /^kubectl (rollout status|exec|port-forward|wait|delete) /);
    }
  }

  /** What the containers of the job have printed. */
  let recovered;

  async function create(file) {
    const [{ kind, metadata, spec }] = manifests(file);
    const [{ image: tag, command, envFrom }] = spec.template.spec.containers;
    assert.deepEqual([kind, metadata.name], ['Job', 'recover']);
    const { folder: cwd, env } = images.get(tag);
    const [program, ...args] = command;
    const child = start(program, args, {
      cwd,
      env: { ...env, ...secrets[envFrom[0].secretRef.name] },
    });
    assert.deepEqual(await child.ended, [0, null], child.output);
    recovered = child.output;
  }

  const assertServed = (replies) =>
    assert.deepEqual(
      replies.map(({ status }) => status),
      [201, 201, 201],
    );

  async function build(tag) {
    const dockerfile = readFileSync(join(folder, 'Dockerfile'), 'utf8');
    const makeFolder = (name) => mkdtempSync(join(directory, `${name}-`));
    const shell = (cwd, code) => run(code, { cwd });
    images.set(tag, await buildImage(dockerfile, folder, { makeFolder, shell }));
  }

  async function apply(file) {
    const objects = Object.fromEntries(manifests(file).map((one) => [one.kind, one]));
    const { Deployment: deployed, Secret, Service, StatefulSet } = objects;
    for (const { spec } of [deployed, StatefulSet].filter(Boolean)) {
      assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels);
      assert.deepEqual(Service.spec.selector, spec.selector.matchLabels);
    }
    if (Secret) {
      const { DATABASE_URL } = Secret.stringData;
      const { username, password, host, pathname } = new URL(DATABASE_URL);
      const [{ env }] = StatefulSet.spec.template.spec.containers;
      const variable = (name) => env.find((one) => one.name === name).value;
      assert.deepEqual([host, username], [Service.metadata.name, 'postgres']);
      assert.deepEqual(
        [password, pathname],
        [variable('POSTGRES_PASSWORD'), `/${variable('POSTGRES_DB')}`],
      );
      secrets[Secret.metadata.name] = { DATABASE_URL: databases.cluster };
    } else {
      const { initContainers, containers } = deployed.spec.template.spec;
      const [tag, ...others] = new Set([...initContainers, ...containers].map((one) => one.image));
      assert.deepEqual(others, []);
      assert.equal(Service.spec.ports[0].targetPort, containers[0].ports[0].name);
      const built = images.get(tag);
      if (deployment.pods.length > 0) assertServed(await deployment.roll(built, LAST));
      else await deployment.start(deployed, built, secrets);
    }
  }

  /** Requests to the Service by several clients at one time, until `work` has settled. */
  async function underLoad(work) {
    let isOver = false;
    const confirmed = async (...request) => {
      const answer = await deployment.ask(...request);
      if (answer.failure) refused.push(answer);
      else if (request[0] === 'POST') {
        assert.equal(answer.status, 201, JSON.stringify(answer.body));
        const { datacenterId, workerId } = SnowFlake.parse(answer.body.id, layouts.node);
        assert.deepEqual([datacenterId, workerId], [1, workerIdOf(answer.pod)]);
      }
      return answer.failure ? undefined : answer.body;
    };
    const client = async (n) => {
      while (!isOver) {
        const customer = await confirmed('POST', '/customers', { name: `client ${n}` });
        if (customer === undefined) continue;
        const orders = [];
        for (const item of ['tea', 'milk', 'sugar']) {
          const order = await confirmed('POST', `/customers/${customer.id}/orders`, { item });
          orders.push(order);
        }
        // An order whose answer was lost may be there.
        if (orders.includes(undefined)) continue;
        orders.sort((one, other) => (BigInt(one.id) < BigInt(other.id) ? -1 : 1));
        customers.push({ ...customer, orders });
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, n) => client(n));
    try {
      await work();
    } finally {
      isOver = true;
      await Promise.all(clients);
    }
  }

  const inCluster = (sql) => query(databases.cluster, sql);

  const assertDifferentWorkers = () => {
    const workers = deployment.pods.map(workerIdOf);
    assert.equal(new Set(workers).size, 3, String(workers));
  };

  test('three pods start at once, each with a worker ID of its own', async () => {
    for (const text of ['docker build --tag shop:1', 'kubectl port-forward']) {
      const { asked } = await run(blockWith(text));
      for (const command of asked) await obey(command);
    }
    assertDifferentWorkers();
    await underLoad(async () => {
      while (customers.length < 100) await sleep(20);
    });
    await inCluster('CREATE TABLE backup AS SELECT * FROM ids.snowdrift_records');
    const { printed } = await run(blockWith('kubectl exec'), ofPods());
    assert.equal(printed.match(/^1 .* held /gm).length, 3, printed);
  });

  const ofPods = () => ({
    env: { IMAGE: images.get('shop:1').folder, POD_DATABASE_URL: databases.cluster },
  });

  test('a pod that is killed does not disturb the others', async () => {
    const [pod] = deployment.pods;
    killed.add(pod);
    await underLoad(() => deployment.replaceKilled(pod));
    assertDifferentWorkers();
    assert.ok(deployment.pods.every((other) => workerIdOf(other) !== workerIdOf(pod)));
  });

  test('a rollout with a migration under load fails no request', async () => {
    const path = join(folder, 'src/entities.ts');
    const changed = readFileSync(path, 'utf8').replace(
      '  item!: string;\n',
      `  item!: string;\n\n  ${blockWith('note!')}`,
    );
    writeFileSync(path, changed);
    await run(blockWith('npm run generate'), { env: { DATABASE_URL: databases.local } });
    const before = refused.length;
    const { asked } = await run(blockWith('sed '));
    await obey(asked.shift());
    await underLoad(async () => {
      for (const command of asked) await obey(command);
    });
    assert.equal(refused.length, before);
    assertDifferentWorkers();
    const { body } = await deployment.ask('GET', `/customers/${customers.at(-1).id}`);
    assert.equal(body.orders[0].note, null);
  });

  test('after a restore of the leases, pods generate IDs 50 s later', async () => {
    const obeyAll = async (text) => {
      const { asked } = await run(blockWith(text));
      for (const command of asked) await obey(command);
    };
    await obeyAll('--replicas=0');
    await inCluster('TRUNCATE ids.snowdrift_records');
    await inCluster('INSERT INTO ids.snowdrift_records SELECT * FROM backup');
    const begun = Date.now();
    await obeyAll('recover.yaml');
    assert.match(recovered, /generate IDs from/);
    assertDifferentWorkers();
    const before = customers.length;
    await underLoad(async () => {
      while (customers.length < before + 20) await sleep(20);
    });
    const waited = ({ id }) => SnowFlake.parse(id, layouts.node).timestamp - begun;
    assert.ok(customers.slice(before).every((each) => waited(each) > 49_000));
  });

  test('reads are exact, and no ID is a duplicate', async (t) => {
    for (const { id, name, orders } of customers) {
      const { status, body } = await deployment.ask('GET', `/customers/${id}`);
      assert.equal(status, 200);
      const read = body.orders.map(({ note, ...order }) => order);
      const written = orders.map(({ note, ...order }) => order);
      assert.deepEqual({ ...body, orders: read }, { id, name, orders: written });
    }
    const client = new Client({ connectionString: databases.cluster });
    await client.connect();
    const { rows } = await client.query('SELECT id FROM customers UNION ALL SELECT id FROM orders');
    await client.end();
    const ids = rows.map(({ id }) => id);
    assert.equal(countDuplicates(ids), 0);
    const all = new Set(ids);
    assert.ok(
      customers.every(({ id, orders }) =>
        [id, ...orders.map((one) => one.id)].every((each) => all.has(each)),
      ),
    );
    assert.ok(refused.every(({ pod }) => killed.has(pod)));
    t.diagnostic(
      `${ids.length} IDs, ${refused.length} requests refused by the pod that was killed`,
    );
  });

  test('SIGTERM releases the slot of each pod, after its last request', async () => {
    assertServed(await deployment.stop(LAST));
    const dead = [...killed].map(workerIdOf);
    for (const { workerId } of await heldSlots('cluster')) assert.ok(dead.includes(workerId));
  });

  test('each block of the page was run', () => {
    assert.deepEqual(
      blocks.filter((block) => !used.has(block)).map(({ line }) => line),
      [],
    );
  });
});
