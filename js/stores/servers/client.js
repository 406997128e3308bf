'use strict';
// What the servers share: loading a client, and keeping its connection.

const { needsPackage } = require('../../messages/errors.js');

/** Idle time before the first TCP keep-alive probe, ms. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Loads a client's package.
 * @param {string} name
 * @param {URL} url
 * @param {() => unknown} load requires it by its literal name, as js/runtime/native.js does. jest's VM has no `import()`
 */
function loadClient(name, { protocol }, load) {
  try {
    return load();
  } catch (cause) {
    throw needsPackage(`a lease from ${protocol}//`, name, cause);
  }
}

module.exports = { KEEP_ALIVE_MS, loadClient };
