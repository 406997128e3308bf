'use strict';
// One sequence per host: processes of one user that name one node never draw one ID twice, wherever and
// however they run. Where they cannot share, the error says why.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
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

const { amount, gate, isStorms, storm } = require('../support/amount.js');
const { as, noOtherUser } = require('../support/other-users.js');
const { createDirectory } = require('../support/own-directory.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { Peer, drawAll } = require('../support/peer.js');
const { SnowFlake, refuses, slow } = require('../support/support.js');

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

/** Ticks of the default layout in which both have drawn. */
function commonTicks(one, other) {
  const ticks = (ids) => new Set(Array.from(ids, (id) => id >> 22n));
  const known = ticks(one);
  return [...ticks(other)].filter((tick) => known.has(tick)).length;
}

const DRAW_MS = amount(30, 100);

/** Again, until the processes have drawn at one time: a busy machine may run them one after the other. */
async function untilShared(draw) {
  for (let round = 0; !(await draw()); round++)
    assert.ok(round < 300, 'they never drew at one time');
}

scene('two processes of one environment draw one sequence', {}, async ({ peer, shared }) => {
  const peers = [peer(), peer()];
  const stats = await Promise.all(peers.map((one) => one.open()));
  for (const { scope, page } of stats) {
    assert.equal(scope, 'host');
    assert.equal(dirname(page), join(shared, `snowdrift-${uid}`));
    assert.equal(statSync(page).size, 4096);
  }
  assert.equal(stats[0].page, stats[1].page);
  const issued = [0, 0];
  let common = 0;
  await untilShared(async () => {
    const drawn = await drawAll(peers, DRAW_MS);
    assert.equal(countDuplicatesOf(drawn), 0);
    for (const [n, ids] of drawn.entries()) issued[n] += ids.length;
    common += commonTicks(...drawn);
    return !isStorms || common > 10;
  });
  for (const [n, one] of peers.entries()) {
    const stats = await one.run(({ flake }) => flake.stats());
    assert.equal(stats.issued, issued[n], 'issued is of the process');
  }
});

/** What may differ between two processes of one host. As a table it is left to the gate, but for the first one. */
const APART = {
  'working directories, TMPDIR, HOME and host names': {
    cwd: '/',
    env: { TMPDIR: '/var/tmp', HOME: '/', XDG_RUNTIME_DIR: '/', HOSTNAME: 'other' },
  },
  'namespaces of every other kind': {
    by: ['unshare', '--mount', '--uts', '--ipc', '--net', '--cgroup'],
  },
};

for (const [n, [name, differs]] of Object.entries(APART).entries()) {
  const [command, ...args] = differs.by ?? ['true'];
  const skip = (n > 0 ? gate : undefined) ?? whyNot(command, ...args);
  scene(`${name} do not split a host`, { skip }, async ({ peer }) => {
    const peers = [peer(), peer(differs), peer(differs)];
    const stats = await Promise.all(peers.map((one) => one.open({ scope: 'host' })));
    assert.equal(new Set(stats.map(({ page }) => page)).size, 1);
    assert.equal(countDuplicatesOf(await drawAll(peers, DRAW_MS)), 0);
  });
}

scene(
  'a user namespace that maps the user to root does not split a host',
  { skip: gate ?? noOtherUser() ?? whyNot(...AS_NOBODY, 'unshare', '--user', '--map-root-user') },
  async ({ peer, shared }) => {
    const inside = { by: [...AS_NOBODY, 'unshare', '--user', '--map-root-user'] };
    const peers = [peer({ by: AS_NOBODY }), peer(inside), peer(inside)];
    const stats = await Promise.all(peers.map((one) => one.open({ scope: 'host' })));
    assert.equal(new Set(stats.map(({ page }) => page)).size, 1);
    assert.equal(countDuplicatesOf(await drawAll(peers, DRAW_MS)), 0);
    assert.deepEqual(readdirSync(shared), [`snowdrift-${NOBODY}`]);
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

/** What may stand where the directory should: how it comes there, and what the error says. */
const SQUATTED = {
  'a file': [(path) => writeFileSync(path, ''), /is not a directory/],
  'a directory that all may write to': [
    (path) => {
      mkdirSync(path);
      chmodSync(path, 0o1777);
    },
    /is writable by other users \(mode 1777\)/,
  ],
};

for (const [name, [make, message]] of Object.entries(SQUATTED)) {
  nodeTest.test(`${name} instead of the directory is an error, and stays`, { skip: linux }, () => {
    const directory = shared();
    const path = join(directory, `snowdrift-${uid}`);
    make(path);
    for (const scope of ['auto', 'host']) {
      const error = refusalIn(directory, { scope });
      assert.equal(error.code, 'ERR_SNOWFLAKE_STORE');
      assert.match(error.message, message);
      assert.ok(error.message.includes(path), error.message);
    }
    assert.equal(typeof inDirectory(directory, { scope: 'process' }).nextId(), 'bigint');
  });
}

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
  'a tmpfs without memory left is an error, until there is room again',
  { skip: HAS_MOUNTS },
  async ({ peer, shared }) => {
    const fill = `head -c 1M /dev/zero > ${shared}/filling 2>/dev/null || :`;
    const one = peer({ by: mounted(`mount -t tmpfs -o size=8k none ${shared}; ${fill}`) });
    for (const scope of ['auto', 'host']) {
      const { code, message } = await one.refusal({ scope });
      assert.equal(code, STORE, message);
      assert.match(message, /No space left on device.*enlarge it/);
    }
    await one.run(({ require }, path) => require('node:fs').rmSync(path), join(shared, 'filling'));
    assert.equal((await one.open()).scope, 'host');
    assert.ok((await one.draw(20)).ids.length > 0);
  },
);

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

for (const umask of ['0777', '0000']) {
  const skip = (umask === '0777' ? undefined : gate) ?? canChangeUser;
  const by = [...AS_NOBODY, 'sh', '-c', `umask ${umask}; exec "$@"`, 'sh'];
  scene(`a umask of ${umask} changes nothing`, { skip }, async ({ peer }) => {
    const peers = [peer({ by }), peer({ by: AS_NOBODY })];
    const stats = [];
    for (const one of peers) stats.push(await one.open());
    const { page } = stats[0];
    assert.equal(stats[1].page, page);
    assert.equal(statSync(page).mode & 0o777, 0o600);
    assert.equal(statSync(dirname(page)).mode & 0o777, 0o711);
    assert.equal(countDuplicatesOf(await drawAll(peers, 30)), 0);
  });
}

/** A record of a scene. Processes that open it at one time wait for each other. */
const recorded = () => ({ state: createDirectory(), waitForSlot: 60_000 });

scene('the parent of a state directory must be there', {}, async ({ peer }) => {
  const parent = shared();
  const { message } = await peer().refusal({ state: join(parent, 'no', 'ids') });
  assert.match(message, /cannot create the directory .*Create its parent directory/);
  assert.deepEqual(readdirSync(parent), []);
});

scene('policies may differ, and the page is one', {}, async ({ peer }) => {
  const given = [
    {},
    { clockBack: 'wait', maxWait: 50 },
    { clockBack: 'throw', maxWait: 1000 },
    { sequenceStart: 'random' },
  ];
  const peers = given.map(() => peer());
  const stats = await Promise.all(peers.map((one, n) => one.open(given[n])));
  assert.equal(new Set(stats.map(({ page }) => page)).size, 1);
  assert.equal(countDuplicatesOf(await drawAll(peers, DRAW_MS)), 0);
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

/**
 * Calls `act` again and again while processes draw, and have drawn before; answers what they drew. However late this
 * process is, they draw until it was called five times.
 */
async function drawWhile(peers, ms, act) {
  const least = 5;
  let acts = 0;
  let timer;
  const drawn = async (one) => {
    const parts = [];
    do parts.push(await one.draw(ms));
    while (acts < least);
    const refusals = Object.assign({}, ...parts.map((part) => part.refusals));
    return { ids: BigUint64Array.from(parts.flatMap(({ ids }) => [...ids])), refusals };
  };
  const drawing = Promise.all(peers.map(drawn));
  try {
    // Answered after the first IDs.
    await Promise.race([drawing, Promise.all(peers.map((one) => one.run(() => 0)))]);
    await new Promise((resolve, reject) => {
      timer = setInterval(() => {
        try {
          acts++;
          act();
        } catch (failure) {
          acts = least;
          reject(failure);
        }
      }, 7);
      drawing.then(resolve, reject);
    });
    return await drawing;
  } finally {
    clearInterval(timer);
  }
}

const noRefusals = (drawn) => {
  for (const { refusals } of drawn) assert.deepEqual(refusals, {});
};

/** Takes away the page's name, and the directory's, while they are in use. */
function lose(page) {
  try {
    rmSync(dirname(page), { recursive: true, force: true });
  } catch ({ code }) {
    // Somebody has created a page meanwhile.
    assert.equal(code, 'ENOTEMPTY');
  }
}

const stopsNobody =
  'a directory that is removed while 3 processes draw repeats nothing, and stops nobody';

scene(stopsNobody, { skip: storm ?? linux }, async (it) => {
  const peers = [it.peer(), it.peer(), it.peer()];
  const [{ page }] = await Promise.all(peers.map((one) => one.open()));
  const drawn = await drawWhile(peers, 2 * DRAW_MS, () => lose(page));
  noRefusals(drawn);
  const newcomer = it.peer();
  await newcomer.open();
  drawn.push(...(await Promise.all([...peers, newcomer].map((one) => one.draw(20)))));
  noRefusals(drawn);
  assert.equal(countDuplicatesOf(drawn.map(({ ids }) => ids)), 0);
  for (const one of [...peers, newcomer]) {
    assert.equal((await one.run(({ flake }) => flake.stats())).page, page);
  }
  assert.ok(existsSync(page));
});

const inADay = 'a directory that is removed repeats nothing in a tick of a day, either';

scene(inADay, { skip: storm ?? linux }, async (it) => {
  const peers = [it.peer(), it.peer(), it.peer()];
  const [{ page }] = await Promise.all(peers.map((one) => one.open({ layout: slow })));
  const drawn = await drawWhile(peers, 2 * DRAW_MS, () => lose(page));
  // The rest of the tick is lost: nobody knows what was issued of it.
  for (const { refusals } of drawn) delete refusals.ERR_SNOWFLAKE_WINDOW;
  noRefusals(drawn);
  const ids = drawn.map((one) => one.ids);
  assert.ok(ids.some(({ length }) => length > 0));
  assert.equal(countDuplicatesOf(ids), 0);
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
