'use strict';
// A process that changes its user after it has opened a node: it goes on in the new user's pages, which its children
// use, and issues nothing that they issue.

const assert = require('node:assert/strict');
const { chmodSync } = require('node:fs');
const { basename, dirname } = require('node:path');
const { test } = require('node:test');

const { gate } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { as, noOtherUser } = require('../support/other-users.js');
const { createDirectory } = require('../support/own-directory.js');
const { Peer, drawAll } = require('../support/peer.js');
const { layouts } = require('../support/support.js');

const onlyUser = noOtherUser();
const NOBODY = 65534;

function scene(name, body, skip = onlyUser) {
  test(name, { skip, timeout: 600_000 }, async (t) => {
    const shared = createDirectory();
    chmodSync(shared, 0o1777);
    const peers = [];
    t.after(() => Promise.all(peers.map((peer) => peer.end())));
    const peer = (by) => {
      const one = new Peer({ by, env: { SNOWDRIFT_SHARED: shared } });
      peers.push(one);
      return one;
    };
    await body({ peer });
  });
}

/** A scene that is left to the gate. */
const rare = (name, body) => scene(name, body, gate ?? onlyUser);

const ROOT = ['env'];
const become = (peer, how, user) => peer.run((_, call, id) => process[call](id), how, user);
const statsOf = (peer) => peer.run(({ flake }) => flake.stats());
const userOf = ({ page }) => Number(basename(dirname(page)).replace('snowdrift-', ''));

for (const how of ['setuid', 'seteuid']) {
  (how === 'setuid' ? scene : rare)(
    `after ${how}() a process and its children issue no ID twice`,
    async ({ peer }) => {
      const parent = peer(ROOT);
      assert.equal(userOf(await parent.open()), 0);
      const before = await parent.draw(20);
      await become(parent, how, NOBODY);
      const child = peer(as(NOBODY));
      const { page } = await child.open();
      const after = await drawAll([parent, child], 50);
      assert.equal(countDuplicatesOf([before.ids, ...after]), 0);
      const stats = await statsOf(parent);
      assert.equal(userOf(stats), NOBODY);
      assert.equal(stats.page, page);
    },
  );
}

rare('what it opens afterwards draws from the new page, too', async ({ peer }) => {
  const parent = peer(ROOT);
  await parent.open();
  await become(parent, 'setuid', NOBODY);
  const { page } = await peer(as(NOBODY)).open();
  const pages = await parent.run(async ({ SnowFlake, flake }) => {
    const other = new SnowFlake();
    await other.nextIdAsync();
    await flake.nextIdAsync();
    return [other.stats().page, flake.stats().page];
  });
  assert.deepEqual(pages, [page, page]);
});

rare('a process that returns to its user issues no ID twice', async ({ peer }) => {
  const parent = peer(ROOT);
  await parent.open();
  const drawn = [];
  for (const user of [NOBODY, 0, NOBODY, 0]) {
    await become(parent, 'seteuid', user);
    drawn.push(...(await drawAll([parent], 20)));
    assert.equal(userOf(await statsOf(parent)), user);
  }
  assert.equal(countDuplicatesOf(drawn), 0);
});

scene('while others use the old page, it is refused', async ({ peer }) => {
  const [primary, one, two] = [peer(ROOT), peer(ROOT), peer(ROOT)];
  for (const process of [primary, one, two]) await process.open();
  const ids = [];
  const drawing = async (process) => {
    const drawn = await process.draw(20);
    ids.push(drawn.ids);
    return Object.keys(drawn.refusals);
  };
  const message = () => one.run(({ flake }) => flake.nextId()).catch((error) => error.message);
  await become(one, 'setuid', NOBODY);
  assert.deepEqual(await drawing(one), ['ERR_SNOWFLAKE_STORE']);
  assert.match(
    await message(),
    /has changed its user from 0 to 65534, and process \d+ still uses .*snowdrift-0/,
  );
  assert.deepEqual(await drawing(two), []);
  await become(two, 'seteuid', NOBODY);
  assert.deepEqual(await drawing(two), ['ERR_SNOWFLAKE_STORE']);
  assert.deepEqual(await drawing(primary), []);
  // Back again, it shares the page with the primary.
  await become(two, 'seteuid', 0);
  assert.deepEqual(await drawing(two), []);
  assert.deepEqual(await drawing(one), ['ERR_SNOWFLAKE_STORE']);
  await become(two, 'setuid', NOBODY);
  await drawing(two);
  await primary.end();
  // The last one has ended: both continue, in one page.
  assert.deepEqual([await drawing(one), await drawing(two)], [[], []]);
  assert.equal((await statsOf(one)).page, (await statsOf(two)).page);
  assert.equal(countDuplicatesOf(ids), 0);
});

rare('in the tick in which it changes, its children issue nothing', async ({ peer }) => {
  const layout = { ...layouts.node, tickMs: 86_400_000 };
  const parent = peer(ROOT);
  await parent.open({ layout });
  const ids = await parent.run(({ flake }) => Array.from(flake.nextIds(10), String));
  assert.equal(new Set(ids).size, 10);
  await become(parent, 'setuid', NOBODY);
  const child = peer(as(NOBODY));
  await child.open({ layout, maxWait: 0 });
  for (const one of [child, parent]) {
    await assert.rejects(
      one.run(({ flake }) => flake.nextId()),
      { code: 'ERR_SNOWFLAKE_WINDOW' },
    );
  }
});

for (const maxAhead of [0, 1000]) {
  const name = `with a record, nobody else issues its IDs: it goes on as before, maxAhead ${maxAhead}`;
  rare(name, async ({ peer }) => {
    const state = createDirectory();
    chmodSync(state, 0o777);
    const options = { state: `${state}/ids`, maxAhead };
    const parent = peer(ROOT);
    const { page } = await parent.open({ ...options, maxWait: 60_000 });
    const take = ({ flake }) => Array.from(flake.nextIds(100_000), String);
    const before = await parent.run(take);
    await become(parent, 'setuid', NOBODY);
    const after = await parent.run(take);
    assert.equal(new Set([...before, ...after]).size, 200_000);
    assert.equal((await statsOf(parent)).page, page);
    const { code } = await peer(as(NOBODY)).refusal(options);
    assert.equal(code, 'ERR_SNOWFLAKE_STORE');
  });
}
