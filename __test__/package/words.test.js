'use strict';
// The words of what users read: types, `--help`, the OpenAPI text of `serve`, errors and README.md.

const assert = require('node:assert/strict');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const { apiOf } = require('../../js/server/openapi.js');
const faults = require('../../js/messages/faults.js');
const refusals = require('../../js/messages/refusals.js');
const { run } = require('../support/cli.js');

const ROOT = join(__dirname, '../..');

/** Words of the code that users do not read, and the words that they read instead. */
const WORDS = [
  [/\b(?:draws?|drawn|drew|drawing)\b/gi, 'generate'],
  [/\b(?:holds?|holding|held) (?:up )?(?:the|a|this) (?:thread|event loop)\b/gi, 'block'],
  [/\brepeat(?:s|ed|ing)?\b/gi, 'duplicates'],
  [/\bbars?\b/gi, 'target'],
  [/\bworks? detached\b/gi, 'can be passed as a callback'],
];

function checkWords(name, text) {
  // Without the asterisks and ends of a comment's lines.
  const words = text.replace(/\s+(?:\* )?/g, ' ');
  const found = WORDS.flatMap(([not, but]) =>
    Array.from(words.matchAll(not), ({ 0: word, index }) => {
      const [before, after] = [words.slice(0, index), words.slice(index + word.length)];
      return `${before.slice(-40)}[${word}: ${but}]${after.slice(0, 20)}`;
    }),
  );
  assert.deepEqual(found, [], name);
}

const declarations = readdirSync(join(ROOT, 'js'), { recursive: true })
  .filter((path) => path.endsWith('.d.ts'))
  .map((path) => join('js', path));

for (const path of ['README.md', 'index.d.ts', ...declarations]) {
  test(`the words of ${path}`, () => checkWords(path, readFileSync(join(ROOT, path), 'utf8')));
}

test('the words of --help', async () => {
  const { stdout } = await run(['--help']);
  checkWords('snowdrift --help', stdout);
  const commands = Array.from(
    stdout.matchAll(/^ {2}([a-z]+(?: [a-z]+)?) {2}/gm),
    ([, name]) => name,
  );
  assert.ok(commands.length > 8, String(commands));
  for (const name of commands) {
    checkWords(`${name} --help`, (await run([...name.split(' '), '--help'])).stdout);
  }
});

test('the words of /openapi.json', () => {
  checkWords('/openapi.json', JSON.stringify(apiOf({ most: 1, hasToken: true })));
});

test('the words of errors', () => {
  for (const { TEXTS } of [faults, refusals]) {
    const texts = Object.values(TEXTS).flatMap(Object.values);
    assert.ok(texts.length > 10, String(texts.length));
    checkWords('an error', texts.join('\n'));
  }
});
