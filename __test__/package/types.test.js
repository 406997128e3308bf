'use strict';
// The declarations, as a compiler reads them that was told little: by default TypeScript 6 and later read no @types,
// and check the declarations of packages.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { readFileSync, readdirSync, writeFileSync } = require('node:fs');
const { join, normalize, relative } = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const { exports: entries } = require('../../package.json');
const { gate } = require('../support/amount.js');
const { within } = require('../support/page.js');

const TSC = join(__dirname, '../../node_modules/typescript/bin/tsc');
const OPTIONS = '--ignoreConfig --noEmit --strict --target es2022 --module node16 --types'.split(
  ' ',
);

const ENTRIES = Object.keys(entries).filter((name) => name !== './package.json');

/** Compiles a file beside an installed package. */
function compile(cwd, name, text, options = []) {
  writeFileSync(join(cwd, name), text);
  return promisify(execFile)(process.execPath, [TSC, ...OPTIONS, '', ...options, name], {
    cwd,
  }).catch(({ stdout }) => assert.fail(stdout));
}

test('all entries compile without @types/node and esnext.disposable', () =>
  within(async (cwd) => {
    const lines = ENTRIES.map(
      (name, at) => `export * as e${at} from 'snowdrift${name.slice(1)}';\n`,
    );
    await compile(cwd, 'all.mts', lines.join(''));
  }));

test('the compiler checks each file of js/, those with declarations beside them, too', async () => {
  const js = join(__dirname, '../../js');
  const { stdout } = await promisify(execFile)(process.execPath, [
    TSC,
    '-p',
    js,
    '--listFilesOnly',
  ]);
  const read = new Set(stdout.split('\n').map((file) => relative(js, normalize(file.trim()))));
  const files = readdirSync(js, { recursive: true }).filter((file) => file.endsWith('.js'));
  assert.ok(files.includes('id.js'));
  assert.deepEqual(
    files.filter((file) => !read.has(file)),
    [],
  );
});

test('no comment in js/ silences the compiler, or gives a value any type', () => {
  const js = join(__dirname, '../../js');
  const silent = /@ts-(?:ignore|expect-error|nocheck)|[{<(|&:,=] *any *[})>|&,;[\]=]|\{\*\}/;
  const found = readdirSync(js, { recursive: true })
    .filter((file) => file.endsWith('.js'))
    .flatMap((file) => {
      const lines = readFileSync(join(js, file), 'utf8').split('\n');
      return lines.filter((line) => silent.test(line)).map((line) => `${file}: ${line.trim()}`);
    });
  assert.deepEqual(found, []);
});

/** A text for each name, as a union of types. */
const union = (names) => names.map((name) => JSON.stringify(name)).join(' | ') || 'never';

/** What functions and prototypes have besides. */
const OF_ALL = ['length', 'name', 'prototype', 'constructor'];

/** The names of a class's own, and of the package's classes that it extends. @param of what has them of one class */
function namesOf(Class, of) {
  const names = [];
  for (let one = Class; one !== Function.prototype && one !== Error; ) {
    names.push(...Reflect.ownKeys(of(one)).filter((name) => typeof name === 'string'));
    one = Object.getPrototypeOf(one);
  }
  return names.filter((name) => !OF_ALL.includes(name));
}

/** Lines that compile where a class declares the members that it has. @param path its type */
function linesOfClass(Class, path) {
  const members = namesOf(Class, ({ prototype }) => prototype);
  if (Class.name.endsWith('SnowFlake')) {
    const flake = new Class({ datacenterId: 1, workerId: 30, scope: 'process' });
    members.push(...Object.keys(flake));
    flake.close();
  }
  return `{
const statics: Same<Exclude<keyof ${path}, 'prototype'>, ${union(namesOf(Class, (one) => one))}> = true;
const members: Covers<${path}['prototype'], ${union(members)}> = true;
}
`;
}

const isClass = (value) => typeof value === 'function' && /^class /.test(String(value));

test('the declarations of each entry name what it exports, and the members of its classes', () =>
  within(async (cwd) => {
    const lines = ENTRIES.map((entry, at) => {
      const actual = require(join(__dirname, '../..', entries[entry].default ?? entries[entry]));
      const classes = Object.entries(actual).filter(([, value]) => isClass(value));
      const ofClasses = classes.map(([name, Class]) =>
        linesOfClass(Class, `typeof e${at}.${name}`),
      );
      return `
import * as e${at} from 'snowdrift${entry.slice(1)}';
{
const exported: Same<Exclude<keyof typeof e${at}, 'default'>, ${union(Object.keys(actual))}> = true;
}
${ofClasses.join('')}`;
    });
    // The names that a type lacks, or has too many, are in the compiler's message.
    const text = `
type Names<T> = Extract<T, string>;
type Same<Declared, Actual> = [Exclude<Names<Declared>, Actual>, Exclude<Actual, Declared>] extends [never, never]
  ? true
  : { undeclared: Exclude<Actual, Declared>; missing: Exclude<Names<Declared>, Actual> };
type Required<T> = { [K in keyof T]-?: undefined extends T[K] ? never : K }[keyof T];
/** Members of Error are its own, and optional ones are not always there. */
type Covers<T, Actual> = [Exclude<Names<Required<T>>, Actual | keyof Error | 'code'>, Exclude<Actual, keyof T>] extends [never, never]
  ? true
  : { undeclared: Exclude<Actual, keyof T>; missing: Exclude<Names<Required<T>>, Actual | keyof Error> };
${lines.join('')}`;
    await compile(cwd, 'names.mts', text);
  }));

test(
  'with exactOptionalPropertyTypes a node and a key may be undefined, and what protects its IDs may not',
  {
    skip: gate,
  },
  () =>
    within((cwd) =>
      compile(
        cwd,
        'exact.mts',
        `import { CachedSnowFlake, SnowFlake } from 'snowdrift';
import { SnowFlakeModule } from 'snowdrift/nestjs';
import { publicIds } from 'snowdrift/public';
declare const unset: undefined;
const node = { datacenterId: unset, workerId: unset };
new SnowFlake(node);
new CachedSnowFlake(node);
SnowFlake.configure(node);
SnowFlake.lease('file:///ids', { datacenterId: unset });
publicIds({ kind: 'order', key: unset });
publicIds({ kind: 'order', keys: unset });
SnowFlakeModule.forRoot(node);
SnowFlakeModule.forRootAsync({ useFactory: () => node });
${[
  ...['lease', 'state', 'scope', 'layout', 'epoch'].map(
    (name) => `new SnowFlake({ ${name}: unset })`,
  ),
  "publicIds({ kind: 'order', prefix: unset })",
  'SnowFlakeModule.forRoot({ from: unset })',
  'SnowFlakeModule.forRootAsync({ useFactory: () => ({ from: unset }) })',
  'SnowFlakeModule.forRootAsync({ useFactory: () => undefined })',
]
  .map((line) => `// @ts-expect-error it has a value, or is left out\n${line};\n`)
  .join('')}`,
        ['--exactOptionalPropertyTypes'],
      ),
    ),
);
