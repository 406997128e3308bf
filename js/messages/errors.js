'use strict';
// Creates errors, and shows values in their messages.

const { inspect, types } = require('node:util');

const {
  SnowFlakeError,
  argumentError,
  configError,
  errorsOf,
  hooks,
  invalidId,
} = require('../ids/error.js');
const { NONE, ownOf } = require('../ids/properties.js');
const { longBigint, shortened } = require('../ids/shown.js');
const { hasOwn } = require('../runtime/originals.js');
const { hasChangedUser } = require('../runtime/user.js');

/** @import { Failure, Fault, FaultDetails, SlotHolder } from '../types.js' */

// In the package these are in another file, which is in memory already, and compiled when the first error needs them.
const causes = () => require('./causes.js');
const faults = () => require('./faults.js');
const secrets = () => require('./secrets.js');

/**
 * The public function that is running, if the stacks of errors must begin with its caller.
 * @type {Function | undefined}
 */
let current;

Object.assign(
  hooks,
  /** @type {typeof hooks} */ ({
    text: (text) => secrets().sanitize(text),
    options(details) {
      const { cause } = ownOf(details);
      return cause === undefined ? undefined : { cause: causes().redactCause(cause) };
    },
    finish(error, details) {
      const { retryAfterMs, holders } = ownOf(details);
      if (retryAfterMs !== undefined) Object.assign(error, { retryAfterMs });
      if (holders !== undefined) Object.assign(error, { holders });
      // Only V8 has captureStackTrace().
      if (current !== undefined) Error.captureStackTrace?.(error, current);
    },
  }),
);

/**
 * Makes an error's stack begin with the caller of `called`, which must be running.
 * @template T
 * @param {T} failure
 * @param {Function} called
 */
function fromCaller(failure, called) {
  if (failure instanceof SnowFlakeError) Error.captureStackTrace?.(failure, current ?? called);
  return failure;
}

/**
 * Runs a part of a public function synchronously. The stacks of its errors begin with that function's caller.
 * @template T
 * @param {Function} called
 * @param {() => T} run
 */
function inCall(called, run) {
  const before = current;
  current = called;
  try {
    return run();
  } finally {
    current = before;
  }
}

/** The most characters that are shown of a value that is no text. */
const MOST_OF_VALUE = 200;

/**
 * A value as text for an error message: short, and without secrets. Runs no code of the value.
 * @param {unknown} value
 * @returns {string}
 */
function describe(value) {
  try {
    if (typeof value === 'string') return quote(value);
    if (types.isStringObject(value)) {
      return `[String: ${quote(String.prototype.valueOf.call(value))}]`;
    }
    const { printable, redactForeign } = secrets();
    return (
      longBigint(value) ??
      printable(redactForeign(textOf(value), MOST_OF_VALUE)).slice(0, MOST_OF_VALUE)
    );
  } catch {
    return `a ${typeof value}`;
  }
}

/** @param {string} text */
function quote(text) {
  return shortened(secrets().redactValue(text), inspect);
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function textOf(value) {
  // Without the stack, which the cause of the error shows anyway.
  if (types.isNativeError(value)) return `${value.name}: ${value.message}`;
  // Without properties, which may be options of a client, with a password.
  return inspect(value, { depth: -1, breakLength: Infinity, customInspect: false });
}

const clockError = errorsOf('ERR_SNOWFLAKE_CLOCK');

/**
 * Whether `require` or `import` failed because a package is missing.
 * @param {Failure} failure
 */
function isMissing({ code }) {
  return code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND';
}

/**
 * Whether `require` or `import` failed because this package is missing. Yarn's error names no package.
 * @param {Failure} failure
 * @param {string} name
 */
function isPackageMissing(failure, name) {
  const [, found = name] =
    /^Cannot find (?:module|package) '([^']*)'/.exec(String(failure.message)) ?? [];
  return isMissing(failure) && found === name;
}

