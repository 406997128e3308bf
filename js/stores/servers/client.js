'use strict';
// What the servers share: loading a client, and keeping its connection.

const { needsPackage } = require('../../messages/errors.js');

/** Idle time before the first TCP keep-alive probe, ms. */
const KEEP_ALIVE_MS = 10_000;

/**
 * The error for a client's package that cannot be loaded. Each is required by its literal name in a `try`, as in js/runtime/native.js: a
 * bundler then does without one that is not installed. jest's VM has no `import()`.
 * @param {string} name
 * @param {URL} url
 * @param {unknown} cause
 */
const lacksClient = (name, { protocol }, cause) =>
  needsPackage(`a lease from ${protocol}//`, name, cause);

module.exports = { KEEP_ALIVE_MS, lacksClient };
