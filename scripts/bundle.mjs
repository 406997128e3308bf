// Puts the modules of the package together in a few files, since Node takes a sixth of a ms to find, read and compile one.
// The text of a module stays as it is, but for what it requires and exports.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/** The files, and the modules that each is for. A module is in the first file that requires it at once. */
const IDS = { name: 'ids', of: [], entry: 'id.js' };
const CORE = { name: 'core', of: [], entry: 'index.js' };
const OPENING = {
  name: 'opening',
  of: ['generator/opening.js', 'generator/options.js', 'generator/draw.js', 'ids/uid-string.js'],
};
/** What the files above require later, such as texts of errors. */
const REST = { name: 'rest', of: [] };
const LEASES = { name: 'leases', of: ['lease/open.js'] };
const PARTS = [IDS, CORE, OPENING, REST, LEASES];

const DIRECTIVE = /^(#!.*\n)?'use strict';\n/;
/** With an arrow, the module is required when it is asked for. */
const REQUIRE = /(=> (?:\(\w+ \?\?= )?)?require\('(\.[^']*\.js)'\)/g;
/** A module returns this: Node takes the names after each `module.exports` in a file for names that the file exports. */
const EXPORTS = /^module\.exports = /m;
const NAMES = /^module\.exports = (\{[^}]*\});$/m;

/** Keeps and runs the modules: in the first file, which needs nothing of Node. */
const LOADER = `const modules = { __proto__: null };
const loaded = { __proto__: null };
const loads = { __proto__: null };

/** Adds the modules of a file. */
const add = (file) => Object.assign(modules, file);

/** Notes what loads the file of some modules. */
function addLater(load, paths) {
  for (const path of paths) loads[path] = load;
}

/** What \`require\` of a module returns. */
function need(path) {
  if (path in loaded) return loaded[path];
  if (!(path in modules)) add(loads[path]()(need));
  loaded[path] = modules[path]();
  return loaded[path];
}
`;

/** Keeps the text of files: in the second file. */
const KEEPER = `/**
 * Reads a file, and returns what compiles it. So what an instance or an error needs takes no time before, and needs no
 * file that may be gone. Undefined if this module cannot compile, as in a bundle and in jest.
 */
function keep(name) {
  if (typeof module._compile !== 'function') return undefined;
  const path = join(__dirname, name);
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    // A bundle.
    return undefined;
  }
  return () => {
    const kept = new module.constructor(path);
    Object.assign(kept, { filename: path, paths: module.paths });
    kept._compile(text, path);
    return kept.exports;
  };
}
`;

const HEAD = `'use strict';
// Modules, each as its file has it, put together by scripts/bundle.mjs.
`;

const targetOf = (path, name) => posix.join(posix.dirname(path), name);

function specifier(from, to) {
  const path = posix.relative(posix.dirname(from), to);
  return path.startsWith('.') ? path : `./${path}`;
}

const namesBelow = (folder) =>
  readdirSync(folder, { recursive: true }).map((path) => path.replaceAll('\\', '/'));

/** The part of each module that is put into one, and the modules that run when their file is loaded. */
function divide(texts) {
  const parts = new Map();
  const atOnce = new Set();
  const needsOf = (path) =>
    [...texts.get(path).matchAll(REQUIRE)].map(([, arrow, name]) => ({
      path: targetOf(path, name),
      isLater: arrow !== undefined,
    }));
  function put(path, part) {
    if (parts.has(path)) return;
    parts.set(path, part);
    atOnce.add(path);
    putNeeds(path, part);
  }
  function putNeeds(path, part) {
    for (const need of needsOf(path)) if (!need.isLater) put(need.path, part);
  }
  function putLater(path, part) {
    for (const need of needsOf(path)) {
      if (parts.has(need.path) || LEASES.of.includes(need.path)) continue;
      parts.set(need.path, part);
      putLater(need.path, part);
    }
  }
  for (const part of [IDS, CORE]) putNeeds(part.entry, part);
  for (const path of OPENING.of) put(path, OPENING);
  for (const path of [...parts.keys()]) putLater(path, REST);
  for (const path of LEASES.of) put(path, LEASES);
  for (const [path, part] of [...parts]) if (part === LEASES) putLater(path, LEASES);
  return { parts, atOnce };
}

/**
 * Puts the modules together, in place.
 * @param folder a package
 */
