'use strict';
// What docs/comparison.md says of other kinds of IDs still holds: each is tried again, by bench/peers.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { before, describe, test } = require('node:test');

const { storm } = require('../support/amount.js');
const { Machine, missing } = require('../support/machine.js');
const {
  duplicates,
  orderOfMany,
  restart,
  rollback,
  underClock,
} = require('../../bench/peers/behaviour.cjs');
const { KINDS, open, stored, textOf } = require('../../bench/peers/kinds.cjs');

const ROOT = join(__dirname, '../..');
const read = (path) => readFileSync(join(ROOT, path), 'utf8');
const results = JSON.parse(read('bench/results/peers.json'));

/** Those that the table compares, without the one that needs a database. */
const kinds = Object.keys(KINDS).filter((kind) => !KINDS[kind].isAsync && kind !== 'uuidv4');
/** Those of packages, whose clock a test can set. */
const peers = kinds.filter((kind) => !KINDS[kind].isNative);
const COUNT = 20_000;
const MS = 60;
/** Of the peers: in so many ms, so many IDs each. Ranges that begin at random then overlap, and one is slow. */
const STEPS = 8;
const EACH = 1000;
const OTHERS = { tsid: 3000, ulid: 100 };
/** What happens by chance is tried as often as this. */
const TRIES = 10;

let page;
before(async () => {
  page = await import('../../bench/peers/page.mjs');
});

/** An ID that a process of its own draws. */
function idOf(kind) {
  const script = `const { open, stored } = require('./bench/peers/kinds.cjs');
    open('${kind}').then((draw) => console.log(String(stored('${kind}', draw()))));`;
  return BigInt(execFileSync(process.execPath, ['-e', script], { cwd: ROOT, encoding: 'utf8' }));
}

test('the measured versions are those that are tested', () => {
  const [tested, measured] = ['package.json', 'bench/package.json'].map((path) =>
    JSON.parse(read(path)),
  );
  for (const kind of peers) {
    const name = KINDS[kind].package;
    assert.equal(tested.devDependencies[name], results.kinds[kind].version, name);
    assert.equal(measured.dependencies[name], results.kinds[kind].version, name);
  }
});

for (const kind of kinds) {
  const skip = KINDS[kind].missing;
  test(`${kind}: bits, characters, and how many numbers there are`, { skip }, async () => {
    const { bits, numbers, text } = results.kinds[kind];
    const number = numbers > 0 ? 3 : undefined;
    const id = stored(kind, await (await open(kind, number))());
    assert.equal(typeof id === 'bigint' ? 64 : 128, bits);
    if (bits === 64) assert.equal(BigInt.asIntN(64, id), id, 'it fits a BIGINT');
    // Decimal IDs grow by a digit in years.
    const length = textOf(kind, id).length;
    assert.ok(length === text || (length === text + 1 && textOf(kind, id) === String(id)));
    if (numbers === 0) return;
    const fieldsOf = async (given) => {
      const drawn = stored(kind, await (await open(kind, given))());
      return drawn & ((1n << 22n) - 1n);
    };
    const [low, high] = [await fieldsOf(0), await fieldsOf(numbers - 1)];
    assert.notEqual(low, high);
  });
}

