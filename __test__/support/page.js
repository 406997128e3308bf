'use strict';
// The blocks of code in a page, and how each is run as its reader would. What a reader would have around
// a block, and the page need not show, stands before and behind it in comments that are not rendered:
// <!-- given: ... --> and <!-- then: ... -->
//
// A block runs outside of the clone, in a project that has the package as `npm run package` makes it, and of other packages those
// that the page says to install.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} = require('node:fs');
const { dirname, join } = require('node:path');

const { Client } = require('pg');
const yaml = require('yaml');

const { generatePrisma, clientsOf, modulesOf } = require('./installed.js');
const { Packed } = require('./package/tarball.js');

const root = join(__dirname, '../..');

/** How long a block may take, ms. */
const PATIENCE = 300_000;

const BLOCK =
  /(?:<!-- given:\s*((?:(?!-->)[\s\S])*)-->\s*)?^```(\w*)\n([\s\S]*?)^```$(?:\s*<!-- then:\s*([\s\S]*?)-->)?/gm;

/** The blocks of a page in order: `page`, `line`, `language`, `code`, what is `given`, and what comes `then`. */
function blocksOf(page) {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(BLOCK)].map(({ index, ...match }) => {
    const { 0: all, 1: given = '', 2: language, 3: code, 4: then = '' } = match;
    const before = text.slice(0, index + all.lastIndexOf(`\`\`\`${language}\n${code}`));
    return { page, line: before.split('\n').length, language, code, given, then };
  });
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page) {
  const text = readFileSync(join(root, page), 'utf8').replace(/^```[\s\S]*?^```$/gm, '');
  const times = new Map();
  return Array.from(text.matchAll(/^#+ (.+)$/gm), ([, heading]) => {
    const words = heading.replace(/\]\([^)]*\)/g, '').replace(/[^\p{L}\p{N}_ -]/gu, '');
    const anchor = words.toLowerCase().replaceAll(' ', '-');
    const before = times.get(anchor) ?? 0;
    times.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

/** What its comments say that a block prints. */
function printedBy(code) {
  return [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, printed]) => printed);
}

/** IDs and moments are others at each run. */
function shape(text) {
  return text
    .replace(/\d{15,}/g, '<id>')
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+Z?/g, '<moment>')
    .replace(/^'(.*)'$/, '$1')
    .trim();
}

/** A directory within the package, so that it is found by its name. */
function within(run) {
  const parent = join(root, 'target');
  mkdirSync(parent, { recursive: true });
  const directory = mkdtempSync(join(parent, 'page-'));
  return run(directory).finally(() => rmSync(directory, { recursive: true, force: true }));
}

const ORMS = ['drizzle-orm', 'knex', 'kysely', 'mongoose', 'sequelize', '@mikro-orm/postgresql'];
const NEST = ['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'];

/** What the readers of a page have already: their framework, their ORM; of examples of calls, the client. */
const PRESENT = {
  'docs/api.md': ['@opentelemetry/api', 'pg'],
  'docs/boundaries.md': NEST,
  'docs/monitoring.md': ['@opentelemetry/sdk-metrics'],
  'docs/orms.md': [...ORMS, 'pg', 'reflect-metadata'],
};

/** A package's name without its version. */
const nameOf = (text) => text.replace(/(?<=.)@.*/, '');

