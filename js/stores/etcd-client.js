'use strict';
// Requests to the JSON gateway of etcd's v3 API: to one of several endpoints, by TLS, with the token of a user.
//
// A request that fails goes to the next endpoint, and so on: each may be sent again, since a write's condition is its
// predecessor's token. What an endpoint refuses, all do.

const { noteClient } = require('../messages/causes.js');
const { memberType } = require('../messages/checks.js');
const { configError, describe } = require('../messages/errors.js');
const { NONE, ownOf, propertyOf } = require('../ids/properties.js');
const { forget, learnPassword } = require('../messages/secrets.js');
const { readLogin } = require('./options.js');
const { KEEP_ALIVE_MS, MOST_TOKEN, refusalOf, send } = require('./requests.js');
const { loginOf } = require('./url.js');

/**
 * @import { SecureContextOptions } from 'node:tls'
 * @import { EtcdOptions } from './etcd.d.ts'
 * @import { Answer as AnswerOf } from './requests.js'
 */

/**
 * What is used of a reply's JSON. etcd leaves out what is empty.
 * @typedef {object} Reply
 * @property {{ key: string, value?: string }[]} [kvs]
 * @property {boolean} [succeeded]
 * @property {{ response_range: Reply }[]} responses of a transaction
 * @property {unknown} [token]
 * @property {unknown} [message]
 * @property {unknown} [error]
 */

/** @typedef {AnswerOf<Reply>} Answer */

/** Time limit of a reply, if there are other endpoints, ms. */
const SILENCE_MS = 1000;

/** Refusals: of a token, of a member that only learns, and of a login on a server without users. */
const ANOTHER_TOKEN = /invalid auth token|user name is empty|revision of auth store is old/;
const ANOTHER_ENDPOINT = /not supported for learner/;
const NO_LOGIN = /authentication is not enabled/;

/**
 * The URLs of the endpoints: all http:, or all https:.
 * @param {string | URL | readonly (string | URL)[]} urls
 */
function readEndpoints(urls) {
  const isList = memberType(urls, 'map') === 'function' && Array.isArray(urls);
  const given = /** @type {readonly (string | URL)[]} */ (isList ? urls : [urls]);
  const endpoints = given.map((url) => {
    try {
      return new URL(url);
    } catch {
      return undefined;
    }
  });
  const [first] = endpoints;
  const isRight = first !== undefined && /^https?:$/.test(first.protocol);
  const wrong = endpoints.findIndex((url) => !isRight || url?.protocol !== first.protocol);
  if (endpoints.length > 0 && wrong < 0) return /** @type {URL[]} */ (endpoints);
  throw configError(
    `etcd() takes URLs of etcd servers, all http: or all https:; this is ${describe(endpoints[wrong]?.href ?? given[wrong])}`,
  );
}

/**
 * Reads user and password from the options or the first URL. Further URLs may repeat the first one's.
 * @param {URL[]} endpoints
 * @param {Pick<EtcdOptions, 'user' | 'password'>} options
 */
function readAccess([first, ...others], { user, password }) {
  /** @param {URL} url */
  const isOther = (url) => url.username !== first.username || url.password !== first.password;
  if (others.some((url) => (url.username || url.password) && isOther(url))) {
    throw configError('etcd(): all URLs must have the same user and password');
  }
  let ofUrl;
  try {
    ofUrl = ownOf(loginOf(first));
  } catch {
    throw configError('etcd(): user and password of the URL are not percent-encoded');
  }
  return readLogin('etcd()', { user: user ?? ofUrl.user, password: password ?? ofUrl.password });
}

/**
 * The options of node:tls for a request. Errors of TLS quote a passphrase of a wrong type.
 * @param {EtcdOptions['tls']} tls
 * @returns {Promise<SecureContextOptions | undefined>}
 */
async function readTls(tls) {
  const options = typeof tls === 'function' ? await tls() : tls;
  const { passphrase } = options ?? NONE;
  if (['string', 'number'].includes(typeof passphrase)) learnPassword(String(passphrase));
  return /** @type {SecureContextOptions | undefined} */ (options);
}

