'use strict';
// The addon.

const { loadAddon } = require('./addon.js');

/**
 * Requires the addon of a target. Each `require` is in a `try`, so that bundlers and tracers skip missing files.
 * @param {string} target
 * @param {(failure: unknown) => void} fail
 * @returns {unknown}
 */
function load(target, fail) {
  // Built here, or packed with the package by `npm run package`. A release is packed without this.
  try {
    return require(`./snowdrift.${target}.node`);
  } catch (failure) {
    fail(failure);
  }
  // Literal names, so that bundlers and tracers find the installed package.
  try {
    switch (target) {
      case 'darwin-arm64':
        return require('@snowdrift/darwin-arm64');
      case 'darwin-x64':
        return require('@snowdrift/darwin-x64');
      case 'linux-arm-gnu':
        return require('@snowdrift/linux-arm-gnu');
      case 'linux-arm-musl':
        return require('@snowdrift/linux-arm-musl');
      case 'linux-arm64-gnu':
        return require('@snowdrift/linux-arm64-gnu');
      case 'linux-arm64-musl':
        return require('@snowdrift/linux-arm64-musl');
      case 'linux-x64-gnu':
        return require('@snowdrift/linux-x64-gnu');
      case 'linux-x64-musl':
        return require('@snowdrift/linux-x64-musl');
      case 'win32-arm64-msvc':
        return require('@snowdrift/win32-arm64-msvc');
      case 'win32-x64-msvc':
        return require('@snowdrift/win32-x64-msvc');
    }
  } catch (failure) {
    fail(failure);
  }
}

/** Undefined in a bundle that is an ES module. */
const directory = typeof __dirname === 'string' ? __dirname : undefined;

module.exports = /** @type {typeof import('./addon-types.js')} */ (
  loadAddon('snowdrift', directory, load)
);