/** The packages that a page's readers have, and those that it says to install, in its blocks and in its sentences. */
function packagesOf(page) {
  const text = readFileSync(join(root, page), 'utf8');
  const blocks = text.match(/^```[\s\S]*?^```$/gm) ?? [];
  const commands = [
    ...blocks.flatMap((block) => block.match(/npm install .*$/gm) ?? []),
    ...(text.replace(/^```[\s\S]*?^```$/gm, '').match(/`npm install[^`]*`/g) ?? []),
  ];
  const words = commands.flatMap((command) => command.replaceAll('`', '').split(/\s+/).slice(2));
  return new Set([
    '@types/node', // by TSC_OPTIONS
    ...(PRESENT[page] ?? []),
    ...words.filter((word) => /^[@\w]/.test(word)).map(nameOf),
  ]);
}

/** The programs of examples/ that a page links to: its readers have copied them. */
function examplesOf(page) {
  const text = readFileSync(join(root, page), 'utf8');
  return Array.from(text.matchAll(/\]\((?:\.\.\/)?examples\/([\w-]+\.mjs)\)/g), ([, name]) => name);
}

/** The package as `npm run package` makes it: once. */
let packed;

/** Where a package may be installed: in the clone, and for the tests of ORMs. */
const INSTALLED = [
  ...[join(root, 'node_modules'), modulesOf('prisma'), modulesOf('kysely')],
  join(clientsOf('metrics'), 'node_modules'),
  join(__dirname, 'boundary', 'node_modules'),
];

/** Runs with the project of a page's reader. @param modules a folder node_modules that is theirs, too */
async function asReader(page, modules, run) {
  if (packed === undefined) {
    packed = new Packed('.');
    process.once('exit', () => packed.remove());
  }
  const directory = packed.project();
  const link = (from, name) => {
    const path = join(directory, 'node_modules', name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(from, name), path);
  };
  for (const name of packagesOf(page)) {
    const folder = INSTALLED.find((each) => existsSync(join(each, name)));
    if (folder !== undefined && name !== 'snowdrift') link(folder, name);
  }
  const cwd = join(directory, 'app');
  mkdirSync(cwd);
  for (const name of examplesOf(page)) copyFileSync(join(root, 'examples', name), join(cwd, name));
  if (modules) symlinkSync(modules, join(cwd, 'node_modules'));
  try {
    return await run(cwd);
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Where a reader's directories and servers stand here. */
function inPlace(code, cwd, { DATABASE_URL, REDIS_URL }) {
  return code
    .replaceAll('/var/lib/app/ids', join(cwd, 'ids'))
    .replaceAll('postgres://127.0.0.1/app', DATABASE_URL)
    .replaceAll('redis://127.0.0.1', REDIS_URL);
}

/** The groups of programs that run: a terminal's Ctrl-C does not reach them. */
const groups = new Set();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const end of groups) end('SIGKILL');
    process.kill(process.pid, signal);
  });
}

/** Runs a program until it ends, or until it has printed all that it will: then it is told to end. */
async function run(command, args, { cwd, env, isDone = () => false }) {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, detached: true });
  const output = { stdout: '', stderr: '' };
  const lines = () => output.stdout.split('\n').map(shape);
  let isTold = false;
  const end = (signal) => {
    try {
      process.kill(-child.pid, signal);
    } catch ({ code }) {
      // It has ended by itself, and its output comes later.
      assert.equal(code, 'ESRCH');
    }
  };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      output[stream] += text;
      if (isTold || !isDone(lines())) return;
      isTold = true;
      end('SIGTERM');
    });
  }
  groups.add(end);
  const timer = setTimeout(() => end('SIGKILL'), PATIENCE);
  const [code, signal] = await new Promise((resolve) =>
    child.once('close', (...how) => resolve(how)),
  );
  clearTimeout(timer);
  groups.delete(end);
  return { code, signal, ...output, lines: lines() };
}

const TSC = join(root, 'node_modules/typescript/bin/tsc');
const TSC_OPTIONS =
  '--module node20 --target es2022 --strict --experimentalDecorators --emitDecoratorMetadata --types node --skipLibCheck';

async function query(connectionString, sql) {
  const client = new Client({ connectionString });
  await client.connect();
  await client.query(sql);
  await client.end();
}

