'use strict';
// Passwords to look for in all output. Each has two parts, around characters that URLs, clients and logs treat
// specially: neither part may be shown.

const assert = require('node:assert/strict');
const { inspect } = require('node:util');

const { isStorms, seed } = require('./amount.js');
const { seeded } = require('./support.js');

const ODD = ['%', '#', '?', '/', '@', ':', ' ', '+', '&', '=', "'", '"', '\\', 'ü', '.', '-', ''];
const LETTERS = 'abcdefghjkmnpqrstvwxyzABCDEFGHJKMNPQRSTVWXYZ';

/** The same passwords each time in the gate. */
const random = seeded(seed ?? (isStorms ? Date.now() : 1));

const pick = (list) => list[Math.floor(random() * list.length)];
const part = () => `Q${Array.from({ length: 6 }, () => pick([...LETTERS])).join('')}`;

/** A new password, its parts, and its forms in URLs. */
function createPassword() {
  const [first, last] = [part(), part()];
  const odd = pick(ODD) + pick(ODD);
  const raw = first + odd + last;
  return { raw, encoded: encodeURIComponent(raw), parts: [first, last] };
}

/** Fails if a text shows a part of the password. Letter cases differ: URL parsers lower hosts. */
function hides({ parts, raw }, text, what) {
  const forms = [...parts, Buffer.from(raw).toString('base64').slice(0, -4)];
  const lower = text.toLowerCase();
  for (const form of forms) {
    assert.ok(!lower.includes(form.toLowerCase()), `${what} shows ${raw}:\n${text}`);
  }
}

/** All that an error shows: to inspect, and to loggers that read properties. */
function everythingOf(error) {
  const seen = [];
  for (let one = error; one !== undefined && seen.length < 9; one = one.cause) {
    seen.push(inspect(one, { depth: 9, showHidden: true }), String(one), one.stack);
    seen.push(JSON.stringify(Object.getOwnPropertyDescriptors(one)));
  }
  return seen.join('\n');
}

async function thrownBy(call) {
  try {
    const flake = await call();
    await flake?.close?.();
  } catch (error) {
    return error;
  }
  return undefined;
}

module.exports = { createPassword, everythingOf, hides, thrownBy };
