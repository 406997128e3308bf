'use strict';
// What `require('snowdrift')` and `import ... from 'snowdrift'` give.

const { SnowFlakeError } = require('./errors.js');
const { layouts } = require('./options.js');
const { SnowFlake } = require('./snowflake.js');

module.exports = { SnowFlake, SnowFlakeError, layouts };
