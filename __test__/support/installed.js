'use strict';
// Packages that tests need but that do not come with `npm ci`, since they are large, have to be compiled, or are other versions
// of what comes with it. Each has a folder with a package.json of its own, installed by scripts/prepare.mjs. What needs them is
// a storm.

const { execFile } = require('node:child_process');
const { existsSync, readFileSync } = require('node:fs');
const Module = require('node:module');
const { join } = require('node:path');
const { promisify } = require('node:util');

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

/** Has `require` in this process load packages of a folder. */
function replacePackages(folder, names) {
  const { _resolveFilename: resolve } = Module;
  Module._resolveFilename = (request, parent, isMain, options) => {
    const isOther = names.some((name) => request === name || request.startsWith(`${name}/`));
    return resolve.call(Module, request, parent, isMain, isOther ? { paths: [folder] } : options);
  };
}

// ORMs and their tools, one a folder.

const folderOf = (orm) => join(__dirname, 'orms', orm);
const modulesOf = (orm) => join(folderOf(orm), 'node_modules');
const missingOrm = (orm) => missingPackages(folderOf(orm), '--orms');
const replacePackage = (name, orm) => replacePackages(folderOf(orm), [name]);

/** Generates a Prisma client, as the schema in the folder says. */
function generatePrisma(folder) {
  const prisma = join(modulesOf('prisma'), 'prisma', 'build', 'index.js');
  return promisify(execFile)(process.execPath, [prisma, 'generate'], {
    cwd: folder,
    env: {
      ...process.env,
      // The engine that changes databases is not needed, so it is not downloaded either.
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      CHECKPOINT_DISABLE: '1',
    },
  });
}

// Clients of stores, in the oldest and the newest versions that package.json admits.

const clientsOf = (age) => join(__dirname, 'clients', age);

/** By name: the versions of a folder. */
const versionsOf = (age) =>
  JSON.parse(readFileSync(join(clientsOf(age), 'package.json'), 'utf8')).dependencies;
const missingClients = (age) => missingPackages(clientsOf(age), '--clients');
const replaceClients = (age) => replacePackages(clientsOf(age), Object.keys(versionsOf(age)));

module.exports = {
  ...{ clientsOf, generatePrisma, missingClients, missingOrm, missingPackages, modulesOf },
  ...{ replaceClients, replacePackage, replacePackages, versionsOf },
};
