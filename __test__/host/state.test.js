'use strict';
// A slot's state: who may hold it, how long, and what is said when something is wrong with it.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} = require('node:fs');
const { hostname } = require('node:os');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');
const { afterEach, beforeEach, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { gate } = require('../support/amount.js');
const { createReachable } = require('../support/other-users.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { FILE_BYTES, readLine, readRecord } = require('../support/lease/slot-file.js');
const {
  SnowFlake,
  countDuplicates,
  entry,
  layouts,
  refuses,
  rejects,
  runScript,
  runWorker,
  until,
} = require('../support/support.js');

/** Longer than any process here is held up. */
const ttl = 600_000;

let directory;
let open;

beforeEach(() => {
  directory = createReachable();
  // A page of a process that was killed keeps its worker ID from other directories, until its ceiling has passed.
  process.env.SNOWDRIFT_SHARED = createDirectory();
  open = [];
});

afterEach(() => {
  for (const flake of open) flake.close();
  removeDirectory(directory);
});

/** Named by state: slot 3 of datacenter 1. Closed after the test. */
function recorded(options) {
  const flake = new SnowFlake({ datacenterId: 1, workerId: 3, state: directory, ttl, ...options });
  open.push(flake);
  return flake;
}

/** A slot of its own: what a host's processes share is tested in lease/file.test.js. */
async function leased(options, store = pathToFileURL(directory)) {
  const scope = 'process';
  const flake = await SnowFlake.lease(store, { datacenterId: 1, scope, ttl, ...options });
  open.push(flake);
  return flake;
}

/** What another process prints that runs an expression with SnowFlake, directory and url. */
async function elsewhere(expression, env) {
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const directory = ${JSON.stringify(directory)};
    const url = ${JSON.stringify(pathToFileURL(directory).href)};
    const state = { datacenterId: 1, workerId: 3, state: directory, ttl: ${ttl} };
    (async () => ${expression})().then(
      (value) => console.log(JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? String(v) : v))),
      ({ code, message, holders }) => console.log(JSON.stringify({ code, message, holders })));`;
  const { stdout, stderr } = await runScript(script, { env });
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

/** Until the record of a slot says that it was released: close() waits for the disk, but not for long. */
const isFree = (workerId) => until(() => readLine(slotFile(workerId)).kind === 'free');

const slotFile = (workerId = 3) => join(directory, `datacenter-1-worker-${workerId}.slot`);

/** Why processes share nothing unless they ask for it. */
const alone = process.platform === 'win32' && "on Windows a node with state is one process's";

test('processes of one host share the slot', { skip: alone }, async () => {
  const flake = recorded({ maxWait: 10_000 });
  // They open it at one time: one may be held up then for longer than others wait for that.
  const patient = '{ ...state, maxWait: 10_000, waitForSlot: 60_000 }';
  const draw = () => elsewhere(`new SnowFlake(${patient}).nextIds(5000)`);
  const others = [draw(), draw()];
  const ids = [...flake.nextIds(10_000)].map(String);
  for (const more of await Promise.all(others)) ids.push(...Object.values(more));
  assert.equal(ids.length, 20_000);
  assert.equal(countDuplicates(ids), 0);
});

/** Another container that sees the directory, and not this one's pages. */
const container = () => ({ SNOWDRIFT_SHARED: createDirectory() });

test('a process that cannot share is refused with the holder, its start, and what to do', async () => {
  recorded().nextId();
  for (const [expression, env] of [
    ['new SnowFlake(state).nextId()', container()],
    ["new SnowFlake({ ...state, scope: 'process' }).nextId()", {}],
  ]) {
    const { code, message, holders } = await elsewhere(expression, env);
    assert.equal(code, 'ERR_SNOWFLAKE_IN_USE');
    assert.ok(message.startsWith(`workerId 3 of datacenterId 1 in file://${directory} is held: `));
    assert.match(message, new RegExp(`process ${process.pid} on ${hostname()}, started 20\\d\\d-`));
    assert.match(message, /End that process.*waitForSlot.*use another workerId/);
    const [{ pid, host, startedAt }] = holders;
    assert.deepEqual([pid, host], [process.pid, hostname()]);
    // Each of both may have been held up between two readings of a clock.
    const started = Date.now() - process.uptime() * 1000;
    assert.ok(Math.abs(new Date(startedAt) - started) < 30_000, startedAt);
  }
});

