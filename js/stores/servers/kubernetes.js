'use strict';
// Kubernetes by a URL: `kubernetes:///` in a pod.

const { configError } = require('../../messages/errors.js');
const { kubernetes } = require('../kubernetes.js');
const { all, readFileOf, text } = require('../url-options.js');

/** @import { Server } from '../types.d.ts' */

const FILES = ['tokenFile', 'ca'];

/** @type {NonNullable<Server['check']>} */
function check(where, { username, password, host, pathname, searchParams }) {
  if (username + password !== '' || !/^\/?[a-z\d-]*$/.test(pathname)) {
    throw configError(
      `${where} must be kubernetes://host:port/NAMESPACE, in a pod kubernetes:///NAMESPACE or kubernetes:///, with a namespace of Kubernetes and no login`,
    );
  }
  const [file] = FILES.filter((name) => searchParams.has(name));
  if (host === '' && file !== undefined)
    throw configError(`${where} has the option '${file}' and no host`);
  if (host !== '' && (pathname.length < 2 || !searchParams.has('tokenFile'))) {
    throw configError(
      `${where} has a host, so it needs a namespace of Kubernetes after it, and the option 'tokenFile'`,
    );
  }
}

/** @type {Server['connect']} */
async function connect(_, { own, options, server }) {
  const { host, pathname, searchParams } = own;
  /** @param {string} name */
  const fileOf = (name) => async () => String(await readFileOf(name, searchParams, server)).trim();
  const place = {
    ...options,
    ...(pathname.length > 1 && { kubernetesNamespace: pathname.slice(1) }),
  };
  if (host === '') return { store: kubernetes(place) };
  const access = {
    server: `https://${host}`,
    token: fileOf('tokenFile'),
    ...(searchParams.has('ca') && { ca: fileOf('ca') }),
  };
  return { store: kubernetes({ ...place, ...access }) };
}

/** @type {Server} */
module.exports = {
  tls: "each URL has it, and the option 'ca' names a file with a CA",
  options: all(text, FILES.join(' ')),
  check,
  connect,
};
