'use strict';
// The exports of `snowdrift/schema`: checks IDs from outside, for validators and servers. Needs no addon and no Node
// API.

/**
 * @import { Layout, LayoutName } from './types.js'
 *
 * @typedef {'bigint' | 'number' | 'string'} Form
 *
 * The options of idSchema(), and ones that any value may pass for: what is read of them is checked here or where it is used.
 * @typedef {{ as?: Form, layout?: LayoutName | Layout, since?: Date | number }} Options
 */

const { floorId, isId, parse } = require('./id.js');
const { errorsOf } = require('./ids/error.js');
const { NONE, copyOf } = require('./ids/properties.js');
const { show } = require('./ids/shown.js');

const GIVEN = /** @type {const} */ (['layout', 'since']);
const OPTIONS = ['as', ...GIVEN];

const INVALID_ID = 'ERR_SNOWFLAKE_INVALID_ID';

/** The most ms that the time of an ID may be ahead of this clock. Clocks differ, and `maxAhead` is at most an hour. */
const TOLERANCE = 86_400_000;

/**
 * The conversions of IDs, by the option `as`.
 * @type {Map<string, (id: bigint) => bigint | number | string>}
 */
const FORMS = new Map(Object.entries({ string: String, bigint: BigInt, number: Number }));

const configError = errorsOf('ERR_SNOWFLAKE_CONFIG');
const invalidId = errorsOf(INVALID_ID);

/** @param {Options} [options] */
function idSchema(options = NONE) {
  if (Object(options) !== options) {
    throw configError(`the options of idSchema() must be an object; they are ${show(options)}`);
  }
  const given = /** @type {Options} */ (
    copyOf(options, OPTIONS, [], 'idSchema()', configError, show)
  );
  // An undefined option would silently check less.
  const unset = GIVEN.find((name) => name in given && given[name] === undefined);
  if (unset !== undefined) {
    throw configError(`${unset} is undefined: give it a value, or leave it out to check less`);
  }
  const { as = 'string', layout, since } = given;
  const toForm = FORMS.get(as);
  if (toForm === undefined) {
    throw configError(`as must be 'string', 'bigint' or 'number'; it is ${show(as)}`);
  }
  // Throws if the layout is invalid.
  const mayBeNumber = isId(0, layout);
  if (as === 'number' && !mayBeNumber) {
    throw configError("as: 'number' needs a layout of at most 53 bits, such as 'safe'");
  }
  if (since !== undefined && layout === undefined) throw configError('since needs a layout');
  const first = since === undefined ? 0n : floorId(since, layout);

  const read = (/** @type {unknown} */ value) => {
    // parse() refuses what is no ID.
    const { id, date } = parse(/** @type {string} */ (value), layout);
    const isLater = Number(date) > Date.now() + TOLERANCE;
    if (layout !== undefined && (isLater || id < first)) {
      const problem = isLater ? 'in the future' : 'before the first ID';
      throw invalidId(
        `ID ${id} is of another layout: in this one its time is ${date.toISOString()}, ${problem}`,
      );
    }
    return toForm(id);
  };

  /** @param {unknown} value */
  function validate(value) {
    try {
      return { value: read(value) };
    } catch (error) {
      const { code, message } = /** @type {{ code?: string, message: string }} */ (error);
      if (code !== INVALID_ID) throw error;
      return { issues: [{ message }] };
    }
  }

  return Object.freeze({
    '~standard': Object.freeze({ version: 1, vendor: 'snowdrift', validate }),
    is: (/** @type {unknown} */ value) =>
      typeof value === as && Object.hasOwn(validate(value), 'value'),
    parse: read,
  });
}

/** @satisfies {Record<keyof typeof import('./schema.js'), unknown>} */
module.exports = { idSchema };
