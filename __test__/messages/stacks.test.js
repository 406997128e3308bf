'use strict';
// The stack of an error begins where the mistake is, not where snowdrift makes the error.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { mkdtempSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join } = require('node:path');
const { after, test } = require('node:test');
const { spawnSync } = require('node:child_process');

const { removeDirectory } = require('../support/own-directory.js');
const { CachedSnowFlake, SnowFlake, entry, standing } = require('../support/support.js');
const id = require('../../js/id.js');
const { SnowFlakeModule } = require('../../js/nestjs.js');
const { publicIds } = require('../../js/public.js');
const { idSchema } = require('../../js/schema.js');

const node = { datacenterId: 1, workerId: 27 };
const flake = new SnowFlake(node);
const spent = new SnowFlake({ ...node, clock: standing(Date.UTC(2026, 5)), maxWait: 0 });
spent.nextIds(4096);
const closed = new SnowFlake({ ...node, workerId: 28 });
closed.close();
const key = randomBytes(32).toString('hex');
const kind = 'order';

/** The files of a stack, the innermost call first. */
function filesOf({ stack }) {
  return [...stack.matchAll(/^ +at (?:.*[( ])?(.*?):\d+:\d+\)?$/gm)].map(([, file]) =>
    basename(file),
  );
}

function thrownBy(call) {
  try {
    call();
  } catch (error) {
    assert.equal(error.name, 'SnowFlakeError', error.stack);
    return error;
  }
  return assert.fail('it threw nothing');
}

const HERE = basename(__filename);
/** Functions that make errors. */
const MAKERS =
  /^ +at (?:new |async )?(?:\w+\.)?(?:create|SnowFlakeError|\w*[eE]rror|errorOf|refuse|unwrap|misused|partsOf|notAnObject|invalid\w+|#\w+|fromCaller|inCall) /m;

test('constructors and static calls: the first line is that of the caller', () => {
  for (const call of [
    () => new SnowFlake(),
    () => new SnowFlake({ none: 1 }),
    () => new SnowFlake({ ...node, state: '/proc/none/ids' }),
    () => new CachedSnowFlake({ ...node, maxAge: -1 }),
    () =>
      new (class extends SnowFlake {
        nextId() {}
      })(node),
    () => SnowFlake.default,
    () => SnowFlake.nextId(),
    () => SnowFlake.nextIds(1),
    () => SnowFlake.configure({ ...node, epoch: 1 }),
  ]) {
    assert.equal(filesOf(thrownBy(call))[0], HERE, String(call));
  }
});

test('everywhere else: the first line is in no function that makes errors', () => {
  const { decode } = publicIds({ kind, key });
  for (const call of [
    ...[() => spent.nextId(), () => spent.nextIdString(), () => spent.nextIdBase32()],
    ...[() => spent.nextIds(2), () => spent.nextIds(100), () => spent.nextIdStrings(2)],
    () => spent.nextIds(new BigUint64Array(2)),
    ...[() => closed.nextId(), () => closed.nextIds(100)],
    ...[() => flake.parse('x'), () => flake.parse(2n ** 63n), () => SnowFlake.parse('x')],
    ...[() => SnowFlake.parse('1', 5), () => flake.compose({ workerId: 99 })],
    ...[() => flake.nextIds(-1), () => flake.nextIdNumber(), () => flake.floorId('x')],
    ...[() => flake.floorId(0), () => new Proxy(flake, {}).stats(), () => SnowFlake.use(5)],
    () => flake.toUidString('1', { timeZone: 'x' }),
    ...[() => id.parse('x'), () => id.parse('1', 5), () => id.fromBase32('x')],
    ...[() => id.floorId(0), () => id.compose({ none: 1 }), () => id.isId('1', 'none')],
    ...[() => publicIds({ kind, key: 'x' }), () => publicIds({ none: 1 }), () => decode('x')],
    ...[() => idSchema({ as: 'x' }), () => idSchema().parse('x')],
    () => SnowFlakeModule.forRoot({ none: 1 }),
  ]) {
    const { stack } = thrownBy(call);
    const [, first] = stack.split(/\n(?= +at )/);
    assert.doesNotMatch(first, MAKERS, String(call));
    assert.ok(stack.includes(HERE), 'the caller is in the stack');
  }
});

test('rejections have a first line that makes no error, too', async () => {
  for (const call of [
    () => SnowFlake.lease('postgres://127.0.0.1:1/x', { datacenterId: 1, callTimeout: 2000 }),
    () => SnowFlake.lease('x'),
    () => SnowFlake.lease('file:///nowhere/ids', {}),
    () => SnowFlake.ready(5),
  ]) {
    const { stack } = await call().then(assert.fail, (error) => error);
    const [, first] = stack.split(/\n(?= +at )/);
    assert.ok(first !== undefined, stack);
    assert.doesNotMatch(first, MAKERS, String(call));
  }
});

test('where nothing catches the error, Node shows the line of the mistake first', () => {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-stacks-'));
  after(() => removeDirectory(directory));
  const file = join(directory, 'app.js');
  for (const line of ["new SnowFlake({ workerId: '3' })", 'SnowFlake.nextIdString()']) {
    writeFileSync(file, `const { SnowFlake } = require(${JSON.stringify(entry)});\n\n${line};\n`);
    const { stderr } = spawnSync(process.execPath, [file], {
      encoding: 'utf8',
      // Of Windows.
      env: { SystemRoot: process.env.SystemRoot },
    });
    assert.match(stderr, /^SnowFlakeError: .*\n +at .*app\.js:3:\d+\)?$/m);
    // The statement that throws.
    assert.doesNotMatch(stderr.split('\n')[0], /js[/\\](ids[/\\])?errors?\.js/);
  }
});