/** What a user of Prisma has done before: installed it, created the tables, generated the client. */
async function preparePrisma(cwd, { code, given }, { DATABASE_URL }) {
  writeFileSync(join(cwd, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(cwd, 'schema.prisma'), code);
  await query(DATABASE_URL, given);
  await generatePrisma(cwd);
}

/**
 * A block as a program: its text, and the endings of its file and of the one that runs. JavaScript with `require` is
 * CommonJS, as its reader runs it; other JavaScript, and TypeScript, a module. Only `then` may await in CommonJS.
 */
function programOf({ language, code, given = '', then = '' }) {
  const isCommonJs = language === 'js' && /\brequire\(|module\.exports/.test(given + code);
  const after = isCommonJs && then !== '' ? `(async () => {\n${then}\n})();` : then;
  const [ending, runs] = { js: isCommonJs ? ['cjs', 'cjs'] : ['mjs', 'mjs'], ts: ['mts', 'mjs'] }[
    language
  ];
  return { source: `${given}\n${code}${after}\n`, ending, runs };
}

/**
 * Writes a block to a directory as a program; returns its name.
 * @param tsconfig the text of the page's tsconfig.json, if it has one
 */
async function writeProgram(block, cwd, env, tsconfig) {
  const { source, ending, runs } = programOf(block);
  const name = `page.${ending}`;
  writeFileSync(join(cwd, name), inPlace(source, cwd, env));
  if (block.language === 'ts') {
    if (tsconfig) writeFileSync(join(cwd, 'tsconfig.json'), tsconfig);
    const args = tsconfig ? [TSC] : [TSC, ...TSC_OPTIONS.split(' '), '--ignoreConfig', name];
    const { code, stdout } = await run(process.execPath, args, { cwd });
    assert.equal(code, 0, stdout);
  }
  return `page.${runs}`;
}

/**
 * @param options.schema the block of a Prisma schema, if the page has one
 * @param options.modules a folder node_modules with packages that the block imports
 * @param options.tsconfig the text of the page's tsconfig.json, if it has one
 */
async function runProgram(block, env, { schema, modules, tsconfig } = {}) {
  const { page, code, then = '' } = block;
  await asReader(page, modules, async (cwd) => {
    if (schema) await preparePrisma(cwd, schema, env);
    const program = await writeProgram(block, cwd, env, tsconfig);
    const printed = printedBy(code).map(shape);
    const all = (code.match(/console\.log\(/g) ?? []).length;
    // With a `then`, that closes the server.
    const isServer = /createServer\(/.test(code) && then === '';
    const isCluster = /cluster\.fork\(/.test(code); // each worker prints its own
    const isTest = /'node:test'|registerContract\(/.test(code);
    const ended = await run(process.execPath, [program], {
      cwd,
      env,
      isDone: (lines) => isServer && printed.every((line) => lines.includes(line)),
    });
    const isEnded = isServer && ended.signal === 'SIGTERM';
    assert.ok(ended.code === 0 || isEnded, `${ended.signal ?? ended.code} ${ended.stderr}`);
    const missing = printed.filter((line) => !ended.lines.includes(line));
    assert.deepEqual(missing, [], `printed: ${ended.stdout}${ended.stderr}`);
    if (!isServer && !isCluster && !isTest && printed.length === all)
      assert.deepEqual(ended.lines, [...printed, '']);
  });
}

/** The file that a block is, by its first line; undefined for a block that is a program of its own. */
function fileOf({ code }) {
  return /^\/\/ ([\w.]+)\n/.exec(code)?.[1];
}

/** By test runner: the command, and which files of a page are for it. */
const RUNNERS = {
  jest: { args: ['node_modules/jest/bin/jest.js', '--ci', '--transform={}'], isFile: /\.cjs$/ },
  vitest: { args: ['node_modules/vitest/vitest.mjs', 'run'], isFile: /\.mjs$/ },
};

/** Runs programs, one after the other, in a directory with the files of a page. Returns what they have printed. */
async function runFiles(page, programs, env) {
  let printed = '';
  await asReader(page, undefined, async (cwd) => {
    for (const block of blocksOf(page).filter(fileOf)) {
      writeFileSync(join(cwd, fileOf(block)), block.given + block.code + block.then);
    }
    for (const args of programs) {
      const { code, stdout, stderr } = await run(process.execPath, args, { cwd, env });
      assert.equal(code, 0, stdout + stderr);
      printed += stdout;
    }
  });
  return printed;
}

/** Runs the tests of a page by a test runner. */
async function runTests(page, runner) {
  const { args, isFile } = RUNNERS[runner];
  await asReader(page, undefined, async (cwd) => {
    mkdirSync(join(cwd, 'node_modules'));
    const from = join(__dirname, 'runners', runner, 'node_modules', runner);
    symlinkSync(from, join(cwd, 'node_modules', runner));
    writeFileSync(join(cwd, 'package.json'), '{ "private": true, "type": "module" }');
    const files = blocksOf(page).filter((block) => isFile.test(fileOf(block)));
    for (const block of files) writeFileSync(join(cwd, fileOf(block)), block.code);
    const ended = await run(process.execPath, args, { cwd, env: { NO_COLOR: '1' } });
    const said = ended.stdout + ended.stderr;
    assert.equal(ended.code, 0, said);
    assert.doesNotMatch(said, /not exit/);
    const tests = files.flatMap(({ code }) => code.match(/^test\(/gm) ?? []).length;
    assert.match(said, new RegExp(`Tests:? +${tests} passed`));
  });
}

/** `npx snowdrift` is this one, `npm` is asked for nothing that there is not. */
const NPX = `#!/usr/bin/env node
const [name, ...args] = process.argv.slice(2);
if (name !== 'snowdrift') throw new Error('npx ' + name);
const manifest = require.resolve('snowdrift/package.json', { paths: [process.cwd()] });
process.argv.splice(1, process.argv.length, manifest.replace('package.json', 'js/cli/main.js'), ...args);
require('node:module').runMain();
`;
const NPM = `#!/usr/bin/env node
const { name, scripts, ...manifest } = require(${JSON.stringify(join(root, 'package.json'))});
const ofOrms = ${JSON.stringify(['prisma', 'kysely'].map((orm) => join(modulesOf(orm), '../package.json')))}.map((path) => require(path).dependencies);
const packages = Object.assign({ [name]: 1 }, manifest.devDependencies, manifest.peerDependencies, ...ofOrms);
const [verb, ...args] = process.argv.slice(2);
const known = { install: packages, run: scripts, test: scripts, pack: {} }[verb];
const nameOf = ${nameOf};
const unknown = args.filter((arg) => !arg.startsWith('-') && !Object.hasOwn(known, nameOf(arg)));
if (unknown.length > 0) throw new Error('npm ' + verb + ' knows no ' + unknown);
`;

async function runShell({ page, code, given }, env) {
  await asReader(page, undefined, async (cwd) => {
    const bin = join(cwd, 'bin');
    mkdirSync(bin);
    for (const [name, script] of Object.entries({ npx: NPX, npm: NPM })) {
      writeFileSync(join(bin, name), script);
      chmodSync(join(bin, name), 0o755);
    }
    const PATH = `${bin}:${process.env.PATH}`;
    const isServer = / serve\b/.test(code);
    const ended = await run('sh', ['-e', '-c', inPlace(`${given}\n${code}`, cwd, env)], {
      cwd,
      env: { ...env, PATH },
      isDone: (lines) => isServer && lines.some((line) => line.includes('http://')),
    });
    assert.ok(ended.code === 0 || isServer, `${ended.stdout}${ended.stderr}`);
    assert.ok(!isServer || /http:/.test(ended.stdout), `${ended.stdout}${ended.stderr}`);
  });
}

/** Runs SQL on PostgreSQL, after a shell has run what is given. Behind a statement may be its first value, `-- Ada`. */
async function runSql({ page, code, given }, env) {
  await runShell({ page, code: given, given: '' }, env);
  const client = new Client({ connectionString: env.DATABASE_URL });
  await client.connect();
  try {
    await client.query("SET TIME ZONE 'UTC'");
    const types = { getTypeParser: () => String };
    for (const [, text, printed] of code.matchAll(/([^;]+);(?: -- (.*))?\n/g)) {
      const { rows } = await client.query({ text, types, rowMode: 'array' });
      if (printed !== undefined) assert.equal(rows[0]?.[0], printed, text);
    }
  } finally {
    await client.end();
  }
}

/** The environment that a file of an orchestrator gives its containers, as that would fill it in. */
function environmentIn({ code }) {
  const environment = {};
  for (const document of yaml.parseAllDocuments(code, { strict: true })) {
    assert.deepEqual(document.errors, []);
    collect(document.toJS());
  }
  return environment;

  function collect(part) {
    if (part === null || typeof part !== 'object') return;
    if (Array.isArray(part.env)) for (const { name, value } of part.env) set(name, value);
    else if (part.env ?? part.environment) {
      for (const [name, value] of Object.entries(part.env ?? part.environment)) set(name, value);
    }
    Object.values(part).forEach(collect);
  }

  function set(name, value) {
    if (value !== undefined) environment[name] = String(value);
  }
}

module.exports = {
  anchorsOf,
  blocksOf,
  environmentIn,
  fileOf,
  query,
  runFiles,
  runProgram,
  runShell,
  runSql,
  runTests,
  within,
};
