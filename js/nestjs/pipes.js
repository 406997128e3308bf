'use strict';
// Pipes for NestJS: they turn the text of a request into an ID, or throw Nest's exception.

/**
 * @import { PublicIds } from '../public.js'
 * @import { IdSchemaOptions } from '../schema.js'
 * @import { Bare } from '../types.js'
 *
 * The options of both pipes that were given, checked where they are read.
 * @typedef {{ [name in 'as' | 'layout' | 'since' | 'optional' | 'errorHttpStatusCode' | 'exceptionFactory']?: unknown }} Given
 *
 * @typedef {{ '~standard': { validate(value: unknown): { value?: unknown, issues?: unknown } } }} Schema
 *
 * What is used of @nestjs/common. Exceptions take the message of their answer.
 * @typedef {{ getStatus(): number }} Exception
 * @typedef {new (message?: string) => Exception} ExceptionClass
 * @typedef {(target: Function, key: undefined, index: number) => void} ParameterDecorator
 * @typedef {{ HttpException: Function, Inject(token: unknown): ParameterDecorator }} Nest
 */

const { memberType, optionsOf } = require('../messages/checks.js');
const { configError, describe, needsPackage } = require('../messages/errors.js');
const { NONE } = require('../ids/properties.js');
const { idSchema } = require('../schema.js');

/** @returns {Nest} */
function loadNest() {
  try {
    return require('@nestjs/common');
  } catch (cause) {
    throw needsPackage('snowdrift/nestjs', '@nestjs/common', cause);
  }
}

/**
 * Nest's exception of a status.
 * @param {unknown} status
 */
function exceptionOf(status) {
  const nest = loadNest();
  const { HttpException } = nest;
  /** @param {unknown} one */
  const isException = (one) => typeof one === 'function' && one.prototype instanceof HttpException;
  const exceptions = /** @type {ExceptionClass[]} */ (Object.values(nest).filter(isException));
  const found = exceptions.find((Class) => new Class().getStatus() === status);
  if (found !== undefined) return found;
  throw configError(
    `errorHttpStatusCode must be the status of one of NestJS's exceptions, such as 400 or 404; it is ${describe(status)}`,
  );
}

/**
 * The function that makes the exception for a message, by the options.
 * @param {Given} options
 * @param {number} usual
 * @returns {(message?: string) => unknown}
 */
function factoryOf(options, usual) {
  const { errorHttpStatusCode = usual, exceptionFactory } = options;
  if (exceptionFactory === undefined) {
    const Exception = exceptionOf(errorHttpStatusCode);
    return (message) => new Exception(message);
  }
  if (typeof exceptionFactory === 'function') return (message) => exceptionFactory(message);
  throw configError(
    `exceptionFactory must be a function that returns the error to throw; it is ${describe(exceptionFactory)}`,
  );
}

const PIPE_KEYS = /** @type {const} */ ([
  'optional',
  'errorHttpStatusCode',
  'exceptionFactory',
  'as',
]);

/**
 * What a pipe does with a value: returns its ID, or throws the exception for the message.
 * @param {Given} options
 * @param {number} status
 * @param {Schema} schema
 * @returns {(value: unknown, message?: string) => unknown}
 */
function reading(options, status, schema) {
  const { optional = false } = options;
  if (typeof optional !== 'boolean') {
    throw configError(`optional must be true or false; it is ${describe(optional)}`);
  }
  const toException = factoryOf(options, status);
  const { validate } = schema['~standard'];
  return (value, message) => {
    if (optional && (value === undefined || value === null)) return value;
    const { value: id, issues } = validate(value);
    if (issues === undefined) return id;
    throw toException(message);
  };
}

class ParseSnowFlakePipe {
  #read;

  /** @param {unknown} [options] */
  constructor(options = NONE) {
    const what = 'options of ParseSnowFlakePipe()';
    const { optional, errorHttpStatusCode, exceptionFactory, ...ofSchema } =
      /** @type {Given & Bare} */ (optionsOf(options, what, [...PIPE_KEYS, 'layout', 'since']));
    const given = { optional, errorHttpStatusCode, exceptionFactory };
    // idSchema() checks its own.
    this.#read = reading(given, 400, idSchema(/** @type {IdSchemaOptions<'string'>} */ (ofSchema)));
  }

  /**
   * @param {unknown} value
   * @param {{ data?: string | undefined }} [metadata]
   */
  transform(value, { data } = NONE) {
    return this.#read(
      value,
      `${data ?? 'the value'} must be an ID: decimal digits without leading zeros`,
    );
  }
}

class ParsePublicIdPipe {
  #read;

  /**
   * @param {PublicIds} ids
   * @param {unknown} [options]
   */
  constructor(ids, options = NONE) {
    const given = /** @type {Given} */ (
      optionsOf(options, 'options of ParsePublicIdPipe()', PIPE_KEYS)
    );
    if (memberType(ids, 'schema') !== 'function') {
      throw configError(
        'ParsePublicIdPipe() needs the result of publicIds(): pass it to the constructor, or take ParsePublicIdPipe.inject(token), where token is that of its provider',
      );
    }
    const { as = 'string' } = given;
    this.#read = reading(given, 404, ids.schema({ as: /** @type {'string'} */ (as) }));
  }

  /** @param {unknown} value */
  transform(value) {
    // Without a message, as a handler's exception for a row that does not exist.
    return this.#read(value);
  }

  /**
   * A class of pipes, for which the application provides the publicIds().
   * @param {unknown} token
   * @param {unknown} [options]
   */
  static inject(token, options = NONE) {
    class ParseInjectedPublicIdPipe extends ParsePublicIdPipe {
      /** @param {PublicIds} ids */
      constructor(ids) {
        super(ids, options);
      }
    }
    if (token === undefined || token === null || token === '') {
      throw configError(
        `the token of ParsePublicIdPipe.inject() is ${describe(token)}: pass that of the provider whose value is the result of publicIds()`,
      );
    }
    loadNest().Inject(token)(ParseInjectedPublicIdPipe, undefined, 0);
    return ParseInjectedPublicIdPipe;
  }
}

module.exports = { ParsePublicIdPipe, ParseSnowFlakePipe };
