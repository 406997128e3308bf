'use strict';
// The contract of a register, as tests for node:test.

const { describe, test } = require('node:test');

const { NEEDS, TITLES, runCheck } = require('./contract-checks.js');
const { NONE } = require('../ids/properties.js');

/**
 * @import { ContractOptions } from './contract.d.ts'
 * @import { Open } from './contract-checks.js'
 */

/**
 * @param {string} name
 * @param {Open} open
 * @param {ContractOptions} [options]
 */
function registerContract(name, open, options = NONE) {
  describe(name, { concurrency: options.concurrency ?? 4 }, () => {
    for (const title of TITLES) {
      const need = NEEDS[title];
      const skip = need !== undefined && options[need] === undefined && `without ${need}`;
      test(title, { skip }, () => runCheck(title, open, options));
    }
  });
}

// A shorthand, so that `import` finds the name.
/** @satisfies {typeof import('./contract.js')} */
module.exports = { registerContract };
