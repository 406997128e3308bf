'use strict';
// The environment of the calling thread. Only this module reads process.env: `process.env[name]` would also return a
// property of a polluted Object.prototype.

const { propertyOf } = require('../ids/properties.js');

/**
 * The value of a variable; undefined if it is not set. Finds inherited variables, too, since a test may replace
 * process.env by an object that inherits from it.
 * @type {(name: string) => string | undefined}
 */
const environmentOf = (name) => propertyOf(process.env, name);

/** The names of all variables. */
const environmentNames = () => Object.keys(process.env);

/**
 * Sets a variable for this process and its child processes.
 * @param {string} name
 * @param {string} text
 */
function setEnvironment(name, text) {
  process.env[name] = text;
}

module.exports = { environmentNames, environmentOf, setEnvironment };
