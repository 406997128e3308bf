'use strict';
// The page of a leased slot, as js/lease/slot.js uses it: what one owner was confirmed is not the next one's.

const assert = require('node:assert/strict');
const { test } = require('node:test');

require('../support/own-directory.js');
const native = require('../../js/native.js');
const { layouts } = require('../support/support.js');

const linux = process.platform === 'linux' ? false : 'tried on Linux';
const NAMESPACE = 'a'.repeat(32);

const request = (workerId) => ({
  ...{ layout: { ...layouts.node, tickMs: 1000 }, datacenterId: 1, workerId, ownClock: false },
  ...{ clockBack: 'counter', maxWait: 10, maxAhead: 0, sequenceStart: 'zero', scope: 'host' },
  shared: process.env.SNOWDRIFT_SHARED,
});

const join = { namespace: NAMESPACE, except: [], inThread: false };

const grant = (owner, ceiling) => ({
  ...{ namespace: NAMESPACE, owner: owner.repeat(32), floor: -1, ceiling },
  ...{ now: 1, ttl: 1000, inThread: false },
});

test('a confirmation that comes late is not taken for one of the next owner', {
  skip: linux,
}, () => {
  const channel = native.open({ ...request(1), grant: grant('b', 100) });
  channel.endPage('taken');
  assert.equal(channel.leasing().loss, 'taken');
  const { hasMoved, fault } = channel.moveTo({ ...request(2), grant: grant('c', 200) });
  assert.deepEqual([hasMoved, fault], [true, undefined]);
  channel.confirm('b'.repeat(32), 900, 2, undefined, 1000);
  const { owner, ceiling, renewals } = channel.leasing();
  assert.deepEqual([owner, ceiling, renewals], ['c'.repeat(32), 200, 0]);
  channel.confirm('c'.repeat(32), 300, 2, undefined, 1000);
  assert.deepEqual([channel.leasing().ceiling, channel.leasing().renewals], [300, 1]);
  channel.confirm('c'.repeat(32), 250, 3, undefined, 1000);
  assert.equal(channel.leasing().ceiling, 300, 'a ceiling only rises');
  channel.leave();
});

test('a page that has ended stays ended, whatever is confirmed', { skip: linux }, () => {
  const channel = native.open({ ...request(3), grant: grant('d', 100) });
  const other = native.open({ ...request(3), join });
  assert.equal(other.workerId, 3);
  assert.equal(channel.endPage('missing'), 0, 'a new page counts the first tick as used');
  channel.confirm('d'.repeat(32), 900, 2, undefined, 1000);
  assert.equal(channel.tryRefill(channel.memory), 0);
  assert.equal(other.leasing().loss, 'missing');
  assert.equal(other.endPage('released'), null);
  assert.equal(native.open({ ...request(3), join }), undefined);
  for (const one of [channel, other]) assert.equal(one.leave(), null);
});
