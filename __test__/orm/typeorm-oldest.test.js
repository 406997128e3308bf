'use strict';
// All tests of snowdrift/typeorm, with the oldest version of TypeORM that package.json admits.

const { test } = require('node:test');

const { missingClients, replaceClients } = require('../support/installed.js');

const skip = missingClients('oldest');
if (skip) {
  test('the oldest TypeORM', { skip }, () => {});
} else {
  replaceClients('oldest');
  require('./typeorm.test.js');
  require('./typeorm-foreign.test.js');
  require('./typeorm-ids.test.js');
  require('./typeorm-migration.test.js');
  require('./typeorm-sort.test.js');
}
