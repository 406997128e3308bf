'use strict';
// Mistakes of a first hour: what the error says to do.

const assert = require('node:assert/strict');
const { existsSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { test } = require('node:test');
const { pathToFileURL } = require('node:url');
const { Client } = require('pg');

const {
  CachedSnowFlake,
  SnowFlake,
  entry,
  refuses,
  rejects,
  runScript,
} = require('../support/support.js');
const id = require('../../js/id.js');
const { SnowFlakeModule } = require('../../js/nestjs.js');
const { withSnowFlake } = require('../../js/orm/prisma.js');
const { idSchema } = require('../../js/schema.js');
const { memory } = require('../../js/stores/memory.js');
const { postgres } = require('../../js/stores/postgres.js');

const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const node = { datacenterId: 1, workerId: 1 };
const { layouts } = id;
const { node: layout } = layouts;
const make = (options) => new SnowFlake({ ...node, ...options });
const cached = (options) => new CachedSnowFlake({ ...node, ...options });

test('a name in another case, form or number, or of another library, names the one that is meant', async () => {
  for (const [call, wrong, meant] of [
    [make, 'datacenterID', 'datacenterId'],
    [make, 'dataCenterId', 'datacenterId'],
    [make, 'worker_id', 'workerId'],
    [make, 'WORKER_ID', 'workerId'],
    [make, 'epoche', 'epoch'],
    [make, 'clockback', 'clockBack'],
    [make, 'states', 'state'],
    [make, 'Scope', 'scope'],
    [(options) => make({ layout: { ...layout, ...options } }), 'seqenceBits', 'sequenceBits'],
    [cached, 'scheduleInterval', 'scheduleIntervalMs'],
    [(options) => SnowFlake.lease(memory(), options), 'callTimeOut', 'callTimeout'],
    [SnowFlakeModule.forRoot, 'isglobal', 'isGlobal'],
    [withSnowFlake, 'model', 'models'],
    [(fields) => new SnowFlake(node).compose(fields), 'timeStamp', 'timestamp'],
  ]) {
    await assert.rejects(
      async () => call({ [wrong]: 1 }),
      ({ code, message }) => {
        assert.match(code, /^ERR_SNOWFLAKE_(CONFIG|ARGUMENT)$/);
        assert.match(
          message,
          new RegExp(` has no '${wrong}'\\. Did you mean ${meant}\\? It knows .*\\b${meant}\\b`),
        );
        return true;
      },
    );
  }
  assert.match(refuses(() => make({ elephants: 1 }), CONFIG).message, /'elephants'\. It knows/);
  assert.ok(refuses(() => make({ ['x'.repeat(1e6)]: 1 }), CONFIG).message.length < 300);
});

test('an epoch in seconds is refused with the ms', () => {
  for (const call of [
    () => make({ epoch: 1577836800 }),
    () => make({ layout: { ...layout, epoch: 1577836800 } }),
    () => id.parse('1', { ...layout, epoch: 1577836800 }),
    () => SnowFlake.parse('1', { ...layout, epoch: 1577836800 }),
  ]) {
    assert.equal(
      refuses(call, CONFIG).message,
      'epoch 1577836800 is 1970-01-19T06:17:16.800Z, since it is in ms: if it is 2020-01-01T00:00:00.000Z in seconds, write 1577836800000',
    );
  }
  const february = Date.UTC(1970, 1);
  refuses(() => make({ epoch: 1 }), CONFIG);
  refuses(() => make({ epoch: february - 1 }), CONFIG);
  for (const epoch of [0, february]) assert.equal(make({ epoch }).layout.epoch, epoch);
});

test('an epoch of now, of the future or before 1970 is refused where IDs are generated, and only there', async () => {
  const now = Date.now();
  const epochs = [now, new Date(now), now - 3_500_000, now + 60_000, -1, -86_400_000];
  const datacenterId = 0;
  const store = memory({ now: Date.now });
  const never = join(tmpdir(), `snowdrift-never-${process.pid}`);
  const open = ({ providers: [{ useValue }, { useFactory }] }) => useFactory(useValue);
  for (const epoch of epochs) {
    const own = { ...layout, epoch };
    const ways = {
      constructor: () => make({ epoch }),
      'a layout of its own': () => make({ layout: own }),
      'ticks of a second': () => make({ layout: { ...layouts.uid, epoch }, datacenterId: 0 }),
      configure: () => SnowFlake.configure({ datacenterId, workerId: 3, epoch }),
      cached: () => new CachedSnowFlake({ datacenterId, workerId: 3, epoch }),
      state: () => make({ epoch, state: never }),
      nestjs: () => open(SnowFlakeModule.forRoot({ datacenterId, workerId: 3, epoch })),
      lease: () => SnowFlake.lease(store, { datacenterId, epoch }),
      'a lease of a directory': () =>
        SnowFlake.lease(pathToFileURL(never).href, { datacenterId, layout: own }),
      'a cached lease': () => CachedSnowFlake.lease(store, { datacenterId, layout: own }),
    };
    for (const [way, call] of Object.entries(ways)) {
      const { message } = await rejects((async () => call())(), CONFIG);
      assert.match(message, /^epoch -?\d+ is .*constant, such as Date\.UTC\(2026, 0, 1\)/, way);
    }
    // By its own clock, nothing is repeated.
    assert.equal(make({ epoch, clock: () => now + 120_000 }).layout.epoch, Number(epoch));
    const plain = { ...layout, epoch: Number(epoch) };
    assert.equal(SnowFlake.parse(1n, own).timestamp, Number(epoch));
    assert.equal(id.parse('1', plain).timestamp, Number(epoch));
    assert.doesNotThrow(() => idSchema({ layout: plain }));
  }
  assert.equal(existsSync(never), false);
  assert.equal(make({ epoch: now - 3_700_000 }).layout.epoch, now - 3_700_000);
});

test('a day as an epoch, as UidGenerator’s epochStr is, is refused: it has no time zone', () => {
  assert.equal(
    refuses(() => make({ epoch: '2016-05-20' }), CONFIG).message,
    "epoch must be a valid Date or a number of Unix ms; it is '2016-05-20'",
  );
  assert.match(refuses(() => make({ epoch: `${'2'.repeat(1e6)}` }), CONFIG).message, /\.\.\./);
});

test('a number as text is refused, and a promise names the remedy', () => {
  const { message } = refuses(() => make({ workerId: '3' }), CONFIG);
  assert.match(message, /from 0 to 31; it is the string '3'$/);
  const used = refuses(() => SnowFlake.use(Promise.resolve()), 'ERR_SNOWFLAKE_ARGUMENT');
  assert.match(used.message, /it is \[Promise\]: await it first$/);
});

test('a worker thread without a default instance of its own says so', async () => {
  const script = `
    const { SnowFlake } = require(${JSON.stringify(entry)});
    const { Worker } = require('node:worker_threads');
    SnowFlake.configure({ datacenterId: 1, workerId: 1 });
    new Worker(\`
      const { SnowFlake } = require(${JSON.stringify(entry)});
      try { SnowFlake.nextId(); } catch ({ message }) { console.log(message); }\`, { eval: true });`;
  const own =
    /This is a worker thread, which has a default instance of its own: SnowFlake\.configure\(\), use\(\) and ready\(\) in another thread do not set it\./;
  const { stdout } = await runScript(script, { env: {} });
  assert.match(stdout, own);
  const server = { SNOWDRIFT_LEASE: 'postgres://127.0.0.1:1/x', datacenterId: '1' };
  const leasing = await runScript(script.replace(/SnowFlake\.configure.*/, ''), { env: server });
  assert.match(leasing.stdout, /await SnowFlake\.ready\(\) once before/);
  assert.match(leasing.stdout, own);
});

test('a schema of less than was written is refused', () => {
  for (const name of ['layout', 'since']) {
    const { message } = refuses(() => idSchema({ layout: 'node', [name]: undefined }), CONFIG);
    assert.equal(message, `${name} is undefined: give it a value, or leave it out to check less`);
  }
});

test('a single connection is refused: it never connects again', async () => {
  const { message } = refuses(() => postgres(new Client()), CONFIG);
  assert.match(message, /^postgres\(\) takes a Pool of pg, and sql\(\) other clients; this is /);
});

/**
 * What a call says in each of these environments, as an error or as a warning: one process has another copy of the package for
 * each.
 */
async function messagesIn(environments, { call = 'new SnowFlake()' } = {}) {
  const { stdout, stderr } = await runScript(
    `const environments = ${JSON.stringify(environments, (_, value) => value ?? null)};
    const messages = [];
    process.removeAllListeners('warning');
    process.on('warning', ({ code, message }) => messages.push(code + ' ' + message));
    const original = { ...process.env };
    (async () => {
      const all = [];
      for (const env of environments) {
        process.env = { ...original };
        for (const [name, text] of Object.entries(env)) {
          if (text === null) delete process.env[name];
          else process.env[name] = text;
        }
        for (const path of Object.keys(require.cache)) if (path.endsWith('.js')) delete require.cache[path];
        const { SnowFlake } = require(${JSON.stringify(entry)});
        try { ${call} } catch ({ code, message }) { messages.push(code + ' ' + message); }
        await new Promise(setImmediate);
        all.push(messages.splice(0).join('\\n'));
      }
      console.log(JSON.stringify(all));
    })();`,
  );
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

test('variables of the environment: names in another case, a long value, misspelt names', {
  skip: process.platform === 'win32' && 'its names have no case',
}, async () => {
  const cases = [
    [
      { WORKER_ID: '3', datacenterId: '1' },
      /workerId is not set, neither as an option nor in the environment \(a whole .* layout 'node' takes 0 to 31; the variable WORKER_ID is, but names are case-sensitive\)\. Set it before/,
    ],
    [
      { workerid: '3', DATACENTER_ID: '1' },
      /; the variable DATACENTER_ID is, but .*; the variable workerid is, but .*\. Set both before/,
    ],
    [
      { workerId: `${' '.repeat(100_000)}x`, datacenterId: '1' },
      /variable workerId is '.*; layout 'node' takes 0 to 31\. Correct it, or pass a number to the constructor/,
    ],
    [
      { SNOWDRIFT_LEASES: 'x' },
      /variable SNOWDRIFT_LEASES is not read: rename it to SNOWDRIFT_LEASE/,
    ],
    [
      { 'SNOWDRIFT-SHARED': 'x', workerId: '1', datacenterId: '1' },
      /SNOWDRIFT-SHARED is not read: rename it to SNOWDRIFT_SHARED/,
    ],
  ];
  const messages = await messagesIn(
    cases.map(([env]) => ({ SNOWDRIFT_SHARED: undefined, ...env })),
  );
  for (const [n, [, said]] of cases.entries()) assert.match(messages[n], said);
  const [bits] = await messagesIn([{ workerId: '32' }], {
    call: 'new SnowFlake({ datacenterId: 0, epoch: 0 })',
  });
  assert.match(bits, /; layout 41\/3\/5\/2\/12 takes 0 to 31\. Correct it/);
  // Kubernetes sets these for a service of that name.
  const service = { SNOWDRIFT_PORT: 'tcp://10.0.0.1:80', SNOWDRIFT_SERVICE_HOST: '10.0.0.1' };
  assert.deepEqual(await messagesIn([{ ...service, datacenterId: '1', workerId: '1' }]), ['']);
});

test("a variable that is only near is a warning, since it may be the user's own", async () => {
  const names = [
    ['SNOWDRIFT_STAGE', 'SNOWDRIFT_STATE'],
    ['SNOWDRIFT_RELEASE', 'SNOWDRIFT_LEASE'],
    ['SNOWDRIFT_SHARE', 'SNOWDRIFT_SHARED'],
    ['SNOWDRIFT_STAG\u001bE', 'SNOWDRIFT_STATE'],
  ];
  const messages = await messagesIn(
    names.map(([own]) => ({ SNOWDRIFT_SHARED: undefined, [own]: 'prod' })),
    {
      call: `for (const workerId of [1, 2])
        new SnowFlake({ datacenterId: 1, workerId, scope: 'process' });`,
    },
  );
  assert.deepEqual(
    messages,
    names.map(([own, near]) => {
      const shown = own.replace('\u001b', '\\u001b');
      return `SNOWFLAKE_VARIABLE The environment variable ${shown} is not read. Did you mean ${near}?`;
    }),
  );
});
