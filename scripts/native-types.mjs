// Declares what crosses from Rust: by what napi writes down about each function and class that it exports. With --check it
// fails where a file is not up to date:
//
//   node scripts/native-types.mjs

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
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

/** What napi writes as it expands the macros of a crate: an object of each item. */
function itemsOf(crate) {
  // napi writes to this folder only as the crate is compiled, which a new name makes cargo do.
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-types-'));
  try {
    const { status } = spawnSync(
      'cargo',
      ['check', '--locked', '--quiet', '--lib', '--package', crate],
      {
        cwd: ROOT,
        env: { ...process.env, NAPI_TYPE_DEF_TMP_FOLDER: folder },
        stdio: 'inherit',
      },
    );
    if (status !== 0) process.exit(1);
    const lines = readFileSync(join(folder, crate), 'utf8').trim().split('\n');
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
    case 'const':
      return `${doc}${def.replace('export ', 'export declare ')};\n`;
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
