'use strict';
// Packages that ORMs are tested with but that do not come with `npm ci`, since they are large or have to be
// compiled: each has a folder in orms/, installed by `node scripts/prepare.mjs --orms`.

const { execFile } = require('node:child_process');
const Module = require('node:module');
const { join } = require('node:path');
const { promisify } = require('node:util');

const { missingPackages } = require('./installed.js');

const modulesOf = (orm) => join(__dirname, 'orms', orm, 'node_modules');

/** Why an ORM cannot be tested here, or undefined. */
function missingOrm(orm) {
  return missingPackages(join(__dirname, 'orms', orm), '--orms');
}

/** Makes `require` of a package in this process load the one of a folder. */
function replacePackage(name, orm) {
  const { _resolveFilename: resolve } = Module;
  const path = require.resolve(name, { paths: [modulesOf(orm)] });
  Module._resolveFilename = (request, ...rest) =>
    request === name ? path : resolve.call(Module, request, ...rest);
}

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

module.exports = { generatePrisma, missingOrm, modulesOf, replacePackage };