test('all instances and threads of a process share the slot, until the last one has closed', async () => {
  const maxWait = 10_000;
  const first = recorded({ maxWait });
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { parentPort, workerData } = require('node:worker_threads');
    const flake = new SnowFlake(workerData);
    parentPort.postMessage(flake.nextIds(5000));`;
  const workerData = { datacenterId: 1, workerId: 3, state: directory, ttl, maxWait };
  const threads = [runWorker(script, { workerData }), runWorker(script, { workerData })];
  const second = recorded({ maxWait });
  const ids = [...first.nextIds(5000), ...second.nextIds(5000)];
  for (const more of await Promise.all(threads)) ids.push(...more);
  assert.equal(countDuplicates(ids), 0);
  assert.equal(first.lease.owner, second.lease.owner);
  first.close();
  const attempt = () => elsewhere('new SnowFlake(state).nextIdString()', container());
  assert.equal((await attempt()).code, 'ERR_SNOWFLAKE_IN_USE');
  second.close();
  const later = 'new SnowFlake({ ...state, waitForSlot: 60_000 }).nextIdString()';
  assert.equal(typeof (await elsewhere(later, container())), 'string');
});

test('one directory is one store, however it is spelled', () => {
  const link = `${directory}-link`;
  symlinkSync(directory, link);
  try {
    const { lease } = recorded();
    for (const state of [
      link,
      `${directory}/../${directory.split('/').at(-1)}/`,
      pathToFileURL(directory),
      pathToFileURL(directory).href,
    ]) {
      assert.equal(recorded({ state }).lease.owner, lease.owner, String(state));
    }
  } finally {
    rmSync(link);
  }
});

test('the same node with and without a state, or with another, is a conflict', () => {
  const flake = recorded();
  const bare = { datacenterId: 1, workerId: 3 };
  refuses(() => new SnowFlake(bare), 'ERR_SNOWFLAKE_CONFLICT');
  refuses(() => recorded({ state: join(directory, 'other') }), 'ERR_SNOWFLAKE_IN_USE');
  refuses(() => recorded({ ttl: 20_000 }), 'ERR_SNOWFLAKE_CONFLICT');
  refuses(() => recorded({ maxAhead: 11 }), 'ERR_SNOWFLAKE_CONFLICT', /open with maxAhead 0: pass/);
  if (process.platform === 'win32') {
    const windows = /Windows replaces no page that a process maps/;
    refuses(() => recorded({ scope: 'host' }), 'ERR_SNOWFLAKE_CONFLICT', windows);
  }
  flake.close();
  const unrecorded = new SnowFlake(bare);
  open.push(unrecorded);
  const drawn = unrecorded.nextId();
  refuses(() => recorded(), 'ERR_SNOWFLAKE_CONFLICT');
  unrecorded.close();
  assert.ok(recorded().nextId() > drawn);
});

test('close() frees the slot at once', async () => {
  let quickest = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const flake = recorded();
    flake.nextId();
    // Its thread waits by then.
    await sleep(30);
    const begun = performance.now();
    flake.close();
    quickest = Math.min(quickest, performance.now() - begun);
    await isFree(3);
    assert.equal(flake.workerId, 3);
  }
  // What it waits at most, on a disk that hangs.
  assert.ok(quickest < 900, `${quickest} ms`);
});

test('lease reports the slot, and each renewal raises its ceiling', { skip: gate }, async () => {
  const before = Date.now();
  // So long that nothing is renewed meanwhile.
  const unrenewed = recorded();
  const { lease } = unrenewed;
  const after = Date.now();
  assert.match(lease.owner, /^[0-9a-f]{16}$/);
  const { store, slot, floor, expires, renewals, state } = lease;
  assert.equal(store, `file://${directory}`);
  assert.deepEqual(slot, { datacenterId: 1, workerId: 3 });
  assert.deepEqual([renewals, state], [0, 'held']);
  assert.ok(before + ttl <= expires && expires <= after + ttl);
  assert.ok(floor === null || floor <= after, String(floor));
  assert.ok(before + ttl <= lease.ceiling && lease.ceiling <= after + ttl);
  unrenewed.close();
  assert.equal(unrenewed.lease.state, 'released');
  const flake = recorded({ workerId: 4, ttl: 1000 });
  for (let seen = flake.lease, n = 0; n < 2; n++) {
    await until(() => flake.lease.renewals > seen.renewals);
    const next = flake.lease;
    assert.ok(next.ceiling > seen.ceiling, `${next.ceiling} after ${seen.ceiling}`);
    seen = next;
  }
  assert.equal(new SnowFlake({ datacenterId: 0, workerId: 0 }).lease, null);
});

