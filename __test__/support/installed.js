'use strict';
// Packages that tests need but that do not come with `npm ci`, since they are large or have to be compiled.
// Each has a folder with a package.json of its own, installed by scripts/prepare.mjs. What needs them is a storm.

const { existsSync } = require('node:fs');
const { join } = require('node:path');

const { skipped, storm } = require('./amount.js');

/**
 * Why a folder's packages are not used here, or undefined.
 * @param flag of scripts/prepare.mjs, which installs them
 */
function missingPackages(folder, flag) {
  if (storm !== undefined) return storm;
  // npm writes this file last.
  if (existsSync(join(folder, 'node_modules', '.package-lock.json'))) return undefined;
  return skipped(`the packages of ${folder} are not installed: node scripts/prepare.mjs ${flag}`);
}

module.exports = { missingPackages };
