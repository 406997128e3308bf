'use strict';
// The exports of `snowdrift`.

const { CachedSnowFlake } = require('./cached.js');
const { SnowFlakeError } = require('./messages/errors.js');
const { layouts } = require('./ids/layouts.js');
const { SnowFlake } = require('./snowflake.js');

module.exports = { CachedSnowFlake, SnowFlake, SnowFlakeError, layouts };