test('SnowFlake.lease takes any free slot of the datacenter, and no workerId from anywhere', async () => {
  process.env.workerId = '9';
  try {
    const flakes = [await leased(), await leased(), await leased()];
    assert.deepEqual(
      flakes.map(({ workerId }) => workerId),
      [0, 1, 2],
    );
    for (const flake of flakes) {
      const { datacenterId, workerId } = flake.parse(flake.nextId());
      assert.deepEqual([datacenterId, workerId], [1, flake.workerId]);
      assert.deepEqual(flake.lease.slot, { datacenterId, workerId });
    }
    const other = await elsewhere(
      "(await SnowFlake.lease(url, { datacenterId: 1, scope: 'process' })).workerId",
    );
    assert.equal(other, 3);
    const another = await elsewhere('(await SnowFlake.lease(url, { datacenterId: 2 })).workerId');
    assert.equal(another, 0);
  } finally {
    delete process.env.workerId;
  }
});

test('when all slots are held, the error names the holders; or the call waits without blocking', async () => {
  const layout = { ...layouts.node, workerBits: 1 };
  const flakes = [await leased({ layout }), await leased({ layout })];
  const { message, holders } = await rejects(leased({ layout }), 'ERR_SNOWFLAKE_NO_SLOT');
  assert.match(
    message,
    /all slots of datacenterId 1.*workerId [01]: process \d+ on .*workerId [01]: process/,
  );
  assert.deepEqual(holders.map(({ workerId, pid }) => [workerId, pid]).sort(), [
    [0, process.pid],
    [1, process.pid],
  ]);
  // A call that blocks would let no timer run.
  let ticks = 0;
  const timer = setInterval(() => {
    if (++ticks === 20) flakes[1].close();
  }, 5);
  const third = await leased({ layout, waitForSlot: 120_000 });
  clearInterval(timer);
  assert.equal(third.workerId, 1);
  assert.ok(ticks >= 20, `${ticks} ticks of a timer meanwhile`);
});

test('the environment does the same, for static calls and for instances', {
  skip: gate,
}, async () => {
  const state = { datacenterId: '1', workerId: '3', SNOWDRIFT_STATE: directory };
  assert.equal(
    (await elsewhere('(SnowFlake.nextId(), SnowFlake.default.lease)', state)).store,
    `file://${directory}`,
  );
  assert.equal((await elsewhere('new SnowFlake().lease', state)).slot.workerId, 3);
  const url = pathToFileURL(directory).href;
  const lease = { datacenterId: '1', SNOWDRIFT_LEASE: url };
  assert.equal((await elsewhere('SnowFlake.default.lease', lease)).slot.datacenterId, 1);
  assert.equal(
    (await elsewhere('SnowFlake.configure({ datacenterId: 1, lease: url }).lease')).state,
    'held',
  );
  assert.equal((await elsewhere('SnowFlake.configure(state).lease')).state, 'held');
  const both = { ...state, ...lease };
  const { code, message } = await elsewhere('SnowFlake.nextId()', both);
  assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
  assert.match(message, /SNOWDRIFT_STATE and the environment variable SNOWDRIFT_LEASE/);
  assert.equal((await elsewhere('new SnowFlake(state).lease', lease)).slot.workerId, 3);
  const named = await elsewhere('new SnowFlake({ workerId: 4 })', lease);
  assert.match(
    named.message,
    /SNOWDRIFT_LEASE takes any free workerId of a directory: leave out workerId/,
  );
});

