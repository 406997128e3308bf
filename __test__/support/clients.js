'use strict';
// Clients of stores in other versions than those that come with `npm ci`: the oldest and the newest that package.json
// admits. Each has a folder in clients/, installed by `node scripts/prepare.mjs --clients`.

const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join } = require('node:path');

const { missingPackages } = require('./installed.js');

const folderOf = (age) => join(__dirname, 'clients', age);

/** By name: the versions of a folder. */
function versionsOf(age) {
  return JSON.parse(readFileSync(join(folderOf(age), 'package.json'), 'utf8')).dependencies;
}

/** Why these clients cannot be tested here, or undefined. */
const missingClients = (age) => missingPackages(folderOf(age), '--clients');

/** Has `require` in this process load the clients of a folder. */
function replaceClients(age) {
  const { _resolveFilename: resolve } = Module;
  const names = Object.keys(versionsOf(age));
  Module._resolveFilename = (request, parent, isMain, options) => {
    const isOther = names.some((name) => request === name || request.startsWith(`${name}/`));
    const own = isOther ? { paths: [folderOf(age)] } : options;
    return resolve.call(Module, request, parent, isMain, own);
  };
}

module.exports = { missingClients, replaceClients, versionsOf };
