'use strict';
// What a register in objects (js/stores/objects.js) does with records that others write, for each service.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { signal } = new AbortController();
const RECORD = { token: '0123456789abcdef', text: 'a text' };
const OTHER = { token: 'fedcba9876543210', text: 'another' };
/** The object of the record `a` in the default namespace. */
const KEY = 'snowdrift/default/a';
/** A record as an object has it. */
const contentOf = ({ token, text }) => `${token} ${text}`;

/**
 * @param open opens a register: `register`, `set` and `get` for the content of the object `KEY`, and `writes`, which returns the writes
 * of records that were sent. It calls `onWrite` before one takes effect.
 */
function registerObjectTests(open) {
  test('a write whose predecessor is gone sends none', async () => {
    const { register, set, writes } = open();
    set(contentOf(OTHER));
    for (const before of [undefined, RECORD.token]) {
      const reply = await register.write('a', RECORD, before, { signal });
      assert.deepEqual([reply.isWritten, reply.found], [false, OTHER]);
    }
    assert.deepEqual(writes(), []);
  });

  test('a write that another one overtakes returns what that has written', async () => {
    for (const before of [undefined, RECORD.token]) {
      const { register, set, get } = open(() => set(contentOf(OTHER)));
      if (before !== undefined) set(contentOf(RECORD));
      const record = { ...RECORD, token: 'a'.repeat(16) };
      const reply = await register.write('a', record, before, { signal });
      assert.deepEqual([reply.isWritten, reply.found], [false, OTHER]);
      assert.equal(get(), contentOf(OTHER));
    }
  });
}

module.exports = { KEY, OTHER, RECORD, contentOf, registerObjectTests, signal };