/**
 * A client of the endpoints.
 * @param {string | URL | readonly (string | URL)[]} urls
 * @param {Pick<EtcdOptions, 'user' | 'password' | 'tls'>} options
 */
function createClient(urls, options) {
  const { tls, ...given } = ownOf(options);
  const endpoints = readEndpoints(urls);
  const isTls = endpoints[0].protocol === 'https:';
  const transport = isTls ? require('node:https') : require('node:http');
  const { user, password } = ownOf(readAccess(endpoints, ownOf(given)));
  if (tls !== undefined && !isTls) throw configError('etcd(): tls needs https: URLs');
  if (tls !== undefined && (tls === null || !['object', 'function'].includes(typeof tls))) {
    // Without its value, which may be a key.
    throw configError('etcd(): tls must be options of node:tls, or a function that returns them');
  }
  const hosts = endpoints.map(({ host }) => host).join(',');
  for (const url of endpoints) Object.assign(url, { username: '', password: '' });
  /** @type {InstanceType<typeof transport.Agent> | undefined} */
  let agent;
  /** The index of the endpoint in use. */
  let current = 0;
  /** '' if the server has no users. @type {string | undefined} */
  let token = user === undefined ? '' : undefined;

  /**
   * @param {string} path
   * @param {object} body
   * @param {string} authorization
   * @param {AbortSignal} signal
   * @returns {Promise<Answer>}
   */
  async function request(path, body, authorization, signal) {
    agent ??= new transport.Agent({ keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS });
    const options = {
      ...(await readTls(tls)),
      method: 'POST',
      agent,
      signal,
      headers: {
        'Content-Type': 'application/json',
        ...(authorization === '' ? {} : { Authorization: authorization }),
      },
      body,
    };
    for (let left = endpoints.length - 1; ; left--) {
      const used = current;
      try {
        const limit = left > 0 ? SILENCE_MS : undefined;
        const url = new URL(path, endpoints[used]);
        /** @type {Answer} */
        const answer = await send('etcd', transport.request, url, { ...options, limit });
        if (answer.status === 200) return answer;
        throw refusalOf('etcd', answer, answer.reply.message ?? answer.reply.error);
      } catch (failure) {
        noteClient(failure);
        const failed = /** @type {Error & { status?: number }} */ (failure);
        const status = propertyOf(failed, 'status') ?? 500;
        const isRefusal = status < 500 && !ANOTHER_ENDPOINT.test(failed.message);
        if (!isRefusal && current === used) current = (used + 1) % endpoints.length;
        if (isRefusal || left === 0 || signal?.aborted) throw failure;
      }
    }
  }

  /** @param {AbortSignal} signal */
  async function authenticate(signal) {
    const login = { name: user, password };
    try {
      const { reply } = await request('/v3/auth/authenticate', login, '', signal);
      const { token: found } = reply;
      if (typeof found !== 'string' || found === '' || found.length > MOST_TOKEN) {
        throw new Error('etcd returned no token');
      }
      learnPassword(found);
      return found;
    } catch (failure) {
      // As with etcdctl: users may be enabled after the processes know theirs.
      if (NO_LOGIN.test(/** @type {Error} */ (failure).message)) return '';
      throw failure;
    }
  }

  /**
   * @param {string} path
   * @param {object} body
   * @param {AbortSignal} signal
   */
  async function post(path, body, signal) {
    for (let isSecond = false; ; isSecond = true) {
      token ??= await authenticate(signal);
      const used = token;
      try {
        return await request(path, body, used, signal);
      } catch (failure) {
        const { message } = /** @type {Error} */ (failure);
        if (user === undefined || isSecond || !ANOTHER_TOKEN.test(message)) throw failure;
        if (used !== '') forget(used);
        if (token === used) token = undefined;
      }
    }
  }

  return { hosts, post, close: async () => agent?.destroy() };
}

module.exports = { createClient };
