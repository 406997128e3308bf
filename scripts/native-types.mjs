// Declares what crosses from Rust: by what napi writes down about each function and class that it exports. With --check it
// fails where a file is not up to date:
//
//   node scripts/native-types.mjs

import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SHARED = join(ROOT, 'js/types.d.ts');

/** By crate: the file with its declarations, and its first lines. */
const FILES = {
  snowdrift: [
    'js/runtime/addon-types.d.ts',
    `// The addon's functions and classes. Made by scripts/native-types.mjs of src/binding, for the compiler only: no package has
// this file. Their values are in ../types.d.ts.
`,
  ],
  'snowdrift-zookeeper': [
    'packages/zookeeper/addon-types.d.ts',
    `// The addon's functions and classes. Made by scripts/native-types.mjs of src/, for the compiler only: no package has this file.
`,
  ],
};

/**
 * What napi writes as it expands the macros of a crate, by name: an object of each item. Each build writes it, and builds at one
 * time add to each other's.
 */
function itemsOf(crate) {
  const command = ['check', '--locked', '--lib', '--package', crate, '--message-format', 'json'];
  const options = {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1e9,
    stdio: ['ignore', 'pipe', 'inherit'],
  };
  const { status, stdout } = spawnSync('cargo', command, options);
  if (status !== 0) process.exit(1);
  const messages = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const isOwn = ({ reason, package_id: id }) =>
    reason === 'build-script-executed' && /([\w-]+)[#@][\d.]+$/.exec(id)?.[1] === crate;
  const { out_dir: folder } = messages.find(isOwn);
  const lines = new Set(readFileSync(join(folder, crate), 'utf8').trim().split('\n'));
  const items = [...lines].map((line) => JSON.parse(line));
  return items.sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** A class, an interface, or a function, with its comment. */
function declarationOf({ kind, name, js_doc: doc, def }, items) {
  switch (kind) {
    case 'fn':
      return `${doc}export declare ${def};\n`;
    case 'const':
      return `${doc}${def.replace('export ', 'export declare ')};\n`;
    case 'interface':
      return `${doc}export interface ${name} {\n${def}\n}\n`;
    case 'struct': {
      const methods = items.filter((one) => one.kind === 'impl' && one.name === name);
      const body = methods.map((one) => one.def).join('\n');
      return `${doc}export declare class ${name} {\nprivate constructor();\n${body}\n}\n`;
    }
    case 'impl':
      return '';
    default:
      throw new Error(`napi writes ${kind} ${name}: teach scripts/native-types.mjs what it is`);
  }
}

/** The import of the types of js/types.d.ts that a text names; '' without any. */
function importOf(text) {
  const code = text.replaceAll(/\/\*\*.*?\*\//gs, '');
  const shared = readFileSync(SHARED, 'utf8').matchAll(/^export (?:interface|type) (\w+)/gm);
  const names = [...shared].flatMap(([, name]) =>
    RegExp(`\\b${name}\\b`).test(code) ? [name] : [],
  );
  return names.length === 0
    ? ''
    : `import type { ${names.sort().join(', ')} } from '../types.js';\n\n`;
}

/** In the style of this repository. */
function formatted(file, text) {
  const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [biome, 'format', '--stdin-file-path', file],
    { cwd: ROOT, input: text, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

for (const [crate, [file, head]] of Object.entries(FILES)) {
  const items = itemsOf(crate);
  const declared = items.map((item) => declarationOf(item, items)).filter((one) => one !== '');
  const text = declared.join('\n');
  const made = formatted(file, `${head}\n${crate === 'snowdrift' ? importOf(text) : ''}${text}`);
  const path = join(ROOT, file);
  if (!process.argv.includes('--check')) {
    writeFileSync(path, made);
  } else if (readFileSync(path, 'utf8') !== made) {
    console.error(`${file} is not up to date: node scripts/native-types.mjs`);
    process.exitCode = 1;
  }
}
