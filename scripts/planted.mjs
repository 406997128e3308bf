// Plants faults in a copy of the tree, one by one, and has a test find each. A file of __test__/planted is a fault:
//
//   fault        what it does, as a sentence
//   file, place, replacement
//                a text that occurs once in the file, and the text that brings the fault
//   test         a file of __test__, or a command: cargo test ...
//   finds        a part of the name of the test that fails with the fault
//   storm        true where that test is a storm
//
//   npm run planted                  all of them
//   npm run planted -- epoch lease   those with one of these in their file's name

import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { parse } from 'yaml';

import { libraryOf } from './library.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = '__test__/planted';
const KEYS = ['fault', 'file', 'place', 'replacement', 'test', 'finds'];
const LONGEST_MS = 15 * 60_000;

/** The faults, by the names of their files. Throws where one cannot be planted. */
export function readFaults(directory = root) {
  const names = readdirSync(join(directory, FOLDER)).sort();
  return names.map((name) => {
    const where = `${FOLDER}/${name}`;
    const fault = parse(readFileSync(join(directory, where), 'utf8'));
    const { storm = false, ...texts } = fault;
    const wrong = KEYS.find((key) => typeof texts[key] !== 'string');
    if (wrong !== undefined) throw new Error(`${where} has no text ${wrong}`);
    const unknown = Object.keys(texts).find((key) => !KEYS.includes(key));
    if (unknown !== undefined) throw new Error(`${where}: there is no ${unknown}`);
    const { file, place, replacement, test } = texts;
    const count = readFileSync(join(directory, file), 'utf8').split(place).length - 1;
    if (count !== 1) throw new Error(`${where}: its place occurs ${count} times in ${file}`);
    if (place === replacement) throw new Error(`${where} replaces nothing`);
    if (!isCommand(test) && !existsSync(join(directory, test))) {
      throw new Error(`${where}: there is no ${test}`);
    }
    return { name: basename(name, '.yml'), storm, ...texts };
  });
}

const isCommand = (test) => test.startsWith('cargo test');

/** A copy of the tree: what git tracks, or would, and links to what is installed and built. */
function copyTree() {
  const copy = mkdtempSync(join(tmpdir(), 'snowdrift-planted-'));
  const list = (...flags) =>
    run('git', ['ls-files', '-z', ...flags], { cwd: root })
      .stdout.split('\0')
      .filter(Boolean);
  const files = list('--cached', '--others', '--exclude-standard');
  // Folders that git ignores, and addons.
  const ignored = list('--others', '--ignored', '--exclude-standard', '--directory');
  for (const path of [...files, ...ignored.filter((name) => name.endsWith('.node'))]) {
    const from = join(root, path);
    // A file that was deleted, and is not committed yet; a link to a build.
    if (!existsSync(from) || lstatSync(from).isSymbolicLink()) continue;
    mkdirSync(join(copy, dirname(path)), { recursive: true });
    cpSync(from, join(copy, path));
  }
  for (const path of ignored.filter((name) => name.endsWith('node_modules/'))) {
    const folder = path.slice(0, -1);
    mkdirSync(join(copy, dirname(folder)), { recursive: true });
    symlinkSync(join(root, folder), join(copy, folder));
  }
  symlinkSync(join(root, 'target'), join(copy, 'target'));
  return copy;
}

/** cargo's folder is its own, so that the tree's build stays as it is. */
const env = { ...process.env, CARGO_TARGET_DIR: resolve(root, 'target/planted') };
delete env.TESTS;

function run(command, args, options) {
  return spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    timeout: LONGEST_MS,
    ...options,
  });
}

/** How the tests of a fault end in the copy: the names of those that passed, and that failed. */
function runTest({ test, finds, storm }, cwd) {
  const options = { cwd, env: storm ? { ...env, TESTS: 'storms' } : env };
  const passed = [];
  const failed = [];
  const note = (name, isOk) => name.includes(finds) && (isOk ? passed : failed).push(name);
  if (isCommand(test)) {
    const [command, ...args] = test.split(' ');
    const all = [...args, '--locked', '--', ...(storm ? ['--include-ignored'] : []), finds];
    const { stdout, stderr } = run(command, all, options);
    for (const [, name, how] of stdout.matchAll(
      /^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED)/gm,
    )) {
      note(name, how === 'ok');
    }
    return { passed, failed, printed: stdout + stderr };
  }
  const pattern = finds.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  // A fault may keep a process from its end.
  const flags = [
    '--test',
    '--test-force-exit',
    '--test-reporter=tap',
    `--test-name-pattern=${pattern}`,
  ];
  const { stdout, stderr } = run(process.execPath, [...flags, test], options);
  for (const [, not, name, skip] of stdout.matchAll(/^ *(not )?ok \d+ - (.*?)( # SKIP.*)?$/gm)) {
    if (skip === undefined) note(name, not === undefined);
  }
  return { passed, failed, printed: stdout + stderr };
}

/** Builds the addon of the copy, as npm test has it. */
function buildAddon(cwd) {
  const { status, stderr } = run('cargo', ['build', '--locked', '--lib'], { cwd, env });
  if (status !== 0) return stderr;
  const library = libraryOf('snowdrift', process.platform);
  const addon = readdirSync(join(cwd, 'js/runtime')).find((name) => name.endsWith('.node'));
  copyFileSync(join(env.CARGO_TARGET_DIR, 'debug', library), join(cwd, 'js/runtime', addon));
}

/** Why the test of a fault would find nothing, as it does not pass in the tree as it is; or undefined. */
function whyUnfit(fault, copy) {
  const { passed, failed, printed } = runTest(fault, copy);
  if (failed.length > 0) return `without the fault, its test fails:\n${printed}`;
  return passed.length > 0 ? undefined : `without the fault, no test runs:\n${printed}`;
}

/** Why a fault was not found, or undefined. */
function whyMissed(fault, copy) {
  const path = join(copy, fault.file);
  const text = readFileSync(path, 'utf8');
  const addons = readdirSync(join(copy, 'js/runtime')).filter((name) => name.endsWith('.node'));
  try {
    writeFileSync(
      path,
      text.replace(fault.place, () => fault.replacement),
    );
    if (fault.file.startsWith('src/') && !isCommand(fault.test)) {
      const failure = buildAddon(copy);
      if (failure !== undefined) return `with the fault, it does not compile:\n${failure}`;
    }
    const { failed, printed } = runTest(fault, copy);
    return failed.length > 0 ? undefined : `its test does not fail:\n${printed}`;
  } finally {
    writeFileSync(path, text);
    for (const name of addons)
      cpSync(join(root, 'js/runtime', name), join(copy, 'js/runtime', name));
  }
}

function main(chosen) {
  const faults = readFaults().filter(
    ({ name }) => chosen.length === 0 || chosen.some((part) => name.includes(part)),
  );
  if (faults.length === 0)
    throw new Error(`no planted fault has ${chosen.join(' or ')} in its name`);
  const copy = copyTree();
  let missed = 0;
  try {
    // All tests pass first: cargo builds the tree as it is once.
    const unfit = new Map(faults.map((fault) => [fault, whyUnfit(fault, copy)]));
    for (const fault of faults) {
      const start = performance.now();
      const why = unfit.get(fault) ?? whyMissed(fault, copy);
      const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(6);
      console.log(
        `${seconds} s  ${why === undefined ? 'found ' : 'MISSED'}  ${fault.name}: ${fault.fault}`,
      );
      if (why === undefined) continue;
      missed++;
      console.log(why);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  console.log(`${faults.length - missed} of ${faults.length} planted faults are found`);
  if (missed > 0) process.exit(1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
