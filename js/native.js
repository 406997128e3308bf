'use strict';
// Loads the addon: the one built here, else the platform's package. Or says what is missing.

const { SnowFlakeError } = require('./errors.js');

const { platform, arch } = process;

/** The napi-rs names of what may run here. Of glibc and musl, only the right one is installed. */
const TARGETS =
  {
    linux: [`linux-${arch}-gnu`, `linux-${arch}-musl`],
    darwin: [`darwin-${arch}`],
    win32: [`win32-${arch}-msvc`],
  }[platform] ?? [];

function load() {
  const failures = [];
  for (const target of TARGETS) {
    for (const place of [`./snowdrift.${target}.node`, `snowdrift-${target}`]) {
      try {
        return require(place);
      } catch (failure) {
        failures.push(failure);
      }
    }
  }
  // One that is there and does not load says more than those that are not there.
  const cause = failures.find(({ code }) => code !== 'MODULE_NOT_FOUND') ?? failures[0];
  throw new SnowFlakeError(
    'ERR_SNOWFLAKE_ADDON',
    `snowdrift has no addon that loads on ${platform}-${arch}. In a checkout, run \`npm run build\`; in an application, install it on this platform, with optional dependencies`,
    { cause },
  );
}

module.exports = load();
