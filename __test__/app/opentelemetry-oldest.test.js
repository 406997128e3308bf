'use strict';
// The tests of snowdrift/opentelemetry with the oldest API that package.json admits.

const { test } = require('node:test');

const { missingClients, replaceClients } = require('../support/installed.js');

const skip = missingClients('frameworks-oldest');
if (skip) {
  test('the oldest API of OpenTelemetry', { skip }, () => {});
} else {
  replaceClients('frameworks-oldest');
  require('./opentelemetry.test.js');
}
