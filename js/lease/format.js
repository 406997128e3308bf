'use strict';
// The refusal that every store gives for records of another format.

const { SnowFlakeError } = require('../errors.js');

/** @param what of the store's records a reader can look up */
function formatConflict(name, what) {
  return new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} has records of another format: ${what}. Use another namespace, or delete the old records ttl + maxClockSkew after their last holder has ended`,
  );
}

module.exports = { formatConflict };
