'use strict';
// The addon.

const { loadAddon } = require('./addon.js');

/** Each in a `try`, so that bundlers and tracers pass over what is not there. */
function load(target, fail) {
  // Built here, or packed with the package by `npm pack`.
  try {
    return require(`./snowdrift.${target}.node`);
  } catch (failure) {
    fail(failure);
  }
  // Literal names, by which they find the installed one.
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

/** In a bundle that is a module there is none. */
const directory = typeof __dirname === 'string' ? __dirname : undefined;

module.exports = loadAddon('snowdrift', directory, load);
