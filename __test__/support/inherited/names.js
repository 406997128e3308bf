'use strict';
// The names of all properties that the package may read: the words of its sources.

const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');

const ROOT = join(__dirname, '../../..');

function wordsIn(folder, extension) {
  const paths = readdirSync(join(ROOT, folder), { recursive: true });
  return paths
    .filter((path) => path.endsWith(extension))
    .flatMap((path) => readFileSync(join(ROOT, folder, path), 'utf8').match(/[A-Za-z_$][\w$]*/g));
}

/** napi has a field max_wait of Rust as maxWait. */
const camelCase = (word) => word.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/**
 * Those that the language or Node reads of every object: of promises, iterators, property descriptors, errors. What does not
 * run with them on Object.prototype is no package of its own.
 */
const OF_LANGUAGE =
  'then next return throw done get set value writable enumerable configurable length prototype toJSON';
const OF_ERRORS = 'name message stack';

function propertyNames() {
  const words = new Set([...wordsIn('js', '.js'), ...wordsIn('src/binding', '.rs').map(camelCase)]);
  const others = [OF_LANGUAGE, OF_ERRORS].flatMap((names) => names.split(' '));
  for (const name of [...Object.getOwnPropertyNames(Object.prototype), ...others]) {
    words.delete(name);
  }
  return [...words];
}

module.exports = { ROOT, propertyNames };
