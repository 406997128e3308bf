'use strict';
// The imports among the modules of src/, as Rust resolves them: relative paths, nested `use` trees, and names that a
// module passes on from another.

const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');

const SRC = join(__dirname, '../../src');

/** The paths of a `use` tree: of 'a::{b, c::{d, e}}' they are 'a::b', 'a::c::d' and 'a::c::e'. */
function pathsOf(tree) {
  const expanded = tree.replace(/([\w:]*)\{([^{}]*)\}/g, (_, before, list) =>
    list.replace(/[^,\s][^,]*/g, (one) => before + one),
  );
  if (expanded !== tree) return pathsOf(expanded);
  return tree.split(',').flatMap((path) => path.trim() || []);
}

/** A path from the root of src/, as its parts. */
function absolute(path, module) {
  const parts = path.split('::');
  if (parts[0] === 'crate') return parts.slice(1);
  let from = module;
  for (; parts[0] === 'super' || parts[0] === 'self'; parts.shift()) {
    if (parts[0] === 'super') from = from.slice(0, -1);
  }
  return [...from, ...parts];
}

/** A file's module ('host::page'), the paths in its code, and the path of each name that it imports. */
function readModule(file) {
  const module = file.replace(/(\/mod)?\.rs$/, '').split('/');
  const [code] = readFileSync(join(SRC, file), 'utf8')
    .replace(/\/\/.*/g, '')
    .split(/#\[cfg\(test\)\]\s+mod tests/);
  const paths = (code.match(/\b(?:crate|super)(?:::\w+)+/g) ?? []).map((one) =>
    absolute(one, module),
  );
  const names = new Map();
  for (const [, tree] of code.matchAll(/\buse ([^;]+);/g)) {
    for (const path of pathsOf(tree)) {
      const [from, name] = path.replace(/::self$/, '').split(' as ');
      const to = absolute(from, module);
      names.set(name ?? to.at(-1), to);
      paths.push(to);
    }
  }
  return [module.join('::'), { paths, names }];
}

/** The module that a path leads to, as its parts. */
function target(modules, path) {
  const known = path.findLastIndex((_, n) => modules.has(path.slice(0, n + 1).join('::'))) + 1;
  const { names } = modules.get(path.slice(0, known).join('::')) ?? {};
  const passedOn = names?.get(path[known]);
  // A name that is a path of the same module is no detour.
  if (passedOn === undefined || passedOn.join() === path.slice(0, known + 1).join()) {
    return path.slice(0, known);
  }
  return target(modules, [...passedOn, ...path.slice(known + 1)]);
}

/**
 * By folder: pairs of its files and subfolders, of which one imports the other. A folder's own mod.rs is no part of it,
 * but above all of them. Unit tests may import anything.
 */
function importsByFolder() {
  const files = readdirSync(SRC, { recursive: true }).map((file) => file.replaceAll('\\', '/'));
  const modules = new Map(
    files.filter((file) => /(?<!(^|\/)(lib|tests))\.rs$/.test(file)).map(readModule),
  );
  const folders = new Map();
  for (const [name, { paths }] of modules) {
    const from = name.split('::');
    for (const to of paths.map((path) => target(modules, path))) {
      const own = from.findIndex((part, n) => part !== to[n]);
      if (own < 1 || own >= to.length) continue;
      const folder = from.slice(0, own).join('/');
      folders.set(folder, [...(folders.get(folder) ?? []), [from[own], to[own]]]);
    }
  }
  return folders;
}

module.exports = { importsByFolder };
