// Makes docs/playground.html of scripts/playground and the modules of js that it requires, as one file that works
// anywhere. package/playground.test.js fails if the page is not up to date:
//
//   node scripts/playground.mjs

import { readFileSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../', import.meta.url);
const SOURCES = 'scripts/playground';
const STYLES = ['page', 'controls', 'decode', 'layout'];

const read = (path) => readFileSync(new URL(path, ROOT), 'utf8');

/** Adds a module of CommonJS, and before it those that it requires, by their paths. */
function collect(path, modules) {
  if (modules.has(path)) return;
  const code = read(path).replace(/\brequire\('([^']+)'\)/g, (_, name) => {
    if (!name.startsWith('.')) throw new Error(`${path} requires ${name}, which no browser has`);
    const required = posix.join(posix.dirname(path), name);
    collect(required, modules);
    return `require('${required}')`;
  });
  modules.set(path, code.trimEnd());
}

/** A script that runs a module, for browsers. */
function bundle(path) {
  const modules = new Map();
  collect(path, modules);
  const functions = [...modules].map(([name, code]) => `'${name}'(module, require) {\n${code}\n},`);
  return `const modules = {
${functions.join('\n')}
};
const loaded = new Map();
function load(name) {
  if (!loaded.has(name)) {
    const module = {};
    modules[name](module, load);
    loaded.set(name, module.exports);
  }
  return loaded.get(name);
}
load('${path}');`;
}

/** The page's text. */
export function page() {
  const script = bundle(`${SOURCES}/main.js`);
  if (/<\/script|<!--/.test(script)) throw new Error('the code would end its element');
  const styles = STYLES.map((name) => read(`${SOURCES}/${name}.css`));
  return read(`${SOURCES}/page.html`)
    .replace('<!-- styles -->', () => `<style>\n${styles.join('\n')}</style>`)
    .replace('<!-- script -->', () => `<script>\n${script}\n</script>`)
    .replace('<!doctype html>', '<!doctype html>\n<!-- Made by scripts/playground.mjs. -->');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL('docs/playground.html', ROOT), page());
}
