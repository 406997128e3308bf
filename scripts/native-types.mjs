// Makes js/runtime/addon-types.d.ts of Rust: of what napi writes down about each function and class that it exports.
// With --check it fails where the file is not up to date:
//
//   node scripts/native-types.mjs

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE = join(ROOT, 'js/runtime/addon-types.d.ts');
const SHARED = join(ROOT, 'js/types.d.ts');

const HEAD = `// The addon's functions and classes. Made by scripts/native-types.mjs of src/binding, for the compiler only: no package has
// this file. Their values are in ../types.d.ts.
`;

/** What napi writes as it expands its macros: an object of each item. */
function readItems() {
  // napi writes to this folder only as the crate is compiled, which a new name makes cargo do.
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-types-'));
  try {
    const { status } = spawnSync('cargo', ['check', '--locked', '--quiet', '--lib'], {
      cwd: ROOT,
      env: { ...process.env, NAPI_TYPE_DEF_TMP_FOLDER: folder },
      stdio: 'inherit',
    });
    if (status !== 0) process.exit(1);
    const lines = readFileSync(join(folder, 'snowdrift'), 'utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A class, an interface, or a function, with its comment. */
function declarationOf({ kind, name, js_doc: doc, def }, items) {
  switch (kind) {
    case 'fn':
      return `${doc}export declare ${def};\n`;
    case 'interface':
      return `${doc}export interface ${name} {\n${def}\n}\n`;
    case 'struct': {
      const { def: methods } = items.find((one) => one.kind === 'impl' && one.name === name);
      return `${doc}export declare class ${name} {\nprivate constructor();\n${methods}\n}\n`;
    }
    case 'impl':
      return '';
    default:
      throw new Error(`napi writes ${kind} ${name}: teach scripts/native-types.mjs what it is`);
  }
}

/** In the style of this repository. */
function formatted(text) {
  const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [biome, 'format', '--stdin-file-path', FILE],
    { cwd: ROOT, input: text, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

const items = readItems();
const declared = items.map((item) => declarationOf(item, items)).filter((one) => one !== '');
const text = declared.join('\n');
const names = [...readFileSync(SHARED, 'utf8').matchAll(/^export (?:interface|type) (\w+)/gm)]
  .map(([, name]) => name)
  .filter((name) => new RegExp(`\\b${name}\\b`).test(text.replaceAll(/\/\*\*.*?\*\//gs, '')))
  .sort();
const made = formatted(
  `${HEAD}\nimport type { ${names.join(', ')} } from '../types.js';\n\n${text}`,
);

if (!process.argv.includes('--check')) {
  writeFileSync(FILE, made);
} else if (readFileSync(FILE, 'utf8') !== made) {
  console.error(`${FILE} is not up to date: node scripts/native-types.mjs`);
  process.exit(1);
}
