'use strict';
// What every engine says of a namespace that is for other IDs.

const { SnowFlakeError } = require('../errors.js');

function layoutConflict(name, found, wanted) {
  return new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} is for IDs of another layout or epoch: ${found}, and not ${wanted}. Use another namespace for each layout and epoch`,
  );
}

module.exports = { layoutConflict };
