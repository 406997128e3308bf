'use strict';
// Packages that tests need but that do not come with `npm ci`, since they are large or have to be compiled.
// Each has a folder with a package.json of its own, installed by scripts/prepare.mjs.

const { existsSync } = require('node:fs');
const { join } = require('node:path');

/**
 * Why a folder's packages cannot be used here, or undefined.
 * @param flag of scripts/prepare.mjs, which installs them
 * @param variable 'required' in the environment makes it a failure
 */
function missingPackages(folder, flag, variable) {
  // npm writes this file last.
  if (existsSync(join(folder, 'node_modules', '.package-lock.json'))) return undefined;
  const reason = `its packages are not installed (node scripts/prepare.mjs ${flag})`;
  if (process.env[variable] === 'required') throw new Error(`${folder}: ${reason}`);
  return reason;
}

module.exports = { missingPackages };
