'use strict';
// Requests with JSON over HTTP, to etcd and Kubernetes. Through node:https, since fetch takes neither a CA nor a client
// certificate. Redirects are not followed: they would take a login elsewhere.

const { describe } = require('../messages/errors.js');
const { ownOf, propertyOf } = require('../ids/properties.js');
const { startLimit } = require('../runtime/limits.js');
const { timeOfReply } = require('./reply-time.js');

/**
 * @import { IncomingMessage } from 'node:http'
 * @import { RequestOptions, request as Request } from 'node:https'
 */

/** Idle time before the first TCP keep-alive probe, ms. */
const KEEP_ALIVE_MS = 10_000;

/** The most characters of a reply. Several records fit, each with escapes and what the server adds. */
const MOST_OF_REPLY = 2 ** 22;

/** A token goes into a header. */
const MOST_TOKEN = 16_384;

/**
 * A reply: its status, the value of its JSON, and the server's clock, Unix ms, if it shows it.
 * @template Reply
 * @typedef {{ status: number | undefined, reply: Reply, now: number | undefined }} Answer
 */

/**
 * Sends one request, and reads the reply: an object.
 * @template Reply
 * @param {string} product in errors
 * @param {typeof Request} request of node:http or node:https
 * @param {URL} url
 * @param {RequestOptions & { limit?: number | undefined, body?: object | undefined }} given `limit`: time to get the reply, ms;
 *   `body`: becomes JSON
 * @returns {Promise<Answer<Reply>>}
 */
async function send(product, request, url, given) {
  const { limit, body, ...options } = ownOf(given);
  const sent = request(url, options);
  const late = () => Object.assign(new Error(`no reply in ${limit} ms`), { code: 'ETIMEDOUT' });
  const cancel = limit === undefined ? undefined : startLimit(limit, () => sent.destroy(late()));
  try {
    /** @type {IncomingMessage} */
    const response = await new Promise((resolve, reject) => {
      sent.on('response', resolve).on('error', reject);
      sent.end(body && JSON.stringify(body));
    });
    const { statusCode: status, headers } = response;
    let text = '';
    for await (const part of response.setEncoding('utf8')) {
      text += part;
      if (text.length > MOST_OF_REPLY) {
        throw new Error(`${product} returned ${status} with more than ${MOST_OF_REPLY} characters`);
      }
    }
    const reply = /** @type {Reply} */ (parse(product, status, text));
    return { status, reply, now: timeOfReply(propertyOf(headers, 'date')) };
  } finally {
    cancel?.();
  }
}

/**
 * @param {string} product
 * @param {number | undefined} status
 * @param {string} text
 * @returns {object}
 */
function parse(product, status, text) {
  let reply = null;
  try {
    reply = JSON.parse(text);
  } catch {
    // As if it were no object.
  }
  if (reply !== null && typeof reply === 'object') return reply;
  const start = describe(text.trim());
  throw new Error(
    `${product} returned ${status} with a reply that is not valid JSON of an object: ${start}`,
  );
}

/**
 * The error of a reply that refuses a request.
 * @param {string} product
 * @param {Answer<object>} answer
 * @param {unknown} said the server's message
 */
function refusalOf(product, { status, reply }, said) {
  // With its secrets, which may be words by which it is known.
  const message = typeof said === 'string' ? `'${said}'` : describe(said ?? reply);
  return Object.assign(new Error(`${product} returned ${status}: ${message}`), { status });
}

module.exports = { KEEP_ALIVE_MS, MOST_TOKEN, refusalOf, send };
