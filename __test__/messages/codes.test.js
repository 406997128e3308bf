'use strict';
// The codes of errors and warnings: those that the code uses are those that the types and docs/troubleshooting.md
// document.

const assert = require('node:assert/strict');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const faults = require('../../js/messages/faults.js');
const refusals = require('../../js/messages/refusals.js');

const ROOT = join(__dirname, '../..');
const read = (path) => readFileSync(join(ROOT, path), 'utf8');

/** All codes of a text, sorted. @param pattern matches one code, in its first group if it has one */
function codesIn(text, pattern) {
  const found = Array.from(text.matchAll(pattern), ([whole, code = whole]) => code);
  return [...new Set(found)].sort();
}

/** The texts of all files below a folder, without Rust's unit tests. */
function sourcesOf(folder, ext) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .filter((path) => path.endsWith(ext) && !path.endsWith('tests.rs'))
    .map((path) => read(join(folder, path)))
    .join('\n');
}

const sources = sourcesOf('js', '.js') + sourcesOf('src', '.rs');
const types = read('index.d.ts');
const page = read('docs/troubleshooting.md');

test('each error code is in the types and the page, and each one there is used', () => {
  const used = codesIn(sources, /\bERR_SNOWFLAKE_[A-Z_]+/g);
  assert.ok(used.length > 15, String(used));
  assert.deepEqual(codesIn(types, /^ {2}\| '(ERR_SNOWFLAKE_[A-Z_]+)'/gm), used);
  assert.deepEqual(codesIn(types, /\bERR_SNOWFLAKE_[A-Z_]+/g), used);
  assert.deepEqual(codesIn(page, /^### (ERR_.*)$/gm), used);
  assert.deepEqual(codesIn(page, /\bERR_SNOWFLAKE_[A-Z_]+/g), used);
});

/** All kinds of a table, sorted. */
const kindsOf = ({ TEXTS }) => Object.values(TEXTS).flatMap(Object.keys).sort();

/** The values of each fault, by kind: those that Rust sends, and those of a lease, which its commands make. */
function allFaults() {
  const sent = new Map();
  const calls = sourcesOf('src', '.rs').matchAll(
    /(?:fault!|Failure::io)\(\s*"([a-z-]+)"((?:(?!fault!|Failure::io)[^;])*)/g,
  );
  for (const [, kind, values] of calls) sent.set(kind, `${sent.get(kind) ?? ''}${values}`);
  for (const [, values] of sourcesOf('js/lease', '.js').matchAll(/faultError\(\{(.*?)\}\);/gs)) {
    for (const kind of codesIn(values, /\bkind: '([a-z-]+)'/g)) {
      sent.set(kind, `${sent.get(kind) ?? ''}${values}`);
    }
  }
  return sent;
}

test('each fault has a text, and each text a fault that has its values', () => {
  const sent = allFaults();
  assert.ok(sent.size > 50, String(sent.size));
  assert.deepEqual([...sent.keys()].sort(), kindsOf(faults));
  for (const [kind, text] of Object.values(faults.TEXTS).flatMap(Object.entries)) {
    const [, names = ''] = /^\(\{(.*?)\}\) =>/s.exec(text) ?? [];
    for (const [name] of names.matchAll(/\b(?<!\.)\w+(?=,|:| }| $)/g)) {
      assert.match(sent.get(kind), new RegExp(`\\b${name}\\b`), `${kind} names ${name}`);
    }
  }
});

test('each reason why there is no ID has a text, and each text a reason', () => {
  const [, stalls] = read('src/binding/reports.rs').split('fn kind_of(');
  const [, choice] = read('js/messages/refusals.js').split('function kindOf(');
  const reasons = [
    ...codesIn(stalls.split('\n}\n')[0], /=> "([a-z-]+)"/g),
    ...codesIn(choice.split('\n}\n')[0], /(?:return|[?:]) '([a-z-]+)'/g),
  ];
  assert.deepEqual([...new Set([...reasons, 'closed'])].sort(), kindsOf(refusals));
});

test('each warning code is in the types and the page, and each one there is used', () => {
  const used = codesIn(sources, /\bSNOWFLAKE_[A-Z_]+/g);
  assert.ok(used.length > 5, String(used));
  assert.deepEqual(codesIn(types, /^ \* \| `(SNOWFLAKE_[A-Z_]+)` \|/gm), used);
  assert.deepEqual(codesIn(types, /\bSNOWFLAKE_[A-Z_]+/g), used);
  assert.deepEqual(codesIn(page, /^### (SNOWFLAKE_.*)$/gm), used);
  assert.deepEqual(codesIn(page, /\bSNOWFLAKE_[A-Z_]+/g), used);
});

test('each channel is in the types, and each one there is published', () => {
  const events = read('js/runtime/events.js');
  const states = codesIn(events, /'(?:now\.state|taken|renewed|lost|released|failing)'/g);
  const used = [
    ...codesIn(events, /subscribedChannel\('([a-z-]+)'\)/g),
    ...states.map((state) => `lease-${state.slice(1, -1)}`),
  ];
  const documented = codesIn(types, /^ {2}'snowdrift:([a-z-]+)':/gm);
  assert.deepEqual(documented, used.sort());
});
