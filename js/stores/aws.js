'use strict';
// Calls through a client of the AWS SDK for JavaScript, version 3, which signs each and sends it again where it failed.

const { NONE, propertyOf } = require('../ids/properties.js');
const { checkClient } = require('./options.js');

/**
 * What is used of a client, and of a command of its package.
 * @typedef {{ send(command: Command, options: { abortSignal: AbortSignal }): Promise<unknown> }} Client
 * @typedef {(request: unknown) => Promise<{ response?: { headers?: { [name: string]: string } } }>} Next
 * @typedef {{ middlewareStack: { add(middleware: (next: Next) => Next, options: object): void } }} Command
 * @typedef {new (input: object) => Command} CommandClass
 */

/** A reply, or the refusal of a condition. `now`: the service's clock, Unix ms. @typedef {{ reply?: unknown, refusal?: Failure, now: number | undefined }} Answer */
/** @typedef {Error & { name: string, code?: unknown, $metadata?: { httpStatusCode?: number } }} Failure */

/**
 * The middle of the second in which the service replied: its clock, in the header Date.
 * @param {string | undefined} date
 */
function timeOf(date) {
  const second = Date.parse(date ?? '');
  return Number.isNaN(second) ? undefined : second + 500;
}

/**
 * An error of the client. After the first line, one of a wrong signature has the request, with the token of a session.
 * @param {Failure} failure
 */
function shortened(failure) {
  const [line, ...more] = String(failure.message).split('\n');
  if (more.length === 0) return failure;
  const { name, code } = failure;
  return Object.assign(new Error(line), { name, code });
}

/**
 * A function that sends commands, by name.
 * @param {object} given the application's client
 * @param {string} what 'dynamodb() takes a DynamoDBClient of @aws-sdk/client-dynamodb'
 * @param {() => { [name: string]: unknown }} load the client's package
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
    const noteDate = (next) => async (request) => {
      const result = await next(request);
      now = timeOf(propertyOf(result.response?.headers ?? NONE, 'date'));
      return result;
    };
    // Beneath what makes an error of a reply.
    const place = { step: 'deserialize', priority: 'low', name: 'snowdriftDate' };
    command.middlewareStack.add(noteDate, place);
    try {
      const reply = await client.send(command, { abortSignal });
      return { reply, now };
    } catch (thrown) {
      const failure = /** @type {Failure} */ (thrown);
      if (isRefusal?.(failure)) return { refusal: failure, now };
      throw shortened(failure);
    }
  };
}

module.exports = { createSend };
