'use strict';
// Reads the store's URL of a command: from the environment or a file, which keep a password out of the process list,
// or from an argument.

/**
 * @import { FlagsOf } from './flags.js'
 * @import { Io } from './main.js'
 */

const { checkFileUrl, checkStray, variable } = require('../messages/checks.js');
const { setEnvironment } = require('../runtime/environment.js');
const { configError } = require('../messages/errors.js');
const { readOptionFile } = require('../runtime/files.js');
const { hasPassword } = require('../messages/secrets.js');
const { serverUrl } = require('../stores/url.js');

/** Options of each command that takes a store. */
const STORE_OPTIONS = /** @type {const} */ ({ 'lease-file': { type: 'string' } });

const FILE_HELP = `  --lease-file FILE     holds the URL, and keeps a password out of the process list`;

const URL_HELP = `Store:
  URL                   postgres://..., mysql://..., redis://..., mongodb://..., etcd://...,
                        zookeeper://..., with ?namespace=NAME and ?schema=NAME as the leases have
                        them; or file:///..., a directory of leases or of state. Default: that of
                        --lease-file, or of the environment variable SNOWDRIFT_LEASE
${FILE_HELP}`;

/**
 * Reads a secret from the file that an option names.
 * @param {string} option
 * @param {string} file
 */
async function readSecret(option, file) {
  const name = `the file '${file}' of --${option}`;
  const text = String(await readOptionFile(name, file)).trim();
  if (text === '') throw configError(`${name} is empty`);
  checkStray(name, text);
  return text;
}

/**
 * Puts the URL of --lease-file in the place of SNOWDRIFT_LEASE, from which all commands read it. Warns of a password
 * in an argument.
 * @param {FlagsOf<typeof STORE_OPTIONS> & { lease?: string }} flags
 * @param {string[]} positionals
 * @param {Io} io
 */
async function applyLeaseFile({ lease, 'lease-file': file }, positionals, { complain, usage }) {
  const urls = [...positionals, lease ?? ''].filter((text) => text.includes(':'));
  if (urls.some(hasPassword)) {
    complain(
      'warning: other users of this machine can read the password of this URL in the process list: use --lease-file, or the environment variable SNOWDRIFT_LEASE',
    );
  }
  if (file === undefined) return;
  if (urls.length > 0) throw usage('--lease-file holds the URL: leave out the other one');
  setEnvironment('SNOWDRIFT_LEASE', await readSecret('lease-file', file));
}

/**
 * Reads the URL of a directory or a server. No error shows more than the scheme and the host.
 * @param {string} name the value's name in errors
 * @param {string} text
 */
function readUrl(name, text) {
  const server = serverUrl(name, text);
  if (server !== undefined) return server;
  checkFileUrl(name, text);
  try {
    return new URL(text);
  } catch {
    throw configError(
      `${name} must be a URL, such as file:///var/lib/app/ids or postgres://127.0.0.1/app`,
    );
  }
}

/**
 * The store's URL of a command: an argument, or from the environment.
 * @param {string} name the command
 * @param {string[]} positionals
 * @param {Io['usage']} usage
 * @param {string} [example] a URL that the command takes
 */
function readStoreUrl(name, positionals, usage, example = 'file:///var/lib/app/ids') {
  if (positionals.length > 1) throw usage(`${name} takes one URL, not ${positionals.length}`);
  const [text = variable('SNOWDRIFT_LEASE')] = positionals;
  if (text === undefined) {
    throw usage(
      `${name} needs a URL, such as snowdrift ${name} ${example}, or --lease-file, or the environment variable SNOWDRIFT_LEASE`,
    );
  }
  const source = positionals.length > 0 ? `the argument of ${name}` : 'SNOWDRIFT_LEASE';
  return readUrl(source, text);
}

module.exports = {
  FILE_HELP,
  STORE_OPTIONS,
  URL_HELP,
  applyLeaseFile,
  readSecret,
  readStoreUrl,
  readUrl,
};
