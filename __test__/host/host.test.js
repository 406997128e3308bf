'use strict';
// One sequence per host: what does not split it; where processes cannot share, the error says why. scope.test.js has processes
// that draw and are killed, tests/host the same without Node.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, dirname, join } = require('node:path');
const nodeTest = require('node:test');

const { amount, gate } = require('../support/amount.js');
const { as, noOtherUser } = require('../support/other-users.js');
const { createDirectory } = require('../support/own-directory.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { Peer, drawAll } = require('../support/peer.js');
const { SnowFlake, refuses } = require('../support/support.js');

const linux =
  process.platform === 'linux' ? undefined : `tried on Linux, with its memory file system`;
const uid = process.getuid?.();
const NOBODY = 65534;
const AS_NOBODY = as(NOBODY);

/** Why a command does not work here, or undefined. */
function whyNot(command, ...args) {
  if (linux) return linux;
  try {
    execFileSync(command, [...args, 'true'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return `${command} ${args.join(' ')} is refused here`;
  }
}

const memory = linux ? undefined : createDirectory();
if (memory) chmodSync(memory, 0o711);

/** A directory in memory, as /dev/shm is: empty, and open to all users. */
function shared() {
  const path = mkdtempSync(join(memory, 'shared-'));
  chmodSync(path, 0o1777);
  return path;
}

/** A scene of processes, which end with it. `shared` is where their pages are. */
function scene(name, { skip = linux } = {}, body) {
  nodeTest.test(name, { skip, timeout: 600_000 }, async () => {
    const peers = [];
    const directory = shared();
    const peer = ({ env, ...more } = {}) => {
      const one = new Peer({ env: { SNOWDRIFT_SHARED: directory, ...env }, ...more });
      peers.push(one);
      return one;
    };
    try {
      await body({ peer, shared: directory });
    } finally {
      await Promise.all(peers.map((one) => one.end()));
    }
  });
}

const DRAW_MS = amount(30, 100);

scene(
  'working directories, TMPDIR, HOME and host names do not split a host',
  {},
  async ({ peer }) => {
    const elsewhere = {
      cwd: '/',
      env: { TMPDIR: '/var/tmp', HOME: '/', XDG_RUNTIME_DIR: '/', HOSTNAME: 'other' },
    };
    const peers = [peer(), peer(elsewhere), peer(elsewhere)];
    const stats = await Promise.all(peers.map((one) => one.open({ scope: 'host' })));
    assert.equal(new Set(stats.map(({ page }) => page)).size, 1);
    assert.equal(countDuplicatesOf(await drawAll(peers, DRAW_MS)), 0);
  },
);

const HAS_MOUNTS = whyNot('unshare', '--mount');

/** Starts a process in a mount namespace of its own, after a script that mounts what it needs. */
const mounted = (script) => ['unshare', '--mount', 'sh', '-ec', `${script}; exec "$@"`, 'sh'];

scene(
  'without a directory in memory, scope host is refused; with an unfit one, auto too',
  { skip: HAS_MOUNTS },
  async ({ peer, shared }) => {
    const disk = mkdtempSync(join(tmpdir(), 'snowdrift-disk-'));
    const noMemory = {
      by: mounted(`mount --bind ${disk} /dev/shm`),
      env: { SNOWDRIFT_SHARED: undefined },
    };
    try {
      const { code, message } = await peer(noMemory).refusal({ scope: 'host' });
      assert.equal(code, 'ERR_SNOWFLAKE_CONFIG', message);
      assert.match(message, /mount a tmpfs .* SNOWDRIFT_SHARED/);
      for (const [named, why] of [
        [disk, /is not in memory \(tmpfs or ramfs\)/],
        [join(shared, 'missing'), /missing/],
      ]) {
        for (const scope of ['auto', 'host']) {
          const error = refusalIn(named, { scope });
          assert.equal(error.code, 'ERR_SNOWFLAKE_STORE', error.message);
          assert.match(error.message, why);
        }
      }
    } finally {
      rmSync(disk, { recursive: true });
    }
  },
);

let nodes = 0;

/** Opens a node that this process has not open yet, with its pages there. */
function inDirectory(directory, options = {}) {
  const before = process.env.SNOWDRIFT_SHARED;
  process.env.SNOWDRIFT_SHARED = directory;
  try {
    const n = nodes++;
    return new SnowFlake({ datacenterId: n >> 5, workerId: n & 31, ...options });
  } finally {
    process.env.SNOWDRIFT_SHARED = before;
  }
}

function refusalIn(directory, options) {
  try {
    inDirectory(directory, options);
  } catch (error) {
    return error;
  }
  return assert.fail('it was opened');
}

/** Writes a byte of a page. */
function overwritten(page, at, byte) {
  const whole = readFileSync(page);
  whole[at] = byte;
  writeFileSync(page, whole);
}

const STORE = 'ERR_SNOWFLAKE_STORE';

/** What may have become of a page that nobody uses: how, what the error says, its code. */
const DAMAGED = {
  'a truncated page': [(page) => truncateSync(page, 100), /is 100 bytes long and should be 4096/],
  'a page of another format': [
    (page) => overwritten(page, 8, 3),
    /is a page of format 3, and this version of snowdrift uses format 4: use one version/,
    'ERR_SNOWFLAKE_IN_USE',
  ],
  'a page that others may write to': [
    (page) => chmodSync(page, 0o666),
    /is writable by other users \(mode 0666\)/,
  ],
};

for (const [name, [damage, message, code = STORE]] of Object.entries(DAMAGED)) {
  nodeTest.test(`${name} is an error, and stays`, { skip: linux }, () => {
    const directory = shared();
    const node = { datacenterId: 7, workerId: nodes++ & 31 };
    const flake = inDirectory(directory, node);
    const { page } = flake.stats();
    flake.nextId();
    flake.close();
    damage(page);
    for (const scope of ['auto', 'host']) {
      const error = refusalIn(directory, { ...node, scope });
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      assert.ok(error.message.includes(page), error.message);
    }
    assert.ok(existsSync(page));
  });
}

scene(
  'a read-only directory is an error that says what to do',
  { skip: HAS_MOUNTS },
  async ({ peer, shared }) => {
    const readOnly = {
      by: mounted(`mount --bind ${shared} ${shared}; mount -o remount,ro,bind ${shared}`),
    };
    const refuses = async () => {
      const one = peer(readOnly);
      for (const scope of ['auto', 'host']) {
        const { code, message } = await one.refusal({ scope });
        assert.equal(code, STORE, message);
        assert.match(message, /Read-only file system.*set SNOWDRIFT_SHARED to another directory/);
      }
    };
    await refuses();
    // The same where the page is there already.
    await peer().open();
    await refuses();
  },
);

const canChangeUser = noOtherUser();

scene('a second user with the same node is warned of', { skip: canChangeUser }, async (it) => {
  const [first, second, elsewhere] = [
    it.peer(),
    it.peer({ by: AS_NOBODY }),
    it.peer({ by: AS_NOBODY }),
  ];
  await first.open();
  const { page } = await second.open();
  await elsewhere.open({ workerId: 9 });
  const warnings = (one) =>
    one.run(async ({ warnings }) => {
      await new Promise((resolve) => setImmediate(resolve));
      return warnings;
    });
  assert.deepEqual(await warnings(first), []);
  assert.deepEqual(await warnings(elsewhere), []);
  const [warning, ...others] = await warnings(second);
  assert.deepEqual(others, []);
  assert.equal(warning.code, 'SNOWFLAKE_SECOND_USER');
  assert.match(warning.message, new RegExp(`User ${uid} .* workerId 3 .*${basename(page)}`));
  // Neither may touch the other's.
  const open = ({ require }, path) => require('node:fs').openSync(path, 'r');
  const owned = join(it.shared, `snowdrift-${uid}`, basename(page));
  await assert.rejects(second.run(open, owned), { code: 'EACCES' });
});

scene('a umask of 0777 changes nothing', { skip: canChangeUser }, async ({ peer }) => {
  const by = [...AS_NOBODY, 'sh', '-c', 'umask 0777; exec "$@"', 'sh'];
  const peers = [peer({ by }), peer({ by: AS_NOBODY })];
  const stats = [];
  for (const one of peers) stats.push(await one.open());
  const { page } = stats[0];
  assert.equal(stats[1].page, page);
  assert.equal(statSync(page).mode & 0o777, 0o600);
  assert.equal(statSync(dirname(page)).mode & 0o777, 0o711);
  assert.equal(countDuplicatesOf(await drawAll(peers, 30)), 0);
});

/** A record of a scene. Processes that open it at one time wait for each other. */
const recorded = () => ({ state: createDirectory(), waitForSlot: 60_000 });

scene('the parent of a state directory must be there', {}, async ({ peer }) => {
  const parent = shared();
  const { message } = await peer().refusal({ state: join(parent, 'no', 'ids') });
  assert.match(message, /cannot create the directory .*Create its parent directory/);
  assert.deepEqual(readdirSync(parent), []);
});

nodeTest.test('an own clock has no page', { skip: linux }, () => {
  const directory = shared();
  const flake = inDirectory(directory, { clock: Date.now });
  const { scope, page } = flake.stats();
  assert.deepEqual([scope, page], ['process', undefined]);
  const host = () =>
    new SnowFlake({ datacenterId: 1, workerId: 1, clock: Date.now, scope: 'host' });
  assert.match(refuses(host, 'ERR_SNOWFLAKE_CONFIG').message, /leave out clock, or scope 'host'/);
  assert.deepEqual(readdirSync(directory), []);
});

/** Another installation of the package. */
function copied() {
  const root = join(dirname(require.resolve('../..')), '..');
  const copy = mkdtempSync(join(tmpdir(), 'snowdrift-copy-'));
  for (const name of ['js', 'package.json']) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  return copy;
}

scene('two copies of the package in one process draw one sequence', {}, async ({ peer }) => {
  const copy = copied();
  try {
    const drawn = await peer().run(
      async ({ require, SnowFlake }, other) => {
        const { Worker } = require('node:worker_threads');
        const { once } = require('node:events');
        const entry = Object.keys(require.cache).find((path) => path.endsWith('/js/index.js'));
        const flakes = [new SnowFlake(), new (require(other).SnowFlake)()];
        const draw = `
          const { parentPort, workerData } = require('node:worker_threads');
          const flake = new (require(workerData).SnowFlake)();
          const parts = [];
          for (let n = 0; n < 40; n++) parts.push(...flake.nextIds(200), flake.nextId());
          parentPort.postMessage(BigUint64Array.from(parts));`;
        const threads = [entry, other].map(async (workerData) => {
          const worker = new Worker(draw, { eval: true, workerData });
          const [[ids]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')]);
          return ids;
        });
        const own = flakes.map(() => []);
        let isDone = false;
        const all = Promise.all(threads).finally(() => {
          isDone = true;
        });
        while (!isDone) {
          for (const [n, flake] of flakes.entries()) own[n].push(...flake.nextIds(50));
          await new Promise((resolve) => setImmediate(resolve));
        }
        const ids = [...own.map((one) => BigUint64Array.from(one)), ...(await all)];
        return { ids, pages: flakes.map((flake) => flake.stats().page) };
      },
      join(copy, 'js/index.js'),
    );
    assert.ok(drawn.pages[0] !== undefined && drawn.pages[0] === drawn.pages[1]);
    assert.equal(countDuplicatesOf(drawn.ids), 0);
  } finally {
    rmSync(copy, { recursive: true });
  }
});

for (const maxAhead of [0, 200]) {
  const skip = (maxAhead > 0 ? gate : undefined) ?? linux;
  scene(
    `rings beside plain users, maxAhead ${maxAhead}, repeat nothing`,
    { skip },
    async ({ peer }) => {
      const peers = [peer(), peer(), peer(), peer()];
      const more = maxAhead > 0 ? { ...recorded(), maxWait: 100 } : {};
      const open = (one, n) =>
        one.run(
          (scene, isCached, given) => {
            scene.flake = new scene[isCached ? 'CachedSnowFlake' : 'SnowFlake'](given);
          },
          n < 2,
          { maxAhead, ...more },
        );
      await Promise.all(peers.map(open));
      assert.equal(countDuplicatesOf(await drawAll(peers, DRAW_MS)), 0);
    },
  );
}