describe('peers: two processes in the same ms, whose clock then goes back by 5 s', () => {
  const START = Date.now();
  const asShown = {};
  const same = {};
  const own = {};
  before(async () => {
    const requests = [];
    const add = (results, kind, numbers) => {
      const each = OTHERS[kind] ?? EACH;
      requests.push({ results, kind, numbers, start: START, steps: STEPS, each });
    };
    for (const kind of peers) {
      add(asShown, kind);
      if (KINDS[kind].numbers === 0) continue;
      add(same, kind, [3, 3]);
      add(own, kind, [1, 2]);
    }
    const answers = await underClock(requests.map(({ results: _, ...request }) => request));
    for (const [i, { results: into, kind }] of requests.entries()) into[kind] = answers[i];
  });

  for (const kind of peers.filter((name) => KINDS[name].numberIn === undefined)) {
    const isSaid = results.duplicates.processes[kind].duplicates > 0;
    test(`${kind}: as its README shows, they ${isSaid ? 'repeat IDs' : 'repeat none'}`, () => {
      assert.equal(asShown[kind].repeated > 0, isSaid, `${asShown[kind].repeated} repeats`);
    });
  }

  for (const kind of peers.filter((name) => KINDS[name].numbers > 0)) {
    test(`${kind}: with one number they repeat IDs, also one after the other`, () => {
      assert.ok(results.duplicates.same[kind].duplicates > 0);
      assert.equal(page.outcome(results.restart[kind]), 'repeats');
      assert.ok(same[kind].repeated > 0);
    });

    test(`${kind}: with a number each they repeat none`, () => {
      assert.equal(own[kind].repeated, 0);
    });
  }

  for (const kind of peers.filter((name) => KINDS[name].numberIn)) {
    test(`${kind}: by default the number is random`, () => {
      const drawn = new Set();
      for (let i = 0; i < TRIES && drawn.size < 2; i++) drawn.add(KINDS[kind].numberIn(idOf(kind)));
      assert.equal(drawn.size, 2);
    });
  }

  for (const kind of peers) {
    const said = results.rollback[kind];
    test(`${kind}: after the rollback, one process does what the page says`, () => {
      assert.equal(page.outcome(asShown[kind].rollback), page.outcome(said));
    });
  }
});

describe('snowdrift, as the page says', () => {
  test('two processes with one number repeat no ID', async () => {
    for (const { snowdrift } of Object.values(results.duplicates)) {
      assert.equal(snowdrift.duplicates, 0);
    }
    const numbers = [undefined, undefined];
    assert.equal((await duplicates('snowdrift', numbers, COUNT)).duplicates, 0);
  });

  test('they keep the order at some IDs a ms', { skip: storm }, async () => {
    assert.equal(results.loop.snowdrift.outOfOrder, 0);
    assert.equal(results.order.asShown.snowdrift, 0);
    assert.equal(await orderOfMany('snowdrift', [undefined, undefined], 200), 0);
  });

  test('after a rollback IDs go on below and repeat none, also after a restart', {
    skip: storm ?? missing(),
  }, async () => {
    const machine = new Machine();
    try {
      for (const [act, said] of [
        [rollback, results.rollback],
        [restart, results.restart],
      ]) {
        assert.equal(page.outcome(said.snowdrift), 'lower');
        const all = [];
        const isLower = () => all.length > 0 && page.outcome(all.at(-1)) === 'lower';
        // A process that is held up draws at another time than the one that it is to draw at.
        while (!isLower() && all.length < TRIES) {
          all.push(await act('snowdrift', machine, { ms: MS }));
          assert.equal(all.at(-1).repeated, 0, JSON.stringify(all));
        }
        assert.ok(isLower(), JSON.stringify(all));
      }
    } finally {
      machine.remove();
    }
  });
});

test('crypto.randomUUIDv7() has no order within a millisecond', {
  skip: KINDS.randomUUIDv7.missing,
}, async () => {
  const draw = await open('randomUUIDv7');
  const ids = Array.from({ length: COUNT }, draw);
  assert.ok(results.loop.randomUUIDv7.outOfOrder > 0.1);
  assert.ok(ids.some((id, i) => i > 0 && id < ids[i - 1]));
});

test('@sapphire/snowflake generates duplicates above 4,096 IDs in a millisecond', async () => {
  const { Snowflake } = require('@sapphire/snowflake');
  const generator = new Snowflake(0);
  const timestamp = Date.now();
  const ids = Array.from({ length: 4097 }, () => generator.generate({ timestamp }));
  assert.equal(new Set(ids).size, 4096);
});

test('nodejs-snowflake starts its epoch with the generator, flake-idgen in 1970', async () => {
  const timeOf = async (kind) => Number(stored(kind, (await open(kind))()) >> 22n);
  assert.ok((await timeOf('nodejs-snowflake')) < 60_000);
  assert.ok(Math.abs((await timeOf('flake-idgen')) - Date.now()) < 60_000);
  assert.equal(new Date(2 ** 41).toISOString().slice(0, 10), '2039-09-07');
});
