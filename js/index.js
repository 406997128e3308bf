'use strict';
// What `require('snowdrift')` and `import ... from 'snowdrift'` give.

const { CachedSnowFlake } = require('./cached.js');
const { SnowFlakeError } = require('./messages/errors.js');
const { layouts } = require('./ids/layouts.js');
const { SnowFlake } = require('./snowflake.js');

module.exports = { CachedSnowFlake, SnowFlake, SnowFlakeError, layouts };
