// Values that a boundary must take or refuse, and what asks it about each of them.

import assert from 'node:assert/strict';

import id from '../../../js/id.js';

const ID = '900710334548459520';
const LARGEST = '9223372036854775807';

const TAKEN = [ID, '0', '9'];

const REFUSED = [
  ...[0, 5, -5, 1.5, Number(ID), 1e300, null, true, false, [], {}, [ID], { id: ID }],
  ...['', ' ', '-5', '+5', '1e3', '0x10', '5n', '5.0', 'abc', '007', '00', `0${ID}`],
  ...[` ${ID}`, `${ID} `, `${ID}\n`, `${ID}\0`, '\u0663', '\uff19', '5\u0660', '\u{1d7d3}'],
  ...['9223372036854775808', '18446744073709551615', '9'.repeat(20), id.toBase32(ID), '__proto__'],
];

/** Those that JSON cannot carry. */
const WITHIN = [undefined, Number.NaN, Infinity, Symbol('5'), () => ID, Object(ID), new Date(5)];

/** Strings that travel in a path. */
const isInPath = (value) => typeof value === 'string' && value.trim() !== '';

/**
 * Returns a function that asserts that a boundary takes all IDs and no other value.
 *
 * @param hasLayout whether the boundary knows that IDs are of the layout `'node'`
 */
export function prober(hasLayout = false) {
  // By the layout 'node', all are from the future.
  const foreign = [
    LARGEST,
    ...['twitter', 'discord'].map((name) => `${id.floorId(Date.now(), name)}`),
  ];
  /**
   * @param takes whether the boundary takes a value
   * @param options.isWithin the values do not travel
   * @param options.isText the values travel in a path
   */
  return async (takes, { isWithin = false, isText = false } = {}) => {
    const taken = hasLayout ? TAKEN : [...TAKEN, ...foreign];
    for (const value of taken) assert.equal(await takes(value), true, value);
    const refused = [...REFUSED, ...(hasLayout ? foreign : []), ...(isWithin ? WITHIN : [])];
    for (const value of isText ? refused.filter(isInPath) : refused) {
      assert.equal(await takes(value), false, `${typeof value} ${JSON.stringify(value)}`);
    }
  };
}

/** Whether a server answers a request well. @param body is sent as JSON, if there is one */
export async function isGood(url, body) {
  const headers = { 'content-type': 'application/json' };
  const request = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await fetch(url, request);
  assert.ok(response.status < 500, `${response.status} for ${url} ${request.body}`);
  return response.ok;
}