test('a damaged, truncated, foreign, newer or exchanged file is refused by its name, and left as it is', async () => {
  recorded().close();
  await isFree(3);
  const whole = readFileSync(slotFile());
  const changed = (at, value) => {
    const bytes = Buffer.from(whole);
    bytes[at] = value;
    return bytes;
  };
  const { at } = readRecord(slotFile());
  for (const [content, what] of [
    [changed(at + 60, whole[at + 60] ^ 1), /is damaged\./],
    [changed(8, 5), /was written by a newer snowdrift \(format 5; this one reads 4\)/],
    [changed(8, 3).subarray(0, 32_768), /by an older snowdrift \(format 3; this one reads 4\)/],
    [whole.subarray(0, 100), new RegExp(`is 100 bytes long and should be ${FILE_BYTES}`)],
    [Buffer.alloc(0), /is not a snowdrift slot file/],
    [Buffer.alloc(FILE_BYTES), /is not a snowdrift slot file/],
  ]) {
    writeFileSync(slotFile(), content);
    const { message } = refuses(() => recorded(), 'ERR_SNOWFLAKE_STORE');
    assert.ok(message.includes(slotFile()), message);
    assert.match(message, what);
    assert.deepEqual(readFileSync(slotFile()), Buffer.from(content));
  }
  writeFileSync(slotFile(4), whole);
  const { message } = refuses(() => recorded({ workerId: 4 }), 'ERR_SNOWFLAKE_STORE');
  assert.match(message, /is the file of datacenterId 1 and workerId 3 under another name/);
});

test('a directory is of one layout and epoch', async () => {
  recorded().close();
  const { message } = refuses(() => recorded({ epoch: 0, workerId: 4 }), 'ERR_SNOWFLAKE_STORE');
  assert.match(
    message,
    /41\/3\/5\/2\/12.*from 2020-01-31T16:00.*from 1970-01-01.*another directory for this one/,
  );
  refuses(() => recorded({ layout: 'twitter' }), 'ERR_SNOWFLAKE_STORE');
  await rejects(leased({ layout: 'twitter' }), 'ERR_SNOWFLAKE_STORE');
});

