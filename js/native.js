'use strict';
// Loads the addon, or says in one line what is missing.

const { SnowFlakeError } = require('./errors.js');

function load() {
  try {
    return require('./addon.js');
  } catch (cause) {
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_ADDON',
      `snowdrift has no addon for ${process.platform}-${process.arch} here. In a checkout, run \`npm run build\`; in an application, reinstall it on this platform, with optional dependencies.`,
      { cause },
    );
  }
}

module.exports = load();