/** The reason that this process cannot open any file, if there is one: then Node reports packages as missing. */
function lackOfFiles() {
  const { readFileSync } = require('node:fs');
  const { devNull } = require('node:os');
  try {
    readFileSync(devNull);
    return undefined;
  } catch (failure) {
    return faults().lackOf(/** @type {Failure} */ (failure));
  }
}

/**
 * The error for a package that the application must install, and that is missing or does not load.
 * @param {string} what
 * @param {string} name
 * @param {unknown} cause
 */
function needsPackage(what, name, cause) {
  const install = `npm install ${name}`;
  // The package may have thrown null.
  const failure = /** @type {Failure} */ (cause ?? NONE);
  const isAbsent = isPackageMissing(failure, name);
  const lack = isAbsent ? lackOfFiles() : faults().lackOf(failure);
  if (!isAbsent || lack !== undefined) {
    return configError(
      `cannot load the package '${name}', which ${what} needs: ${describe(cause)}. ${lack ?? `If it is damaged, install it again: ${install}`}`,
      { cause: causes().noteClient(cause) },
    );
  }
  const remedy = `${what} needs the package '${name}': ${install}`;
  const afterChange =
    '. If it is installed, the present user of this process cannot read it: use it before process.setuid()';
  const message = hasChangedUser() ? remedy + afterChange : remedy;
  return fromCaller(configError(message, { cause }), needsPackage);
}

/** Whether the present user of this process cannot find the files of this package. */
function isHidden() {
  const { statSync } = require('node:fs');
  try {
    statSync(__filename);
    return false;
  } catch (failure) {
    return /** @type {Failure} */ (failure).code === 'EACCES';
  }
}

/**
 * The error for a part of this package that cannot be loaded now. After another version was installed the part is missing:
 * a package's files have names of their own.
 * @param {string} what
 * @param {unknown} cause
 */
function lacksPart(what, cause) {
  const failure = /** @type {Failure} */ (cause ?? NONE);
  const isUnreadable = failure.code === 'EACCES' || (isMissing(failure) && isHidden());
  const lack = isMissing(failure) ? lackOfFiles() : faults().lackOf(failure);
  const lost = 'it was removed or replaced since this process loaded it: start the process again';
  const unreadable =
    'its present user cannot read it: call SnowFlake.lease() before process.setuid()';
  const why = isUnreadable ? unreadable : isMissing(failure) ? lost : describe(cause);
  return configError(`cannot load the code of ${what} in this package: ${lack ?? why}`, { cause });
}

/**
 * @param {unknown} answer
 * @returns {answer is Fault}
 */
const isFault = (answer) => answer !== null && typeof answer === 'object' && hasOwn(answer, 'kind');

/**
 * Returns the result of a native call. Throws if it is a fault.
 * @template T
 * @param {T} answer
 * @returns {Exclude<T, Fault>}
 */
function unwrap(answer) {
  if (isFault(answer)) throw fromCaller(faultError(answer), unwrap);
  return /** @type {Exclude<T, Fault>} */ (answer);
}

/**
 * The error of a fault. js/messages/faults.js has the texts.
 * @param {Fault} fault
 */
function faultError(fault) {
  const { code, message } = faults().wordsFor(fault);
  /** @type {(holder: Fault) => SlotHolder} */
  const publicOf = (holder) => {
    const details = /** @type {FaultDetails} */ (ownOf(holder));
    const { worker: workerId, pid, host, started } = details;
    return {
      ...(workerId === undefined ? {} : { workerId }),
      ...{ pid, host: host && secrets().printable(host), startedAt: new Date(started) },
    };
  };
  const error = new SnowFlakeError(code, message, {
    holders: ownOf(fault).holders?.map(publicOf),
  });
  return fromCaller(error, faultError);
}

module.exports = {
  SnowFlakeError,
  argumentError,
  clockError,
  configError,
  faultError,
  fromCaller,
  inCall,
  unwrap,
  invalidId,
  isMissing,
  lacksPart,
  needsPackage,
  describe,
};