test('a lease skips a damaged slot, with a warning', { skip: gate }, async () => {
  for (const flake of [await leased(), await leased()]) flake.close();
  for (const workerId of [0, 1]) await isFree(workerId);
  truncateSync(slotFile(0), 10);
  const warned = once(process, 'warning');
  const all = [await leased()];
  const [{ name, code, message: warning }] = await warned;
  assert.deepEqual([name, code], ['SnowFlakeWarning', 'SNOWFLAKE_SLOT_UNUSABLE']);
  assert.match(warning, /worker-0\.slot is not a snowdrift slot file/);
  for (let n = 2; n < 32; n++) all.push(await leased());
  assert.equal(countDuplicates(all.map(({ workerId }) => workerId)), 0);
  const { message } = await rejects(leased(), 'ERR_SNOWFLAKE_NO_SLOT');
  assert.match(message, /are held or cannot be used \(.*worker-0\.slot is not a snowdrift/);
  const waiting = leased({ waitForSlot: 120_000 });
  all[4].close();
  assert.equal((await waiting).workerId, all[4].workerId);
});

const isRoot = process.getuid?.() === 0;
/** Runs a body with SnowFlake, state and refused(call) as the user nobody, where that is not us. */
async function asNobody(body) {
  chmodSync(directory, 0o755);
  const env = forAllUsers();
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const fs = require('node:fs');
    const directory = ${JSON.stringify(directory)};
    const refused = (call) => { try { return String(call()); } catch ({ code, message }) { return [code, message]; } };
    if (process.getuid() === 0) process.setuid(65534);
    console.log(JSON.stringify((() => {${body}})()));`;
  const { stdout, stderr } = await runScript(script, { env });
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

/** A directory of pages in which each user may make one of its own, as in /dev/shm. */
function forAllUsers() {
  if (process.platform !== 'linux') return {};
  const env = { SNOWDRIFT_SHARED: createDirectory() };
  chmodSync(env.SNOWDRIFT_SHARED, 0o1777);
  return env;
}

test('a directory or a file without write permission is an error that says so', {
  skip: gate ?? (process.platform === 'win32' && 'Windows has no such permissions'),
}, async () => {
  mkdirSync(join(directory, 'ids'), { mode: 0o555 });
  const [code, message] = await asNobody(
    "return refused(() => new SnowFlake({ datacenterId: 1, workerId: 3, state: directory + '/ids' }).nextId());",
  );
  assert.equal(code, 'ERR_SNOWFLAKE_STORE');
  assert.match(
    message,
    /cannot make .*ids\/namespace\.slot: Permission denied.*Let this process's user write there/,
  );

  recorded().close();
  chmodSync(slotFile(), 0o444);
  const [readOnly, why] = await asNobody(
    'return refused(() => new SnowFlake({ datacenterId: 1, workerId: 3, state: directory }).nextId());',
  );
  assert.equal(readOnly, 'ERR_SNOWFLAKE_STORE');
  assert.match(why, /cannot open .*\.slot: Permission denied.*Let this process's user write there/);
});

test('a file that another user owns does not keep a lease from the others', {
  skip: gate ?? (!isRoot && 'only root can be two users'),
}, async () => {
  // Readable or not, released or held by a living process.
  const layout = { ...layouts.node, workerBits: 2 };
  for (const flake of [await leased({ layout }), await leased({ layout })]) flake.close();
  chownSync(join(directory, 'namespace.slot'), 65534, 65534);
  chmodSync(slotFile(0), 0o600);
  chmodSync(slotFile(1), 0o644);
  chmodSync(directory, 0o777);
  const script = `
    const { SnowFlake, layouts } = require(${JSON.stringify(entry)});
    process.setuid(65534);
    const warnings = [];
    process.on('warning', ({ code, message }) => warnings.push([code, message]));
    const lease = (more) =>
      SnowFlake.lease(${JSON.stringify(pathToFileURL(directory).href)},
        { datacenterId: 1, scope: 'process', ttl: ${ttl}, layout: { ...layouts.node, workerBits: 2 }, ...more });
    (async () => {
      const flakes = [await lease(), await lease()];
      const workerIds = flakes.map((flake) => (flake.nextId(), flake.workerId));
      const refused = await lease().catch(({ code, message }) => [code, message]);
      await new Promise((resolve) => setImmediate(resolve));
      console.log(JSON.stringify({ workerIds, refused, warnings }));
    })();`;
  const { stdout, stderr } = await runScript(script, { env: forAllUsers() });
  assert.notEqual(stdout, '', stderr);
  const { workerIds, refused, warnings } = JSON.parse(stdout);
  assert.deepEqual(workerIds, [2, 3]);
  assert.equal(refused[0], 'ERR_SNOWFLAKE_NO_SLOT');
  assert.match(refused[1], /cannot be used \(cannot open .*worker-0\.slot: Permission denied/);
  assert.ok(warnings.every(([code]) => code === 'SNOWFLAKE_SLOT_UNUSABLE'));
  assert.equal(warnings.length, 4, 'both files, at each lease');
  assert.match(warnings[0][1], /cannot open .*worker-0\.slot: Permission denied.*Let this process/);
});

test('a user who may not create files takes an existing slot', {
  skip: gate ?? (!isRoot && 'only root can be two users'),
}, async () => {
  const layout = { ...layouts.node, workerBits: 2 };
  const flake = await leased({ layout });
  const url = pathToFileURL(directory).href;
  flake.close();
  await isFree(0);
  for (const name of readdirSync(directory)) chownSync(join(directory, name), 65534, 65534);
  const answer = await asNobody(
    `return SnowFlake.configure({ datacenterId: 1, lease: ${JSON.stringify(url)}, layout: ${JSON.stringify(layout)} }).workerId;`,
  );
  assert.equal(answer, 0);
});

/** How the line of slot 3 stands after a script has ended that has `state` and `SnowFlake`. */
async function shownAfter(body) {
  const { code, signal, stderr } = await runScript(`
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { Worker } = require('node:worker_threads');
    const entry = ${JSON.stringify(entry)};
    const state = { datacenterId: 1, workerId: 3, state: ${JSON.stringify(directory)}, ttl: ${ttl}, maxWait: 1000 };
    ${body}`);
  return { code, signal, stderr, shown: readLine(slotFile()).kind };
}

test('a process releases its slot, however it ends by itself', {
  skip: gate ?? (process.platform === 'win32' && 'there its lock alone says so'),
}, async () => {
  for (const [body, expected] of [
    ['new SnowFlake(state).nextId();', [0, null]],
    ['new SnowFlake(state).nextId(); process.exit(0);', [0, null]],
    ['new SnowFlake(state).nextId(); process.exitCode = 3; process.exit();', [3, null]],
    [
      'new SnowFlake(state).nextId(); setImmediate(() => { throw new Error("planned"); });',
      [1, null],
    ],
    // IDs are drawn until the end, by listeners of it and by other threads.
    [
      `const flake = new SnowFlake(state);
       process.on('exit', () => { for (let n = 0; n < 5000; n++) flake.nextId(); });
       process.exit(0);`,
      [0, null],
    ],
    [
      `const draw = "const { workerData: [entry, state] } = require('worker_threads');" +
         "const flake = new (require(entry).SnowFlake)(state);" +
         "require('worker_threads').parentPort.postMessage(0);" +
         "(function turn() { flake.nextId(); setImmediate(turn); })();";
       const worker = new Worker(draw, { eval: true, workerData: [entry, state] });
       worker.once('message', () => process.exit(0));`,
      [0, null],
    ],
    [
      `const draw = "const { workerData: [entry, state] } = require('worker_threads');" +
         "new (require(entry).SnowFlake)(state).nextId(); process.exit(0);";
       new Worker(draw, { eval: true, workerData: [entry, state] });`,
      [0, null],
    ],
  ]) {
    // It has half a second for the disk.
    let shown;
    for (let tries = 0; tries < 5 && shown !== 'free'; tries++) {
      const seen = await shownAfter(body);
      assert.deepEqual([seen.code, seen.signal], expected, `${body}\n${seen.stderr}`);
      if (expected[0] !== 1) assert.equal(seen.stderr, '');
      shown = seen.shown;
    }
    assert.equal(shown, 'free', body);
  }
  // What ends by a signal has died: nothing of it runs any more.
  for (const signal of ['SIGTERM', 'SIGKILL']) {
    const { shown } = await shownAfter(
      `new SnowFlake(state).nextId(); process.kill(process.pid, '${signal}'); setTimeout(() => {}, 1e6);`,
    );
    assert.equal(shown, 'held', signal);
  }
});

test('a killed process frees the slot at once, also for one with another maxAhead', async () => {
  const { signal, shown } = await shownAfter(
    "new SnowFlake(state).nextId(); process.kill(process.pid, 'SIGKILL'); setTimeout(() => {}, 1e6);",
  );
  assert.deepEqual([signal, shown], ['SIGKILL', 'held']);
  assert.equal(recorded({ maxAhead: 1000 }).lease.state, 'held');
});

test('options that exclude each other, and a file in the place of a directory, are refused before anything is touched', async () => {
  await rejects(SnowFlake.lease(), 'ERR_SNOWFLAKE_CONFIG');
  const bare = { datacenterId: 1, workerId: 3 };
  refuses(() => new SnowFlake({ ...bare, ttl: 5000 }), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => new SnowFlake({ ...bare, waitForSlot: 5 }), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => recorded({ lease: pathToFileURL(directory) }), 'ERR_SNOWFLAKE_CONFIG');
  refuses(() => recorded({ clock: Date.now }), 'ERR_SNOWFLAKE_CONFIG');
  for (const options of [{ workerId: 3 }, { state: directory }, { clock: Date.now }, 5]) {
    await rejects(SnowFlake.lease(pathToFileURL(directory), options), 'ERR_SNOWFLAKE_CONFIG');
  }
  await rejects(leased({ datacenterId: 8 }), 'ERR_SNOWFLAKE_CONFIG');
  const file = join(directory, 'file');
  writeFileSync(file, '');
  assert.match(
    refuses(() => recorded({ state: file }), 'ERR_SNOWFLAKE_STORE').message,
    /cannot read the directory .*file: Not a directory.*Give the path of a directory/,
  );
  assert.deepEqual(readdirSync(directory), ['file']);
});
