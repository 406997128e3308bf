'use strict';
// A second user of the machine attacks pages and slot files: what that user puts there is refused or harmless.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} = require('node:fs');
const { basename, dirname, join } = require('node:path');
const { test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { gate } = require('../support/amount.js');
const { run } = require('../support/cli.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { as, createReachable, noOtherUser } = require('../support/other-users.js');
const { createDirectory } = require('../support/own-directory.js');
const { Peer, drawAll } = require('../support/peer.js');

const VICTIM = 65534;
const ATTACKER = 54_321;

/** A shell command of the attacker. Answers whether it worked. */
function attack(command, ...paths) {
  const [program, ...args] = [...as(ATTACKER), 'sh', '-c', command, 'sh', ...paths];
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

const onlyUser = noOtherUser();

/** A scene with two places that all users may write to, as /dev/shm and /tmp, and processes of the victim. */
function scene(name, body, skip = onlyUser) {
  test(name, { skip, timeout: 600_000 }, async (t) => {
    const shared = createDirectory();
    const place = createReachable();
    for (const path of [shared, place]) chmodSync(path, 0o1777);
    const peers = [];
    t.after(async () => {
      await Promise.all(peers.map((peer) => peer.end()));
      rmSync(place, { recursive: true, force: true });
    });
    const peer = (by = as(VICTIM)) => {
      const one = new Peer({ by, env: { SNOWDRIFT_SHARED: shared } });
      peers.push(one);
      return one;
    };
    await body({ shared, place, peer, home: join(shared, `snowdrift-${VICTIM}`) });
  });
}

/** A scene that is left to the gate. */
const rare = (name, body) => scene(name, body, gate ?? onlyUser);
/** Of a table, the first two are not. */
const ofTable = (n) => (n < 2 ? scene : rare);

async function assertRefused(peer, pattern, options) {
  const { code, message } = await peer.refusal(options);
  assert.equal(code, 'ERR_SNOWFLAKE_STORE', message);
  assert.match(message, pattern);
}

/** A path of this kind, content and mode, to see that nothing has changed it. */
function pictureOf(path) {
  const { mode, uid, size, mtimeMs, nlink } = lstatSync(path);
  return { mode, uid, size, mtimeMs, nlink, bytes: readFileSync(path, 'hex') };
}

const PLANTED_DIRECTORIES = {
  'a directory of the attacker': ['mkdir -m 777 "$1"', /belongs to user 54321, not to user 65534/],
  'a link to a directory of the attacker': [
    'mkdir -m 777 "$1.own" && ln -s "$1.own" "$1"',
    /symbolic link|belongs to user 54321|Permission denied/,
  ],
  'a link to a directory of the victim': [
    'ln -s "$2" "$1"',
    /symbolic link|belongs to user 54321|Permission denied/,
  ],
  'a file': [': > "$1"', /not a directory|belongs to user 54321/i],
};

for (const [n, [what, [command, pattern]]] of Object.entries(PLANTED_DIRECTORIES).entries()) {
  const planted = ofTable(n);
  planted(`${what} in the place of the pages is refused`, async ({ shared, home, peer }) => {
    const own = join(shared, 'own');
    mkdirSync(own, 0o755);
    chownSync(own, VICTIM, VICTIM);
    assert.ok(attack(command, home, own));
    await assertRefused(peer(), pattern);
    assert.deepEqual(readdirSync(own), []);
  });

  planted(`${what} in the place of a state directory is refused`, async ({ place, peer }) => {
    const own = join(place, 'own');
    mkdirSync(own, 0o755);
    chownSync(own, VICTIM, VICTIM);
    const state = join(place, 'ids');
    assert.ok(attack(command, state, own));
    const one = peer();
    for (const path of [state, `${state}/`]) await assertRefused(one, pattern, { state: path });
    assert.deepEqual(readdirSync(own), []);
  });
}

scene('nothing is open to the attacker, whatever the umask', async ({ place, peer, home }) => {
  const state = join(place, 'ids');
  const one = peer([...as(VICTIM), 'sh', '-c', 'umask 0; exec "$@"', 'sh']);
  const { page } = await one.open({ state });
  const [slot] = readdirSync(state).map((name) => join(state, name));
  for (const directory of [home, state]) assert.equal(statSync(directory).mode & 0o7777, 0o711);
  for (const file of [page, slot]) assert.equal(statSync(file).mode & 0o7777, 0o600);
  const before = [home, state].map((path) => readdirSync(path).sort());
  for (const command of [
    'ls "$2"',
    'cat "$1"',
    'echo >> "$1"',
    'truncate -s 0 "$1"',
    'rm -f "$1"',
    'mv "$1" "$2/aside"',
    'ln -s /dev/null "$2/datacenter-1-worker-9.slot"',
    'mkdir "$2/aside"',
    'mv "$2" "$2.aside"',
    'chmod 777 "$2"',
  ]) {
    for (const file of [page, slot]) {
      assert.ok(!attack(command, file, dirname(file)), `${command} ${file}`);
    }
  }
  assert.deepEqual(
    [home, state].map((path) => readdirSync(path).sort()),
    before,
  );
});

rare('a hard link to a page or a slot file changes nothing', async ({ place, peer }) => {
  const state = join(place, 'ids');
  const one = peer();
  const { page } = await one.open({ state });
  const [slot] = readdirSync(state).map((name) => join(state, name));
  const links = [`${dirname(dirname(page))}/link`, join(place, 'link')];
  // By root, for systems that let any user do it (fs.protected_hardlinks=0).
  linkSync(page, links[0]);
  linkSync(slot, links[1]);
  for (const link of links) {
    for (const command of ['cat "$1"', 'echo >> "$1"', 'rm "$1"']) {
      assert.ok(!attack(command, link), `${command} ${link}`);
    }
  }
  const two = peer();
  assert.equal((await two.open({ state })).page, page);
  assert.equal(countDuplicatesOf(await drawAll([one, two], 30)), 0);
});

/** The attacker's ways to put something in the place of a slot's file, in a directory that all may write to. */
const PLANTED_FILES = {
  'a valid file of the attacker': [
    ({ valid, slot }) => {
      copyFileSync(valid, slot);
      chownSync(slot, ATTACKER, ATTACKER);
      chmodSync(slot, 0o666);
    },
    /belongs to user 54321, not to user 65534/,
  ],
  'a link to a valid file': [({ valid, slot }) => symlinkSync(valid, slot), /symbolic link/],
  'a link to nothing': [
    ({ place, slot }) => symlinkSync(join(place, 'new'), slot),
    /symbolic link/,
  ],
  'a hard link to a valid file': [({ valid, slot }) => linkSync(valid, slot), /hard link/],
  'a hard link to any file': [({ secret, slot }) => linkSync(secret, slot), /hard link/],
  'a valid file that all may write to': [
    ({ valid, slot }) => {
      renameSync(valid, slot);
      chmodSync(slot, 0o666);
    },
    /writable by all users \(mode 0666\)/,
  ],
};

for (const [n, [what, [plant, pattern]]] of Object.entries(PLANTED_FILES).entries()) {
  ofTable(n)(`${what} in the place of a slot file is refused`, async ({ place, peer }) => {
    const backup = join(place, 'backup');
    mkdirSync(backup, 0o755);
    chownSync(backup, VICTIM, VICTIM);
    const one = peer();
    await one.open({ state: backup });
    await one.end();
    const secret = join(backup, 'secret');
    writeFileSync(secret, 'secret', { mode: 0o600 });
    chownSync(secret, VICTIM, VICTIM);
    const valid = join(backup, 'datacenter-1-worker-3.slot');
    const slot = join(place, basename(valid));
    plant({ place, valid, secret, slot });
    const kept = [valid, secret].filter(existsSync);
    const before = kept.map(pictureOf);
    const other = peer();
    await assertRefused(other, pattern, { state: place });
    await other.open({ state: place, workerId: 5 });
    assert.deepEqual(kept.map(pictureOf), before);
    assert.ok(!existsSync(join(place, 'new')));
  });
}

for (const [what, link] of Object.entries({ symbolic: symlinkSync, hard: linkSync })) {
  scene(`recover by root writes nothing through a ${what} link`, async ({ place }) => {
    const target = join(place, 'target');
    writeFileSync(target, 'root:x:0:0', { mode: 0o600 });
    const state = join(place, 'ids');
    mkdirSync(state);
    chownSync(state, ATTACKER, ATTACKER);
    link(target, join(state, 'namespace.slot'));
    const before = pictureOf(target);
    const recover = () => run(['recover', pathToFileURL(state).href]);
    const inPublic = await recover();
    assert.equal(inPublic.code, 1);
    assert.match(inPublic.stderr, /belongs to user 54321/);
    // Where an administrator has created the directory for a service that was taken over since.
    chmodSync(place, 0o755);
    const ofService = await recover();
    assert.equal(ofService.code, 1);
    assert.match(ofService.stderr, what === 'hard' ? /hard link/ : /symbolic link/);
    assert.deepEqual(pictureOf(target), before);
  });
}

rare(
  'root recovers a directory of another user, whose files they stay',
  async ({ place, peer }) => {
    chmodSync(place, 0o755);
    const state = join(place, 'ids');
    mkdirSync(state);
    chownSync(state, VICTIM, VICTIM);
    const recover = (...more) => run(['recover', pathToFileURL(state).href, ...more]);
    const early = await recover('--new');
    assert.match(
      early.stderr,
      new RegExp(`belongs to user ${VICTIM}: run this command as that user`),
    );
    const one = peer();
    await one.open({ state });
    await one.end();
    const { code, stderr } = await recover();
    assert.equal(code, 0, stderr);
    for (const name of readdirSync(state)) assert.equal(statSync(join(state, name)).uid, VICTIM);
  },
);

rare('a volume that belongs to another user can be used', async ({ place, peer }) => {
  chmodSync(place, 0o755);
  const state = join(place, 'volume');
  mkdirSync(state);
  chownSync(state, ATTACKER, VICTIM);
  chmodSync(state, 0o2775);
  const one = peer();
  await one.open({ state });
  const [slot] = readdirSync(state).map((name) => join(state, name));
  // As a kubelet does for fsGroup when it mounts the volume again.
  chmodSync(slot, 0o660);
  await one.end();
  await peer().open({ state });
});

/** As a kubelet does for fsGroup when it mounts a volume. */
function grantGroup(volume, group) {
  chownSync(volume, 0, group);
  chmodSync(volume, 0o2775);
  for (const name of readdirSync(volume)) {
    chownSync(join(volume, name), statSync(join(volume, name)).uid, group);
    chmodSync(join(volume, name), 0o660);
  }
}

rare('a volume of a group can be used by its users in turn, and by no other', async (scene) => {
  const { place, shared, peer } = scene;
  const GROUP = 4711;
  chmodSync(place, 0o755);
  const state = join(place, 'volume');
  mkdirSync(state);
  for (const user of [10_001, 10_002, 10_001]) {
    grantGroup(state, GROUP);
    const one = peer(as(user, GROUP));
    // A page that another user's process has ended keeps the worker ID until its ceiling has passed.
    await one.open({ state, ttl: 1000, waitForSlot: 60_000 });
    await one.end();
    assert.ok(existsSync(join(shared, `snowdrift-${user}`)));
  }
  // Anybody could have put a file into the first one. In the second one, a member's group is of no account.
  for (const mode of [0o3777, 0o775]) {
    grantGroup(state, GROUP);
    chmodSync(state, mode);
    await assertRefused(peer(as(10_002, GROUP)), /belongs to user 10001, not to user 10002/, {
      state,
    });
  }
});
