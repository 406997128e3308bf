'use strict';
// Checks the options of a server's URL. Clients ignore options that they do not know, and connect without TLS where one
// of TLS is misspelt: the password would cross the network in clear text.

const { configError } = require('../messages/errors.js');
const { readOptionFile } = require('../runtime/files.js');
const { isSecretOption } = require('../messages/secrets.js');
const { isListed, serverOf } = require('./url.js');

/** @import { Check, Server } from './types.d.ts' */

/** @type {Check} */
const text = () => true;
/** @param {string[]} values */
const oneOf = (...values) => {
  /** @param {string} value */
  const check = (value) => values.includes(value);
  return Object.assign(check, {
    expected: `one of ${values.map((value) => `'${value}'`).join(', ')}`,
  });
};
/**
 * @param {Check} check
 * @param {string} names
 */
const all = (check, names) => Object.fromEntries(names.split(' ').map((name) => [name, check]));

const TLS_FILES = ['ca', 'cert', 'key'];
const FILES = all(text, ['host', ...TLS_FILES].join(' '));

/**
 * Parts of a URL that an option may repeat: a client uses one of them.
 * @type {Record<string, 'port' | 'username' | 'password'>}
 */
const PARTS = { port: 'port', user: 'username', username: 'username', password: 'password' };
const OF_TLS = /ssl|tls|secure|cert|ca$|^key|verif|encrypt/i;

/**
 * Checks that each option of a URL is our own or one that its client knows, and has one value.
 * @param {URL} url
 * @param {Server} server
 */
function checkOptions(url, { keys, tls, options: ofClient, check: checkMore }) {
  const { pathname, hash, searchParams } = url;
  /** @type {Record<string, Check>} */
  const options = { namespace: text, ...ofClient };
  const where = `the URL of ${serverOf(url)}`;
  if (hash !== '' || /[&=]/.test(pathname)) {
    throw configError(
      `${where} has options where no client reads them: they begin with '?'. Percent-encode other '#', '&' and '=' as %23, %26 and %3D`,
    );
  }
  const names = [...searchParams.keys()];
  for (const name of new Set(names)) {
    const check = Object.hasOwn(options, name) ? options[name] : undefined;
    const remedy = OF_TLS.test(name) ? `. For TLS, ${tls}` : '';
    if (check === undefined) {
      // What follows the '&' of a password is no name.
      const hasSecret = names.some(isSecretOption);
      const quoted = hasSecret ? 'an option' : `the option '${name}'`;
      const instead = hasSecret && keys !== undefined ? `. ${keys}` : '';
      throw configError(
        `${where} has ${quoted}, which its client does not know: correct it, or leave it out${remedy}. It knows ${Object.keys(options).join(', ')}; case matters${instead}`,
      );
    }
    const values = searchParams.getAll(name);
    const isList = isListed(url) && name === 'host';
    if (values.length > 1 && !isList) throw configError(`${where} has the option '${name}' twice`);
    if (Object.hasOwn(PARTS, name) && url[PARTS[name]])
      throw configError(`${where} has the option '${name}' and a ${name}: remove one`);
    if (values.includes('') || !values.every(check)) {
      throw configError(
        `the option '${name}' of ${where} must be ${check.expected ?? 'a text that is not empty'}${remedy}`,
      );
    }
  }
  checkMore?.(where, url);
}

/**
 * A store's option `tls`, by the URL's options ca, cert and key.
 * @param {URL} own
 * @param {string} scheme of URLs with TLS
 * @returns an object with it; undefined without TLS
 */
function tlsOf(own, scheme) {
  const { searchParams } = own;
  const server = serverOf(own);
  const files = TLS_FILES.filter((name) => searchParams.has(name));
  if (own.protocol !== scheme) {
    if (files.length > 0) throw configError(`${files[0]} of a URL needs ${scheme}//`);
    return undefined;
  }
  /** @type {(name: string) => Promise<[string, Buffer]>} */
  const readTls = async (name) => [name, await readFileOf(name, searchParams, server)];
  // Read for each request, so that renewed certificates are used.
  return { tls: async () => Object.fromEntries(await Promise.all(files.map(readTls))) };
}

/**
 * The file that an option of a URL names.
 * @param {string} name
 * @param {URLSearchParams} searchParams which have that option
 * @param {string} server
 */
function readFileOf(name, searchParams, server) {
  const path = /** @type {string} */ (searchParams.get(name));
  return readOptionFile(`the file of the option ${name} of ${server}`, path);
}

module.exports = { FILES, all, checkOptions, oneOf, readFileOf, text, tlsOf };
