'use strict';
// `snowdrift slots` and `recover` for a directory, with processes that hold its slots.

const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const { join } = require('node:path');
const { describe, mock, test } = require('node:test');
const { fileURLToPath, pathToFileURL } = require('node:url');

const native = require('../../js/runtime/native.js');
const { connect } = require('../../js/stores/connect.js');
const { gate, skipped } = require('../support/amount.js');
const { endOf, firstLine, json, run } = require('../support/cli.js');
const { newToken, readText } = require('../support/lease/records.js');
const { as, createReachable, noOtherUser, publicCopy } = require('../support/other-users.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { SnowFlake, entry, layouts, rejects } = require('../support/support.js');

const { signal } = new AbortController();

/** This process can have a node once, so each test has a datacenter of its own. */
let places = 0;

/** A directory of leases. */
class Place {
  constructor() {
    this.datacenterId = places++ % 8;
    this.path = createReachable();
    this.url = pathToFileURL(this.path).href;
  }

  key(workerId) {
    return `${this.datacenterId}/${workerId}`;
  }

  file(workerId, datacenterId = this.datacenterId) {
    return join(this.path, `datacenter-${datacenterId}-worker-${workerId}.slot`);
  }

  /** The slots that the command shows, by worker ID. */
  async slots() {
    const { slots } = await json('slots', this.url);
    return new Map(slots.map((slot) => [slot.workerId, slot]));
  }

  async states() {
    return [...(await this.slots())].map(([workerId, { state }]) => [workerId, state]);
  }

  async read(key) {
    return (await (await connect(new URL(this.url))).read(key, { signal })).record;
  }

  /** Changes the text of a record. */
  async rewrite(key, change) {
    const { token, text } = await this.read(key);
    const record = { token: newToken(), text: change(text) };
    const register = await connect(new URL(this.url));
    assert.ok((await register.write(key, record, token, { signal })).isWritten);
  }

  /** Each file: its bytes, and when it was written. */
  picture() {
    const names = fs.readdirSync(this.path).sort();
    return names.map((name) => {
      const { mtimeMs, mode } = fs.statSync(join(this.path, name));
      return { name, mtimeMs, mode, bytes: fs.readFileSync(join(this.path, name), 'latin1') };
    });
  }
}

/** A test in a directory of its own. `claims(...workerIds)` opens instances with `state` there. */
function inPlace(name, body, skip) {
  test(name, { skip }, async (t) => {
    const place = new Place();
    const open = [];
    const claims = (...workerIds) => {
      const { datacenterId, path: state } = place;
      const options = { datacenterId, state, scope: 'process' };
      const opened = workerIds.map((workerId) => new SnowFlake({ ...options, workerId }));
      open.push(...opened);
      return opened;
    };
    t.after(async () => {
      for (const flake of open) await flake.close();
      removeDirectory(place.path);
    });
    await body({ place, claims, t });
  });
}

/** A process of another host that leases from the directory until it is killed. Answers its worker ID. */
async function startHolder(t, url) {
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    SnowFlake.lease(${JSON.stringify(url)}, { datacenterId: 1 }).then((flake) => {
      console.log(flake.workerId);
      process.once('SIGTERM', () => flake.close().then(() => process.exit()));
      setInterval(() => {}, 1e6);
    });`;
  const env = { ...process.env, SNOWDRIFT_SHARED: createDirectory() };
  const child = spawn(process.execPath, ['-e', script], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  return { child, workerId: Number(await firstLine(child)) };
}

async function ended(child, signal) {
  const end = endOf(child);
  child.kill(signal);
  await end;
}

describe('a directory', { concurrency: 4 }, () => {
  inPlace(
    'slots shows who holds a slot of a directory, and frees it with its process',
    async ({ place, t }) => {
      const [killed, closed, living] = [
        await startHolder(t, place.url),
        await startHolder(t, place.url),
        await startHolder(t, place.url),
      ];
      const { namespace, slots } = await json('slots', place.url);
      assert.deepEqual([namespace.ttl, namespace.floor], [10_000, null]);
      assert.equal(namespace.layout, '41/3/5/2/12@1+1580486400000');
      assert.equal(slots.length, 3, 'worker IDs that nobody ever held are not shown');
      for (const { child, workerId } of [killed, closed, living]) {
        const slot = slots.find((one) => one.workerId === workerId);
        const { state, datacenterId, host, pid, startedAt, expires, ceiling } = slot;
        assert.deepEqual([state, datacenterId, host, pid], ['held', 1, os.hostname(), child.pid]);
        assert.ok(startedAt <= Date.now() && expires > startedAt && ceiling > startedAt);
      }
      await ended(killed.child, 'SIGKILL');
      await ended(closed.child, 'SIGTERM');
      const after = await place.slots();
      const states = [killed, closed, living].map(({ workerId }) => after.get(workerId).state);
      assert.deepEqual(states, ['free', 'free', 'held']);
      // What a killed process may have issued, its next holder starts above.
      assert.ok(after.get(killed.workerId).ceiling > after.get(closed.workerId).ceiling);
      const { stdout } = await run(['slots', place.url]);
      assert.match(
        stdout,
        new RegExp(
          `^store .*\\nfloor +none\\n\\ndatacenter .* held +\\S+ +${living.child.pid} .* in \\d+ s\\nHeld.*2 worker IDs are free again: --all`,
          's',
        ),
      );
    },
  );

  inPlace(
    'slots changes nothing, and needs no right to write',
    async ({ place, claims }) => {
      for (const flake of claims(3, 4)) await flake.close();
      for (const name of fs.readdirSync(place.path)) fs.chmodSync(join(place.path, name), 0o444);
      fs.chmodSync(place.file(4), 0o400);
      fs.chmodSync(place.path, 0o555);
      const picture = place.picture();
      const args = [join(publicCopy(), 'js/cli/main.js'), 'slots', place.url];
      const [command, ...rest] = [...as(65_534), process.execPath, ...args];
      const { status, stdout, stderr } = spawnSync(command, rest, { encoding: 'utf8' });
      assert.deepEqual([status, stderr], [0, '']);
      assert.match(
        stdout,
        /\nNo worker ID is held\.\nunusable: datacenter \d, worker 4, .*worker-4\.slot: Permission denied.*\n1 worker ID is free again: --all shows it\n$/s,
      );
      assert.deepEqual(place.picture(), picture);
    },
    noOtherUser(),
  );

  inPlace(
    'a file that nobody can use is shown with its name and the reason, and the others are',
    async ({ place, claims }) => {
      for (const flake of claims(0, 1, 2, 3, 4, 5, 6)) await flake.close();
      const whole = fs.readFileSync(place.file(1));
      const planted = {
        1: ['hello', /worker-1\.slot is not a snowdrift slot file\. .*move the file away/],
        2: [
          whole,
          /worker-2\.slot is the file of datacenterId \d and workerId 1 under another name/,
        ],
        3: [whole.subarray(0, 9000), /worker-3\.slot is 9000 bytes long/],
        4: [
          Buffer.concat([whole.subarray(0, 8), Buffer.from([3]), whole.subarray(9)]),
          /worker-4\.slot was written by an older snowdrift/,
        ],
      };
      for (const [workerId, [bytes]] of Object.entries(planted)) {
        fs.writeFileSync(place.file(workerId), bytes);
      }
      fs.rmSync(place.file(5));
      fs.symlinkSync(place.file(1), place.file(5));
      planted[5] = [undefined, /worker-5\.slot is a symbolic link/];
      // In a record that is whole, a line that is not.
      await place.rewrite(place.key(6), (text) => text.replace(/ free /, ' fre '));
      planted[6] = [undefined, /worker-6\.slot has a line of workerId 6 that is damaged/];
      const before = place.picture();
      const slots = await place.slots();
      assert.equal(slots.get(0).state, 'free');
      for (const [workerId, [, reason]] of Object.entries(planted)) {
        const { state, fault } = slots.get(Number(workerId));
        assert.equal(state, 'unusable');
        assert.match(fault, reason);
      }
      const { stdout } = await run(['slots', place.url]);
      assert.match(
        stdout,
        /worker 1, .*-worker-1\.slot is not.*\nunusable: .*worker 5, .*\nunusable: .*worker 6, /s,
      );
      assert.deepEqual(place.picture(), before);

      const { unusable, replaced } = await json('recover', place.url);
      assert.equal(unusable.length, 5);
      for (const workerId of [1, 2, 3, 4, 5]) {
        const why = unusable.find((one) =>
          one.startsWith(`workerId ${workerId} of datacenterId ${place.datacenterId}: `),
        );
        assert.match(why, planted[workerId][1]);
      }
      assert.deepEqual(replaced, [`the line of workerId 6 in ${place.file(6)}`]);
      const after = place.picture();
      for (const [n, one] of before.entries()) {
        const isUsed = /namespace|worker-[06]/.test(one.name);
        assert.equal(after[n].bytes === one.bytes, !isUsed, one.name);
      }
      // Moved away, its worker ID is used again, above all that its holders can have issued.
      fs.renameSync(place.file(1), join(place.path, 'away'));
      const [flake] = claims(1);
      assert.ok(flake.lease.floor > Date.now());
    },
  );

  inPlace(
    'a damaged record of the namespace is named, and nothing is written over it',
    async ({ place, claims }) => {
      for (const flake of claims(3)) await flake.close();
      const file = join(place.path, 'namespace.slot');
      fs.writeFileSync(file, 'hello');
      const { namespace, slots } = await json('slots', place.url);
      assert.deepEqual([slots.length, slots[0].state], [1, 'free']);
      assert.match(namespace.fault, /namespace\.slot is not a snowdrift slot file/);
      const limits = ['--ttl', '10000', '--max-ahead', '0'];
      const values = ['--layout', 'node', ...limits];
      for (const args of [[], ['--new'], values]) {
        const { code, stderr } = await run(['recover', place.url, ...args]);
        assert.equal(code, 1);
        assert.match(
          stderr,
          /namespace\.slot is not a snowdrift slot file\. .*Move it away, and run, .*: snowdrift recover file:/,
        );
      }
      assert.equal(fs.readFileSync(file, 'utf8'), 'hello');
      assert.throws(() => claims(3), {
        code: 'ERR_SNOWFLAKE_STORE',
        message: new RegExp(
          `Move it away, and run, .*: snowdrift recover ${place.url} --layout LAYOUT `,
        ),
      });
      fs.rmSync(file);
      const { stdout } = await run(['slots', place.url]);
      assert.match(stdout, /^The record of the namespace is gone, its slots are not/);
      for (const [args, said] of [
        [
          [],
          /the record of the namespace is gone\. Pass the values of its holders: --layout, --ttl/,
        ],
        [['--new'], /is not new: it has records of worker IDs/],
      ]) {
        const { code, stderr } = await run(['recover', place.url, ...args]);
        assert.equal(code, 1);
        assert.match(stderr, said);
      }
      const { floor } = await json('recover', place.url, ...values);
      assert.ok(floor > Date.now());
      assert.equal(
        readText((await place.read('namespace')).text).buckets,
        `${32 * place.datacenterId + 3}`,
      );
    },
  );

  inPlace(
    'a directory that is not there, or has no records, is named, and nothing is created',
    async ({ place }) => {
      const absent = `${place.url}/absent`;
      for (const command of [['slots'], ['recover'], ['recover', '--new']]) {
        const [name, ...more] = command;
        const { code, stderr } = await run([name, absent, ...more]);
        assert.equal(code, 1);
        assert.match(stderr, /absent: No such file or directory.*Check the path/);
      }
      for (const name of ['slots', 'recover']) {
        const { code, stderr } = await run([name, place.url]);
        assert.equal(code, 1);
        assert.match(stderr, /has no record of a namespace\. Check its path\./);
      }
      const { stderr } = await run(['slots', place.url]);
      assert.ok(stderr.includes(`snowdrift recover ${place.url} --new`), stderr);
      assert.deepEqual(fs.readdirSync(place.path), []);
      const { ttl, maxClockSkew } = await json('recover', place.url, '--new');
      assert.deepEqual([ttl, maxClockSkew], [10_000, 10_000]);
      const { stderr: again } = await run(['recover', place.url, '--new']);
      assert.match(again, /exists already, with the ID/);
      assert.ok(again.includes(`run: snowdrift recover ${place.url}`), again);
      assert.match((await run(['slots', place.url])).stdout, /No slot was ever used/);
    },
  );

  inPlace(
    'recover prints when new processes generate IDs, and when living holders stop and continue',
    async ({ place, claims }) => {
      claims(1, 2);
      const { stdout } = await run(['recover', place.url]);
      const said =
        /\n\nProcesses that you start now generate IDs from (\S+Z)\.\nLiving holders of 2 worker IDs stop by (\S+Z) and continue by (\S+Z), if the store answers them\.\n$/;
      const [first, stop, latest] = said.exec(stdout).slice(1).map(Date.parse);
      const { namespace } = await json('slots', place.url);
      assert.ok(namespace.floor <= first, 'by the floor');
      // ttl 10 s, maxClockSkew 10 s: a reach of 30 s.
      assert.deepEqual([(latest - stop) / 1000, stop < first && first < latest], [40, true]);
      assert.doesNotMatch(stdout, /floor/);
      const created = `${place.path}/new`;
      fs.mkdirSync(created);
      const { stdout: fresh } = await run(['recover', pathToFileURL(created).href, '--new']);
      assert.match(fresh, /\n\nProcesses that you start now generate IDs at once\.\n$/);
    },
  );

  inPlace('the name of a host is escaped where it is shown, and bounded', async ({ place, t }) => {
    const evil = `\x1b[2J\x9b31m\u202e\nheld\r${'x'.repeat(230)}`;
    const layout = { ...layouts.node, workerBits: 0, sequenceBits: 17 };
    const lease = () =>
      SnowFlake.lease(place.url, { datacenterId: place.datacenterId, layout, scope: 'process' });
    const { mock: hostname } = mock.method(os, 'hostname', () => evil);
    const flake = await lease().finally(() => hostname.restore());
    t.after(() => flake.close());
    // Its line has 64 bytes for a host, and no control character.
    const shown = '[2J31m\\u202eheldxxx';
    const { message, holders } = await rejects(lease(), 'ERR_SNOWFLAKE_NO_SLOT');
    const { stdout } = await run(['slots', place.url]);
    for (const text of [message, stdout]) {
      assert.doesNotMatch(text, /(?!\n)\p{Cc}|\u202e/u);
      assert.ok(text.includes(shown), text);
    }
    assert.doesNotMatch(message, /\n/);
    const { slots } = await json('slots', place.url);
    for (const { host } of [holders[0], slots[0]]) {
      assert.ok(host.startsWith(shown) && host.length < 200, host);
    }
  });

  inPlace('a command that an error names can be pasted into a shell', async ({ place }) => {
    const path = join(place.path, "a 'b' $HOME; x");
    fs.mkdirSync(path);
    const url = pathToFileURL(path).href;
    const { stderr } = await run(['slots', url]);
    const [, command] = /or snowdrift (recover .*) does$/m.exec(stderr);
    const shell = process.platform === 'win32' ? 'bash' : 'sh';
    const { stdout } = spawnSync(shell, ['-c', `printf '%s\\n' ${command}`], { encoding: 'utf8' });
    const args = stdout.trim().split('\n');
    assert.deepEqual([args[0], fileURLToPath(args[1]), args[2]], ['recover', path, '--new']);
    assert.equal((await run(args)).code, 0);
  });

  inPlace(
    'slots reads the files that there are, also of a namespace that counts a thousand',
    async ({ place, claims }) => {
      const layout = { ...layouts.node, datacenterBits: 0, workerBits: 10, sequenceBits: 10 };
      const options = { layout, state: place.path, scope: 'process' };
      for (const workerId of [7, 1023]) await new SnowFlake({ ...options, workerId }).close();
      await place.rewrite('namespace', (text) => text.replace(/buckets.*/, 'buckets 8-1023'));
      // Of no layout, and no names of files of slots.
      fs.copyFileSync(place.file(7, 0), place.file(1024, 0));
      for (const name of ['datacenter-0-worker-07.slot', 'datacenter-0-worker-.slot', 'x']) {
        fs.writeFileSync(join(place.path, name), '');
      }
      assert.deepEqual(await place.states(), [
        [7, 'free'],
        [1023, 'free'],
        [1024, 'unusable'],
      ]);
      await json('recover', place.url);
      const { buckets } = readText((await place.read('namespace')).text);
      assert.equal(buckets, '7-1023', 'it counts the file that was there');
      assert.ok(claims.length === 0 && fs.existsSync(place.file(7, 0)));
    },
  );

  inPlace(
    'a process that is stopped while it changes a file is named, and recover does the others',
    async ({ place, claims, t }) => {
      // As many as a command changes at one time, and one more.
      const stopped = [0, 1, 2, 3, 4, 5, 6, 7];
      for (const flake of claims(...stopped, 8)) await flake.close();
      const files = stopped.map((workerId) => place.file(workerId));
      const child = spawn('python3', ['-c', STOPPED, ...files], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      t.after(() => child.kill('SIGKILL'));
      await firstLine(child);
      child.kill('SIGSTOP');
      const states = await place.states();
      assert.deepEqual(
        states,
        [...stopped, 8].map((workerId) => [workerId, 'free']),
      );
      const { code, stderr } = await run(['recover', place.url]);
      assert.equal(code, 1);
      const named = new RegExp(
        `process ${child.pid} has been changing .*worker-\\d\\.slot for 2 s`,
      );
      assert.match(stderr, named);
      assert.match(stderr, /The floor is raised: .*: run it again$/m);
      const idOf = async (key) => readText((await place.read(key)).text).id;
      const id = await idOf('namespace');
      assert.deepEqual([(await idOf(place.key(3))) === id, await idOf(place.key(8))], [false, id]);
      await ended(child, 'SIGKILL');
      await json('recover', place.url);
      assert.equal(await idOf(place.key(3)), await idOf('namespace'));
    },
    gate ?? noPython(),
  );
});

inPlace(
  'a recover that fails halfway names what it did, and exits with 1',
  async ({ place, claims, t }) => {
    claims(1);
    const { bucketKeys } = native;
    // The first call is before the floor is raised.
    const fail = (...values) => {
      if (calls.callCount() > 0) throw new TypeError('a fault of ours');
      return bucketKeys(...values);
    };
    const { mock: calls } = t.mock.method(native, 'bucketKeys', fail);
    const { code, stderr } = await run(['recover', place.url]);
    assert.match(stderr, /a fault of ours\. The floor is raised/);
    assert.equal(code, 1, 'not 2, as for a wrong use');
  },
);

/** Locks files for a change, as a process does that is stopped in one, and writes its own process ID. */
const STOPPED = `
import fcntl, os, struct, sys, time
F_OFD_SETLK = 37
byte = struct.pack('hhxxxxqqixxxx', fcntl.F_WRLCK, 0, (1 << 40) + 1, 1, 0)
files = [open(path, 'r+b', 0) for path in sys.argv[1:]]
for file in files:
    file.seek(64)
    file.write(struct.pack('<Q', os.getpid()))
    fcntl.fcntl(file, F_OFD_SETLK, byte)
print('locked', flush=True)
time.sleep(1e6)`;

function noPython() {
  if (process.platform !== 'linux') return 'its locks are those of Linux';
  if (spawnSync('python3', ['-c', 'import fcntl']).status !== 0)
    return skipped('there is no python3');
  return undefined;
}
