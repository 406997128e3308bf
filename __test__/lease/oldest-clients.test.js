'use strict';
// The tests of stores and of SQL databases, with the oldest clients that package.json admits.

const { test } = require('node:test');

const { missingClients, replaceClients } = require('../support/installed.js');

const skip = missingClients('oldest');
if (skip) {
  test('the oldest clients', { skip }, () => {});
} else {
  replaceClients('oldest');
  require('./settings.test.js');
  require('./stores.test.js');
  require('./sql.test.js');
}
