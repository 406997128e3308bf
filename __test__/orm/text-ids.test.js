'use strict';
// The warning that a column of text will stop to sort, a year ahead.

const assert = require('node:assert/strict');
const { join } = require('node:path');
const { test } = require('node:test');

const { gate } = require('../support/amount.js');
const { missing, underShiftedClock } = require('../support/machine.js');
const { runScript } = require('../support/support.js');

const DAY = 86_400_000;
/** When IDs of the default layout get 19 digits. */
const CHANGE = Date.parse('2027-08-22T03:22:59.101Z');

const path = (name) => JSON.stringify(join(__dirname, '../../js', name));

const PRELUDE = `
  const { withSnowFlake } = require(${path('orm/prisma.js')});
  const CHANGE = ${CHANGE}, DAY = ${DAY};
  const flakeAt = (now, options) =>
    new SnowFlake({ datacenterId: 1, workerId: 1, clock: () => now, ...options });
  /** Creates a row whose ID is a String or a BigInt. */
  function create(type, flake) {
    const inlineSchema = 'model Tag {\\n  id ' + type + ' @id\\n}';
    const $extends = ({ query }) => query.$allModels.$allOperations;
    const options = type === 'String' ? { models: ['Tag'], flake } : { flake };
    const run = withSnowFlake(options)({ _engineConfig: { inlineSchema }, $extends });
    return run({ model: 'Tag', operation: 'create', args: { data: {} }, query: (args) => args });
  }`;

/** Runs the body of an async function in a process of its own; returns the warnings there. */
async function warningsOf(body) {
  const { stdout, stderr, code } = await runScript(
    `const { SnowFlake } = require(${path('index.js')});
    const warnings = [];
    process.removeAllListeners('warning');
    process.on('warning', ({ name, code, message }) => warnings.push({ name, code, message }));
    ${PRELUDE}
    (async () => {
      ${body}
      await new Promise(setImmediate);
      console.log(JSON.stringify(warnings));
    })();`,
  );
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('a String @id warns once in the year before its decimal digits change', async () => {
  const warnings = await warningsOf(`
    create('String', flakeAt(CHANGE - 364 * DAY));
    create('String', flakeAt(CHANGE - 1));`);
  assert.deepEqual(
    warnings.map(({ name, code }) => [name, code]),
    [['SnowFlakeWarning', 'SNOWFLAKE_TEXT_IDS']],
  );
  assert.match(
    warnings[0].message,
    /from 18 to 19 digits at 2027-08-22T03:22:59\.101Z, in 364 days/,
  );
});

test('earlier, later, and in a BIGINT there is no warning', async () => {
  const warnings = await warningsOf(`
    create('String', flakeAt(CHANGE - 366 * DAY));
    create('String', flakeAt(CHANGE + 1));
    create('BigInt', flakeAt(CHANGE - DAY));`);
  assert.deepEqual(warnings, []);
});

test("an epoch of the application's own has dates of its own", async () => {
  const [{ message }] = await warningsOf(`
    const epoch = Date.UTC(2026, 0, 1);
    create('String', flakeAt(epoch + 200 * DAY, { epoch }));`);
  assert.match(message, /from 17 to 18 digits at 2026-10-03T22:44:17/);
});

test('TypeORM warns if a column has IDs as text, as with some drivers of SQLite, and not if they are integers', async () => {
  const create = (type) => `
    const { DataSource, Column, Entity } = require('typeorm');
    const { PrimarySnowFlakeColumn } = require(${path('orm/typeorm.js')});
    SnowFlake.use(flakeAt(CHANGE - DAY));
    class Tag {}
    PrimarySnowFlakeColumn()(Tag.prototype, 'id');
    Column('varchar')(Tag.prototype, 'name');
    Entity('tag')(Tag);
    const source = await new DataSource({ type: 'sqljs', entities: [Tag] }).initialize();
    source.getMetadata(Tag).primaryColumns[0].type = '${type}';
    await source.synchronize();
    for (const name of ['a', 'b']) await source.getRepository(Tag).save({ name });`;
  const [warning, ...more] = await warningsOf(create('varchar'));
  assert.deepEqual([warning.code, more], ['SNOWFLAKE_TEXT_IDS', []]);
  assert.deepEqual(await warningsOf(create('bigint')), []);
});

test('under the real clock: the default instance, and functions of a known layout only', {
  skip: gate ?? missing(),
}, async () => {
  const drawnBy = (flake) =>
    underShiftedClock(`${PRELUDE}
      shift(CHANGE - DAY - Date.now());
      Object.assign(process.env, { datacenterId: 1, workerId: 1 });
      const { nextId, nextIdString } = new SnowFlake({ layout: '${flake}', datacenterId: 1, workerId: 2 });
      create('String', { nextId, nextIdString });
      await turn();
      const unknown = warnings.length;
      create('String', SnowFlake);
      await turn();
      return [unknown, warnings.length];`);
  // The look-alike has no parse(), and IDs of Discord's layout would give another date.
  assert.deepEqual(await drawnBy('discord'), [0, 1]);
  assert.deepEqual(await drawnBy('node'), [1, 1]);
});
