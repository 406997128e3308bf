'use strict';
// The imports run as docs/contributing/architecture.md draws them: never upwards, and in no circle.

const assert = require('node:assert/strict');
const { existsSync, readFileSync, readdirSync } = require('node:fs');
const { dirname, join, relative } = require('node:path');
const { test } = require('node:test');

const ROOT = join(__dirname, '../..');
const read = (path) => readFileSync(join(ROOT, path), 'utf8');

/** The paths of `js/{a,b}.js`. */
function pathsOf(pattern) {
  const [, before, names, after] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? [];
  return names === undefined ? [pattern] : names.split(',').map((name) => before + name + after);
}

/** The rows of the page's table under a heading, each as its paths. */
function layersUnder(heading) {
  const [, section] = read('docs/contributing/architecture.md').split(`### ${heading}\n`);
  const rows = section.split('\n###')[0].split('\n').slice(3);
  return rows
    .filter((row) => row.startsWith('| `'))
    .map((row) =>
      row
        .split('|')[1]
        .match(/(?<=`)[^` ]+(?=`)/g)
        .flatMap(pathsOf),
    );
}

function filesIn(folder, extension) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith(extension));
}

/** By path: the layer of a file; -1 if no row has it. */
function layerOf(layers, path) {
  const isOf = (place) => (place.endsWith('/') ? path.startsWith(place) : path === place);
  return layers.findIndex((places) => places.some(isOf));
}

/** @param imports pairs of paths */
function upwards(layers, imports) {
  return imports.filter(([from, to]) => layerOf(layers, to) > layerOf(layers, from));
}

/** The files of circles, if there are any. */
function circleIn(imports) {
  const [from, to] = [0, 1].map((end) => new Set(imports.map((pair) => pair[end])));
  const inside = imports.filter((pair) => from.has(pair[1]) && to.has(pair[0]));
  return inside.length === imports.length ? [...from] : circleIn(inside);
}

function jsImports() {
  return filesIn('js', '.js').flatMap((path) =>
    [...read(path).matchAll(/(?:require|require\.resolve)\('(\.[^']+\.js)'\)/g)].map(([, to]) => [
      path,
      relative(ROOT, join(ROOT, dirname(path), to)),
    ]),
  );
}

test('every file of JavaScript has a layer, and imports none above it', () => {
  const layers = layersUnder('The package, in JavaScript');
  assert.ok(layers.length > 5);
  assert.deepEqual(
    layers.flat().filter((path) => !existsSync(join(ROOT, path))),
    [],
  );
  assert.deepEqual(
    filesIn('js', '.js').filter((path) => layerOf(layers, path) === -1),
    [],
  );
  const imports = jsImports();
  assert.ok(imports.length > 100);
  assert.deepEqual(upwards(layers, imports), []);
  assert.deepEqual(circleIn(imports), []);
});

test('every folder of Rust has a layer, and imports none above it', () => {
  const layers = layersUnder('The core, in Rust');
  const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `src/${name}/`);
  assert.deepEqual(folders.sort(), layers.flat().sort());
  const imports = filesIn('src', '.rs').flatMap((path) =>
    // A comment may link to any module.
    [...read(path).matchAll(/^(?! *\/\/).*\bcrate::([a-z_]+)/gm)].map(([, to]) => [
      path,
      `src/${to}/`,
    ]),
  );
  assert.ok(imports.length > 100);
  assert.deepEqual(upwards(layers, imports), []);
});
