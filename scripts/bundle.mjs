// Puts the modules of the package together in a few files, since Node takes a third of a ms to find, read and compile one.
// The text of a module stays as it is, but for what it requires.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/**
 * The files, and the module whose dependencies each has, or `with` it. An earlier file's modules are in no later one.
 * The first needs nothing of Node.
 */
const PARTS = [
  { name: 'ids', of: 'id.js' },
  { name: 'core', of: 'index.js' },
  { name: 'leases', with: 'lease/open.js' },
];

const DIRECTIVE = /^(#!.*\n)?'use strict';\n/;
/** With an arrow, the module is required when it is asked for. */
const REQUIRE = /(=> )?require\('(\.[^']*\.js)'\)/g;
const EXPORTS = /^module\.exports = (\{[^}]*\});$/m;

/** Keeps and runs the modules: in the first file. */
const LOADER = `const modules = { __proto__: null };
const loaded = { __proto__: null };

/** Adds the modules of a file. A test runner may have emptied the cache of \`require\`, so the file keeps none itself. */
const add = (file) => Object.assign(modules, file(add, need));

/** What \`require\` of a module returns. @param load loads the file that has it, unless that is loaded */
function need(path, load) {
  if (path in loaded) return loaded[path].exports;
  if (load !== undefined && !(path in modules)) add(load());
  const module = { exports: {} };
  loaded[path] = module;
  let hasRun = false;
  try {
    modules[path](module, module.exports);
    hasRun = true;
  } finally {
    // Not by a catch: Node shows the line that threw last.
    if (!hasRun) delete loaded[path];
  }
  return module.exports;
}
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
  const begins = (path) => PARTS.some((part) => part.with === path);
  function put(path, part, isAtOnce) {
    const isLater = isAtOnce && parts.get(path) === part && !atOnce.has(path);
    if (parts.has(path) && !isLater) return;
    parts.set(path, part);
    if (isAtOnce) atOnce.add(path);
    putNeeds(path, part, isAtOnce);
  }
  function putNeeds(path, part, isAtOnce) {
    for (const [, arrow, name] of texts.get(path).matchAll(REQUIRE)) {
      const target = targetOf(path, name);
      if (!begins(target)) put(target, part, isAtOnce && arrow === undefined);
    }
  }
  for (const part of PARTS) {
    if (part.with === undefined) putNeeds(part.of, part, true);
    else put(part.with, part, true);
  }
  return { parts, atOnce };
}

/**
 * Puts the modules together, in place.
 * @param folder a package
 */
export function bundle(folder) {
  const code = join(folder, 'js');
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
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
  // As deep as most modules, and where the addon is looked for: their other paths stay right.
  const fileOf = ({ name }) => `runtime/${name}-${build}.js`;
  const [first] = PARTS;

  /** A module's text in a file. @param used gets the parts that it needs */
  const textIn = (file, path, used) =>
    texts.get(path).replace(REQUIRE, (_, arrow = '', name) => {
      const target = targetOf(path, name);
      const part = parts.get(target);
      if (part === undefined) return `${arrow}require('${specifier(file, target)}')`;
      if (part.with === target && fileOf(part) !== file) {
        used.add(first);
        return `${arrow}need('${target}', () => ${loading(file, part)})`;
      }
      used.add(part);
      return `${arrow}need('${target}')`;
    });

  const loading = (file, part) => `require('${specifier(file, fileOf(part))}')`;

  /** The lines that load the first file, and add others. */
  function loads(file, used) {
    const others = PARTS.filter((part) => part !== first && used.has(part));
    const names = others.length === 0 ? 'need' : 'add, need';
    return `const { ${names} } = ${loading(file, first)};\n${adds(file, others)}`;
  }

  const adds = (file, parts) => parts.map((part) => `add(${loading(file, part)});\n`).join('');

  for (const path of parts.keys()) rmSync(join(code, path));
  for (const part of PARTS) {
    const file = fileOf(part);
    const used = new Set();
    const own = [...parts.keys()].filter((path) => parts.get(path) === part);
    const functions = own.map((path) => {
      const body = textIn(file, path, used).replace(DIRECTIVE, '');
      const made = `function (module, exports) {\n${body}}`;
      return `'${path}': ${atOnce.has(path) ? `(${made})` : made},\n`;
    });
    const head = `'use strict';\n// Modules, each as its file has it, put together by scripts/bundle.mjs.\n`;
    const others = PARTS.filter((each) => each !== first && each !== part && used.has(each));
    // V8 compiles functions in parentheses at once.
    const modules = `(function (add, need) {\n${adds(file, others)}return {\n${functions.join('\n')}};\n})`;
    writeFileSync(
      join(code, file),
      part === first
        ? `${head}\n${LOADER}\nadd(${modules});\n\nmodule.exports = { add, need };\n`
        : `${head}\nmodule.exports = ${modules};\n`,
    );
  }
  for (const path of paths) {
    if (parts.has(path)) continue;
    const used = new Set();
    const text = textIn(path, path, used);
    const head = used.size === 0 ? '' : loads(path, used);
    writeFileSync(
      join(code, path),
      text.replace(DIRECTIVE, (line) => line + head),
    );
  }
  // What the package exports keeps its path. The names are for imports: Node reads them in the text.
  for (const entry of Object.values(exports)) {
    const path = posix.relative('js', entry.default ?? entry);
    if (!parts.has(path)) continue;
    const [, names] = EXPORTS.exec(texts.get(path));
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
