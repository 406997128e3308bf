'use strict';
// The environment of the calling thread. The only reader of process.env: `process.env[name]` also finds a property of
// a polluted Object.prototype, which nobody has set.

const { propertyOf } = require('../ids/properties.js');

/** The text of a variable; undefined if it is not set. A test may put an object in place of process.env that inherits from it. */
const environmentOf = (name) => propertyOf(process.env, name);

/** The names of all variables. */
const environmentNames = () => Object.keys(process.env);

/** For this process, and those that it starts. */
function setEnvironment(name, text) {
  process.env[name] = text;
}

module.exports = { environmentNames, environmentOf, setEnvironment };
