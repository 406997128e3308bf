'use strict';
// Where the addon of `snowdrift/lease/zookeeper` is: as snowdrift's js/runtime/native.js, whose js/runtime/addon.js
// loads both.

exports.directory = typeof __dirname === 'string' ? __dirname : undefined;

/**
 * @param {string} target
 * @param {(failure: unknown) => void} fail takes why there is none
 * @returns {unknown} the addon of the target, if there is one
 */
exports.load = (target, fail) => {
  try {
    return require(`./snowdrift-zookeeper.${target}.node`);
  } catch (failure) {
    fail(failure);
  }
  try {
    switch (target) {
      case 'darwin-arm64':
        return require('@snowdrift/zookeeper-darwin-arm64');
      case 'darwin-x64':
        return require('@snowdrift/zookeeper-darwin-x64');
      case 'linux-arm-gnu':
        return require('@snowdrift/zookeeper-linux-arm-gnu');
      case 'linux-arm-musl':
        return require('@snowdrift/zookeeper-linux-arm-musl');
      case 'linux-arm64-gnu':
        return require('@snowdrift/zookeeper-linux-arm64-gnu');
      case 'linux-arm64-musl':
        return require('@snowdrift/zookeeper-linux-arm64-musl');
      case 'linux-x64-gnu':
        return require('@snowdrift/zookeeper-linux-x64-gnu');
      case 'linux-x64-musl':
        return require('@snowdrift/zookeeper-linux-x64-musl');
      case 'win32-arm64-msvc':
        return require('@snowdrift/zookeeper-win32-arm64-msvc');
      case 'win32-x64-msvc':
        return require('@snowdrift/zookeeper-win32-x64-msvc');
    }
  } catch (failure) {
    fail(failure);
  }
};
