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
/** In the first file, what its modules require of each other. */
const OF_IDS = /^const \{[\s\w,]*\} = require\('\.[^']*'\);\n/gm;
const NAMES = /^module\.exports = (\{[^}]*\});$/m;
/** In the module of the addon, what looks for one beside the code. */
const BUILT = { path: 'runtime/native.js', text: /^ {2}\/\/ Built here.*?^ {2}\}\n/ms };

/** Keeps and runs the modules, and keeps the text of files: in the second file. */
const REGISTRY = `const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const modules = { __proto__: null };

/** Adds modules of a file. */
const add = (more) => Object.assign(modules, more);

/** What \`require\` of a module returns. */
function need(path) {
  if (!(path in loaded)) loaded[path] = modules[path]();
  return loaded[path];
}

/** Adds modules of a file that is loaded when one of them is needed. */
function addLater(load, paths) {
  for (const path of paths) modules[path] = () => add(load()(need))[path]();
}

/**
 * Reads a file, and returns what compiles it. So what an instance or an error needs takes no time before, and needs no
 * file that may be gone. Undefined if no module can compile, as in a bundle, in jest and in Bun.
 */
function keep(name) {
  if (typeof module.constructor?.prototype?._compile !== 'function') return undefined;
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
    putNeeds(path, part);
    parts.set(path, part);
    atOnce.add(path);
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
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const paths = namesBelow(code)
    .filter((path) => path.endsWith('.js'))
    .sort();
  const texts = new Map(paths.map((path) => [path, readFileSync(join(code, path), 'utf8')]));
  // The addons of a release are in packages of their own: a tenth of a ms less.
  if (manifest.optionalDependencies !== undefined) {
    texts.set(BUILT.path, texts.get(BUILT.path).replace(BUILT.text, ''));
  }
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

  const isOfIds = (path) => parts.get(path) === IDS;

  /** The modules of parts that a module requires. */
  const usedBy = (path) => {
    const names = [...texts.get(path).matchAll(REQUIRE)].map(([, , name]) => targetOf(path, name));
    return [...new Set(names)].filter((target) => parts.has(target));
  };

  /** A module's text in a file. @param hasIds whether it requires only modules of the first file */
  const textIn = (file, path, hasIds = false) =>
    texts.get(path).replace(REQUIRE, (_, arrow = '', name) => {
      const target = targetOf(path, name);
      if (!parts.has(target)) return `${arrow}require('${specifier(file, target)}')`;
      return arrow + (hasIds ? 'ids' : `need('${target}')`);
    });

  /** The lines that load what a file needs. The core needs what is in memory already, and loads leases late. */
  function loads(file, used) {
    if (used.every(isOfIds)) return `const ids = ${loading(file, IDS)};\n`;
    const hasLeases = used.some((path) => parts.get(path) === LEASES);
    return hasLeases
      ? `const { add, need } = ${loading(file, CORE)};\nadd(${loading(file, LEASES)}(need));\n`
      : `const { need } = ${loading(file, CORE)};\n`;
  }

  const pathsOf = (part) => [...parts.keys()].filter((path) => parts.get(path) === part);

  /** A module, as a function that returns what it exports. V8 compiles functions in parentheses at once. */
  const functionOf = (file, path) =>
    `(function () {\n${textIn(file, path).replace(DIRECTIVE, '').replace(EXPORTS, 'return ')}})`;

  /** The modules of a part, as an object of functions. */
  function modulesOf(part) {
    const functions = pathsOf(part).map((path) => {
      const made = functionOf(fileOf(part), path);
      return `'${path}': ${atOnce.has(path) ? made : made.slice(1, -1)},\n`;
    });
    return `{\n${functions.join('\n')}}`;
  }

  /**
   * The first file: the modules as one, each after those that it requires, so that a bundle for browsers is small. No two of
   * them have the same name at their top.
   */
  function idsOf() {
    const bodies = pathsOf(IDS).map((path) =>
      texts.get(path).replace(DIRECTIVE, '').replace(OF_IDS, '').replace(NAMES, '').trim(),
    );
    const names = pathsOf(IDS).flatMap((path) => NAMES.exec(texts.get(path))[1].match(/\w+/g));
    return `${bodies.join('\n\n')}\n\nmodule.exports = {\n${names.map((name) => `  ${name},\n`).join('')}};\n`;
  }

  /** The second file. */
  function coreOf() {
    const file = fileOf(CORE);
    const kept = [OPENING, REST].map((part) => {
      const paths = pathsOf(part).map((path) => `  '${path}',\n`);
      return `const ${part.name} = keep('${nameOf(part)}');
if (${part.name} === undefined) add(${loading(file, part)}(need));
else addLater(${part.name}, [\n${paths.join('')}]);

`;
    });
    const ids = pathsOf(IDS).map((path) => `  '${path}': ids,\n`);
    const leases = LEASES.of.map((path) => `'${path}'`).join(', ');
    return `const ids = ${loading(file, IDS)};

const loaded = {
  __proto__: null,
${ids.join('')}};
${REGISTRY}
${kept.join('')}addLater(() => ${loading(file, LEASES)}, [${leases}]);

add(${modulesOf(CORE)});

module.exports = { add, need };
`;
  }

  const contentOf = (part) =>
    `module.exports = (function (need) {\nreturn ${modulesOf(part)};\n});\n`;
  const contents = new Map([
    [IDS, idsOf],
    [CORE, coreOf],
  ]);

  for (const path of parts.keys()) rmSync(join(code, path));
  for (const part of PARTS) {
    const content = (contents.get(part) ?? contentOf)(part);
    writeFileSync(join(code, fileOf(part)), `${HEAD}\n${content}`);
  }
  for (const path of paths) {
    if (parts.has(path)) continue;
    const used = usedBy(path);
    const text = textIn(path, path, used.every(isOfIds));
    const head = used.length === 0 ? '' : loads(path, used);
    writeFileSync(
      join(code, path),
      text.replace(DIRECTIVE, (line) => line + head),
    );
  }
  // What the package exports keeps its path. The names are for imports: Node reads them in the text.
  for (const entry of Object.values(manifest.exports)) {
    const path = posix.relative('js', entry.default ?? entry);
    if (!parts.has(path)) continue;
    const [, names] = NAMES.exec(texts.get(path));
    writeFileSync(
      join(code, path),
      `'use strict';\n${loads(path, [path])}\nconst ${names} = need('${path}');\n\nmodule.exports = ${names};\n`,
    );
  }
  for (const name of namesBelow(code).sort().reverse()) {
    if (!posix.extname(name)) removeEmpty(join(code, name));
  }
}

function removeEmpty(folder) {
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}
