'use strict';
// The addon.

const { loadAddon } = require('./addon.js');

function load(target, failures) {
  // Literal names, so that bundlers and tracers find the installed one. In a `try`, so that they ignore the
  // others.
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
    failures.set(target, failure);
  }
}

module.exports = loadAddon('snowdrift', __dirname, load);
