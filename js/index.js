'use strict';
// The exports of `snowdrift`.

const { CachedSnowFlake } = require('./cached.js');
const { SnowFlakeError } = require('./messages/errors.js');
const { layouts } = require('./ids/presets.js');
const { SnowFlake } = require('./snowflake.js');
// Loads the addon, or says why it cannot.
require('./runtime/native.js');

/**
 * The constructor of an error is private.
 * @typedef {typeof import('../index.js')} All
 * @typedef {Omit<All, 'SnowFlakeError'> & { SnowFlakeError: Pick<All['SnowFlakeError'], 'prototype'> }} Declared
 */

/** @satisfies {Declared} */
module.exports = { CachedSnowFlake, SnowFlake, SnowFlakeError, layouts };
