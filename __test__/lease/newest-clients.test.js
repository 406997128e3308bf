'use strict';
// The tests of stores, with the newest clients that package.json admits.

const { test } = require('node:test');

const { missingClients, replaceClients } = require('../support/installed.js');

const skip = missingClients('newest');
if (skip) {
  test('the newest clients', { skip }, () => {});
} else {
  replaceClients('newest');
  require('./settings.test.js');
  require('./stores.test.js');
  require('./redis-cluster.test.js');
}
