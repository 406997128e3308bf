'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { layouts } = require('../support/support.js');
const { layoutKey, parseLayoutKey } = require('../../js/ids/layout-key.js');

test('the key of a layout parses to the same layout', () => {
  assert.equal(layoutKey(layouts.node), '41/3/5/2/12@1+1580486400000');
  const before1970 = { ...layouts.uid, epoch: -86_400_000 };
  assert.equal(layoutKey(before1970), '28/0/22/0/13@1000-86400000');
  for (const layout of [...Object.values(layouts), before1970, { ...layouts.node, epoch: 0 }]) {
    assert.deepEqual(parseLayoutKey(layoutKey(layout)), { ...layout });
  }
});

test('text that is not exactly a key is refused', () => {
  for (const key of [
    ...[undefined, null, 41, {}, '', '41/3/5/2/12', '41/3/5/2/12@1', '41/3/5/2@1+0'],
    ...['41/3/5/2/12@1+01', '041/3/5/2/12@1+1', '41/3/5/2/12@1-0', ' 41/3/5/2/12@1+1'],
    ...['41/3/5/2/12@1+1\n', '41/3/5/2/12@1+90071992547409931', '41/3/5/2/12@1+1e3'],
    '41/3/5/2/12 bits in ticks of 1 ms from 1580486400000',
  ]) {
    assert.equal(parseLayoutKey(key), undefined, String(key));
  }
});