export function bundle(folder) {
  const code = join(folder, 'js');
  const manifest = join(folder, 'package.json');
  const paths = namesBelow(code)
    .filter((path) => path.endsWith('.js'))
    .sort();
  const texts = new Map(paths.map((path) => [path, readFileSync(join(code, path), 'utf8')]));
  const { parts, atOnce } = divide(texts);
  // In the names, so that a process whose package was replaced finds no file of another version.
  const build = createHash('sha256')
    .update(JSON.stringify([...texts]) + readFileSync(new URL(import.meta.url)))
    .digest('hex')
    .slice(0, 8);
  const nameOf = ({ name }) => `${name}-${build}.js`;
  // As deep as most modules, and where the addon is looked for: their other paths stay right.
  const fileOf = (part) => `runtime/${nameOf(part)}`;
  const loading = (file, part) => `require('${specifier(file, fileOf(part))}')`;

  /** A module's text in a file. @param used gets the parts that it needs */
  const textIn = (file, path, used = new Set()) =>
    texts.get(path).replace(REQUIRE, (_, arrow = '', name) => {
      const target = targetOf(path, name);
      const part = parts.get(target);
      if (part === undefined) return `${arrow}require('${specifier(file, target)}')`;
      used.add(part);
      return `${arrow}need('${target}')`;
    });

  /** The lines that load the files of parts. The core adds itself, and all but leases at once. */
  function loads(file, used) {
    const needs = (part) => used.has(part);
    const adds = needs(LEASES) ? `add(${loading(file, LEASES)}(need));\n` : '';
    const core = PARTS.some((part) => part !== IDS && needs(part))
      ? `${loading(file, CORE)};\n`
      : '';
    return `const { ${adds && 'add, '}need } = ${loading(file, IDS)};\n${core}${adds}`;
  }

  const pathsOf = (part) => [...parts.keys()].filter((path) => parts.get(path) === part);

  /** The modules of a part, as an object of functions. */
  function modulesOf(part) {
    const functions = pathsOf(part).map((path) => {
      const body = textIn(fileOf(part), path).replace(DIRECTIVE, '').replace(EXPORTS, 'return ');
      const made = `function () {\n${body}}`;
      // V8 compiles functions in parentheses at once.
      return `'${path}': ${atOnce.has(path) ? `(${made})` : made},\n`;
    });
    return `{\n${functions.join('\n')}}`;
  }

  /** The lines that keep parts for later. */
  function later(...kept) {
    const lines = kept.map((part) => {
      const listed = pathsOf(part).map((path) => `  '${path}',\n`);
      return `
const ${part.name} = keep('${nameOf(part)}');
if (${part.name} === undefined) add(${loading(fileOf(CORE), part)}(need));
else addLater(${part.name}, [
${listed.join('')}]);
`;
    });
    return lines.join('');
  }

  for (const path of [...parts.keys(), CORE.entry]) rmSync(join(code, path));
  const leases = LEASES.of.map((path) => `'${path}'`).join(', ');
  const contents = new Map([
    [IDS, `${LOADER}\nadd(${modulesOf(IDS)});\n\nmodule.exports = { add, addLater, need };\n`],
    [
      CORE,
      `const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const { add, addLater, need } = ${loading(fileOf(CORE), IDS)};

${KEEPER}${later(OPENING, REST)}
addLater(() => ${loading(fileOf(CORE), LEASES)}, [${leases}]);

add(${modulesOf(CORE)});

${textIn(fileOf(CORE), CORE.entry).replace(DIRECTIVE, '')}`,
    ],
  ]);
  for (const part of PARTS) {
    const content = contents.get(part) ?? `module.exports = (need) => (${modulesOf(part)});\n`;
    writeFileSync(join(code, fileOf(part)), `${HEAD}\n${content}`);
  }
  for (const path of paths) {
    if (parts.has(path) || path === CORE.entry) continue;
    const used = new Set();
    const text = textIn(path, path, used);
    const head = used.size === 0 ? '' : loads(path, used);
    writeFileSync(
      join(code, path),
      text.replace(DIRECTIVE, (line) => line + head),
    );
  }
  const text = readFileSync(manifest, 'utf8').replaceAll(
    `"./js/${CORE.entry}"`,
    `"./js/${fileOf(CORE)}"`,
  );
  writeFileSync(manifest, text);
  // What else the package exports keeps its path. The names are for imports: Node reads them in the text.
  for (const entry of Object.values(JSON.parse(text).exports)) {
    const path = posix.relative('js', entry.default ?? entry);
    if (!parts.has(path)) continue;
    const [, names] = NAMES.exec(texts.get(path));
    const head = loads(path, new Set([parts.get(path)]));
    writeFileSync(
      join(code, path),
      `'use strict';\n${head}\nconst ${names} = need('${path}');\n\nmodule.exports = ${names};\n`,
    );
  }
  for (const name of namesBelow(code).sort().reverse()) {
    if (!posix.extname(name)) removeEmpty(join(code, name));
  }
}

function removeEmpty(folder) {
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}
