'use strict';
// The class of all errors that snowdrift throws. Needs no Node API.

/** @import { ErrorDetails, SnowFlakeErrorCode } from '../types.js' */

/**
 * What js/messages/errors.js does with each error, where it is loaded: it sets these.
 * @type {{
 *   text: (text: string) => string,
 *   options: (details?: ErrorDetails) => ErrorOptions | undefined,
 *   finish: (error: Error, details?: ErrorDetails) => void,
 * }}
 */
const hooks = { text: (text) => text, options: (details) => details, finish() {} };

class SnowFlakeError extends Error {
  /**
   * @param {SnowFlakeErrorCode} code
   * @param {string} message
   * @param {ErrorDetails} [details]
   */
  constructor(code, message, details) {
    super(hooks.text(message), hooks.options(details));
    this.code = code;
    hooks.finish(this, details);
  }

  get name() {
    return /** @type {const} */ ('SnowFlakeError');
  }
}

const { construct } = Reflect;

/**
 * Returns a function that creates errors with this code. It is not in their stacks: V8 begins the stack of an error
 * with the caller of its `new.target`.
 * @param {SnowFlakeErrorCode} code
 * @returns {(message: string, details?: ErrorDetails) => SnowFlakeError}
 */
function errorsOf(code) {
  /**
   * @param {string} message
   * @param {ErrorDetails} [details]
   * @returns {SnowFlakeError}
   */
  function create(message, details) {
    return construct(SnowFlakeError, [code, message, details], create);
  }
  create.prototype = SnowFlakeError.prototype;
  return create;
}

const argumentError = errorsOf('ERR_SNOWFLAKE_ARGUMENT');
const configError = errorsOf('ERR_SNOWFLAKE_CONFIG');
const invalidId = errorsOf('ERR_SNOWFLAKE_INVALID_ID');

module.exports = { SnowFlakeError, argumentError, configError, errorsOf, hooks, invalidId };
