'use strict';
// Calls through a client of the AWS SDK for JavaScript, version 3, which signs each and sends it again where it failed.

const { Readable, Transform, addAbortSignal, pipeline } = require('node:stream');

const { needsPackage } = require('../messages/errors.js');
const { NONE, propertyOf } = require('../ids/properties.js');
const { learnPassword } = require('../messages/secrets.js');
const { checkClient } = require('./options.js');
const { timeOfReply } = require('./reply-time.js');

/**
 * What is used of a client, and of a command of its package.
 * @typedef {{ send(command: Command, options: { abortSignal: AbortSignal }): Promise<unknown> }} Client
 * @typedef {{ headers?: { [name: string]: string }, body?: unknown }} Message
 * @typedef {(call: { request?: Message }) => Promise<{ response?: Message }>} Next
 * @typedef {{ middlewareStack: { add(middleware: (next: Next) => Next, options: object): void } }} Command
 * @typedef {new (input: object) => Command} CommandClass
 */

/** A reply, or the refusal of a condition. `now`: the service's clock, Unix ms. @typedef {{ reply?: unknown, refusal?: Failure, now: number | undefined }} Answer */
/** @typedef {Error & { name: string, code?: unknown, $metadata?: { httpStatusCode?: number } }} Failure */

/** The exports of a package. @typedef {{ [name: string]: unknown }} Sdk */

/** As js/stores/servers/client.js says. */
function loadDynamoDB() {
  try {
    return /** @type {Sdk} */ (require('@aws-sdk/client-dynamodb'));
  } catch (cause) {
    throw needsPackage('a lease from DynamoDB', '@aws-sdk/client-dynamodb', cause);
  }
}

function loadS3() {
  try {
    return /** @type {Sdk} */ (require('@aws-sdk/client-s3'));
  } catch (cause) {
    throw needsPackage('a lease from S3', '@aws-sdk/client-s3', cause);
  }
}

/** The longest body of a reply. A record has 16 KiB, and a page of names some more. */
const MOST_BYTES = 1_048_576;

/**
 * The body of a reply that ends with its call, and is an error where it is too long: the client collects what comes.
 * @param {unknown} body
 * @param {AbortSignal} signal
 */
function bounded(body, signal) {
  if (!(body instanceof Readable)) return body;
  let left = MOST_BYTES;
  const counted = new Transform({
    transform(part, _, next) {
      left -= part.length;
      next(left < 0 ? new Error(`a reply has more than ${MOST_BYTES} bytes`) : null, part);
    },
  });
  return pipeline(addAbortSignal(signal, body), counted, () => {});
}

/**
 * A function that sends commands, by name.
 * @param {object} given the application's client
 * @param {string} what 'dynamodb() takes a DynamoDBClient of @aws-sdk/client-dynamodb'
 * @param {() => Sdk} load the client's package
 */
function createSend(given, what, load) {
  checkClient(given, { send: 'function' }, what);
  const client = /** @type {Client} */ (given);

  /**
   * @param {string} name of a command
   * @param {object} input
   * @param {AbortSignal} abortSignal
   * @param {(failure: Failure) => boolean} [isRefusal] whether an error is a reply
   * @returns {Promise<Answer>}
   */
  return async (name, input, abortSignal, isRefusal) => {
    const command = new /** @type {CommandClass} */ (load()[name])(input);
    /** @type {number | undefined} */
    let now;
    /** @type {(next: Next) => Next} */
    const note = (next) => async (call) => {
      // An error of a wrong signature quotes the request.
      const token = propertyOf(call.request?.headers ?? NONE, 'x-amz-security-token');
      if (token !== undefined) learnPassword(token);
      const result = await next(call);
      const { response } = result;
      now = timeOfReply(propertyOf(response?.headers ?? NONE, 'date'));
      if (response !== undefined) response.body = bounded(response.body, abortSignal);
      return result;
    };
    // Of the signed request, and beneath what makes an error of a reply.
    const place = { step: 'deserialize', priority: 'low', name: 'snowdrift' };
    command.middlewareStack.add(note, place);
    try {
      const reply = await client.send(command, { abortSignal });
      return { reply, now };
    } catch (thrown) {
      const failure = /** @type {Failure} */ (thrown);
      if (isRefusal?.(failure)) return { refusal: failure, now };
      throw failure;
    }
  };
}

module.exports = { createSend, loadDynamoDB, loadS3 };
