'use strict';
// Requests to the API server of Kubernetes, with the token of a service account: that of this process's pod, or one
// that the application gives. Token and CA are read for each request, since both are renewed while the process runs.

const { types } = require('node:util');

const { noteClient } = require('../messages/causes.js');
const { configError, describe } = require('../messages/errors.js');
const { forget, learnPassword } = require('../messages/secrets.js');
const { ownOf } = require('../ids/properties.js');
const { environmentOf } = require('../runtime/environment.js');
const { readOptionFile } = require('../runtime/files.js');
const { KEEP_ALIVE_MS, MOST_TOKEN, send } = require('./requests.js');

/**
 * @import { Agent } from 'node:https'
 * @import { KubernetesOptions } from './kubernetes.d.ts'
 * @import { Answer as AnswerOf } from './requests.js'
 */

/**
 * What is used of a Lease.
 * @typedef {object} LeaseObject
 * @property {unknown} [kind]
 * @property {{ annotations?: Record<string, unknown> | null } | null} [metadata]
 */

/**
 * What is used of a reply's JSON: of a Lease, of a list of Leases, and of a Status.
 * @typedef {LeaseObject & {
 *   items?: LeaseObject[],
 *   metadata?: { continue?: string } | null,
 *   message?: unknown,
 *   reason?: unknown,
 *   details?: { name?: unknown, kind?: unknown } | null,
 * }} Reply
 */

/** @typedef {AnswerOf<Reply>} Answer */

/** Where a pod has the files of its service account. */
const POD = '/var/run/secrets/kubernetes.io/serviceaccount';

/** @param {string} name */
async function readOfPod(name) {
  const contents = await readOptionFile(
    `${POD}/${name}, which a pod with a service account has (elsewhere, give kubernetes() the options server, token, ca and kubernetesNamespace)`,
    `${POD}/${name}`,
  );
  return contents.toString().trim();
}

/** The address of the API server in a pod. */
function serverOfPod() {
  const host = environmentOf('KUBERNETES_SERVICE_HOST');
  if (!host) {
    throw configError(
      'kubernetes() needs KUBERNETES_SERVICE_HOST, which each pod has, or elsewhere the options server, token, ca and kubernetesNamespace',
    );
  }
  const port = environmentOf('KUBERNETES_SERVICE_PORT') || '443';
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** @param {unknown} server */
function readServer(server) {
  try {
    const url = new URL(/** @type {string} */ (server));
    const { protocol, username, password, search, hash } = url;
    if (protocol === 'https:' && username + password + search + hash === '') return url;
  } catch {
    // As of another protocol.
  }
  throw configError(
    `server of kubernetes() must be an https: URL without a login, '?' and '#'; it is ${describe(server)}`,
  );
}

/**
 * A namespace of Kubernetes, which becomes a part of paths.
 * @param {unknown} name
 */
function checkNamespace(name) {
  if (typeof name === 'string' && /^[a-z\d][a-z\d-]{0,62}$/.test(name)) return name;
  throw configError(
    `kubernetesNamespace must be the name of a namespace of Kubernetes; it is ${describe(name)}`,
  );
}

/**
 * Checks an option: a text, or a function that returns it. Without its value, which may be a secret.
 * @param {string} name
 * @param {unknown} value
 */
function checkText(name, value) {
  if (['string', 'function'].includes(typeof value) || types.isUint8Array(value)) return;
  throw configError(`${name} of kubernetes() must be text, or a function that returns it`);
}

/**
 * A client of the API server.
 * @param {Omit<KubernetesOptions, 'namespace'>} options
 */
function createClient({ server, token, ca, kubernetesNamespace }) {
  const isOfPod = server === undefined;
  const url = readServer(server ?? serverOfPod());
  if (token !== undefined || !isOfPod) checkText('token', token);
  if (ca !== undefined) checkText('ca', ca);
  if (kubernetesNamespace !== undefined || !isOfPod) checkNamespace(kubernetesNamespace);
  /** @type {Agent | undefined} */
  let agent;
  let namespace = kubernetesNamespace;
  /** The tokens of the last requests: with an older one, none is under way. @type {string[]} */
  const tokens = [];

  async function readToken() {
    const given = token ?? (await readOfPod('token'));
    const found = typeof given === 'function' ? await given() : given;
    if (typeof found !== 'string' || found.length > MOST_TOKEN || !/^[!-~]+$/.test(found)) {
      throw configError(
        `token of kubernetes() must be 1 to ${MOST_TOKEN} visible ASCII characters`,
      );
    }
    if (tokens.includes(found)) return found;
    learnPassword(found);
    if (tokens.push(found) > 2) forget(/** @type {string} */ (tokens.shift()));
    return found;
  }

  async function readCa() {
    if (ca === undefined) return isOfPod ? readOfPod('ca.crt') : undefined;
    return typeof ca === 'function' ? ca() : ca;
  }

  /**
   * Sends a request for the Leases, or one of them.
   * @param {string} method
   * @param {string} path after the list of Leases: '/NAME', '?...' or ''
   * @param {AbortSignal} signal
   * @param {object} [body]
   * @returns {Promise<Answer>}
   */
  async function request(method, path, signal, body) {
    namespace ??= checkNamespace(await readOfPod('namespace'));
    const { Agent, request } = require('node:https');
    agent ??= new Agent({ keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS });
    const type = method === 'PATCH' ? 'application/json-patch+json' : 'application/json';
    const options = {
      method,
      agent,
      signal,
      ca: /** @type {string | Buffer | undefined} */ (await readCa()),
      headers: {
        Authorization: `Bearer ${await readToken()}`,
        Accept: 'application/json',
        ...(body && { 'Content-Type': type }),
      },
      body,
    };
    const root = `${url.href.replace(/\/$/, '')}/apis/coordination.k8s.io/v1/namespaces`;
    try {
      const answer = await send(
        'Kubernetes',
        request,
        new URL(`${root}/${namespace}/leases${path}`),
        options,
      );
      return { ...answer, reply: ownOf(answer.reply) };
    } catch (failure) {
      throw noteClient(failure);
    }
  }

  return {
    place: kubernetesNamespace === undefined ? url.host : `${url.host}/${kubernetesNamespace}`,
    request,
    close: async () => agent?.destroy(),
  };
}

module.exports = { createClient };
