'use strict';
// A holder of a directory's slot that is stopped for longer than its hold lasts: another host may have the slot then.

const assert = require('node:assert/strict');

const { gate } = require('../support/amount.js');
const { countDuplicatesOf } = require('../support/drawer.js');
const { onMachine } = require('../support/machine.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { until } = require('../support/support.js');

onMachine(
  'a stopped holder leaves its slot to another host, says so, and goes on in it when that has ended',
  async ({ t, start, state }) => {
    const shared = createDirectory();
    t.after(() => removeDirectory(shared));
    const options = { datacenterId: 1, workerId: 3, state, ttl: 1000 };
    const first = start(options);
    await first.drawn(100);
    first.kill('SIGSTOP');
    const second = start({ ...options, waitForSlot: 600_000 }, { SNOWDRIFT_SHARED: shared });
    await second.drawn(100);
    first.kill('SIGCONT');
    await until(() => first.refused.has('ERR_SNOWFLAKE_LEASE_EXPIRED'));
    const { length } = first.ids();
    await second.stop();
    await first.drawn(length + 100);
    const { lease } = await first.stop();
    assert.equal(lease.slot.workerId, 3);
    assert.ok(first.warnings.some(({ code }) => code === 'SNOWFLAKE_SLOT_LOST'));
    assert.equal(countDuplicatesOf([first.ids(), second.ids()]), 0);
  },
  { skip: gate },
);
