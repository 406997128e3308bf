'use strict';
// The blocks of code in a page, and how each is run as its reader would. What a reader would have around
// a block, and the page need not show, stands before and behind it in comments that are not rendered:
// <!-- given: ... --> and <!-- then: ... -->

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} = require('node:fs');
const { join } = require('node:path');

const { Client } = require('pg');
const yaml = require('yaml');

const { generatePrisma, modulesOf } = require('./orms.js');

const root = join(__dirname, '..');

/** How long a block may take, ms. */
const PATIENCE = 60_000;

const BLOCK =
  /(?:<!-- given:\s*([^>]*?)-->\s*)?^```(\w*)\n([\s\S]*?)^```$(?:\s*<!-- then:\s*([\s\S]*?)-->)?/gm;

/** The blocks of a page in order: `line`, `language`, `code`, what is `given`, and what comes `then`. */
function blocksOf(page) {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(BLOCK)].map(({ index, ...match }) => {
    const { 0: all, 1: given = '', 2: language, 3: code, 4: then = '' } = match;
    const before = text.slice(0, index + all.lastIndexOf(`\`\`\`${language}\n${code}`));
    return { line: before.split('\n').length, language, code, given, then };
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

/** Where a reader's directories and servers stand here. */
function inPlace(code, cwd, { DATABASE_URL, REDIS_URL }) {
  return code
    .replaceAll('/var/lib/app/ids', join(cwd, 'ids'))
    .replaceAll('postgres://127.0.0.1/app', DATABASE_URL)
    .replaceAll('redis://127.0.0.1', REDIS_URL);
}

/** Runs a program until it ends, or until it has printed all that it will: then it is told to end. */
async function run(command, args, { cwd, env, isDone = () => false }) {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, detached: true });
  const output = { stdout: '', stderr: '' };
  const lines = () => output.stdout.split('\n').map(shape);
  let isTold = false;
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      output[stream] += text;
      if (isTold || !isDone(lines())) return;
      isTold = true;
      process.kill(-child.pid, 'SIGTERM');
    });
  }
  const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), PATIENCE);
  const [code, signal] = await new Promise((resolve) =>
    child.once('close', (...how) => resolve(how)),
  );
  clearTimeout(timer);
  return { code, signal, ...output, lines: lines() };
}

const TSC = join(root, 'node_modules/typescript/bin/tsc');
const TSC_OPTIONS =
  '--module node20 --target es2022 --strict --experimentalDecorators --emitDecoratorMetadata --types node --skipLibCheck --rewriteRelativeImportExtensions';

async function query(connectionString, sql) {
  const client = new Client({ connectionString });
  await client.connect();
  await client.query(sql);
  await client.end();
}

/** What a user of Prisma has done before: installed it, created the tables, generated the client. */
async function preparePrisma(cwd, { code, given }, { DATABASE_URL }) {
  mkdirSync(join(cwd, 'node_modules'));
  symlinkSync(join(modulesOf('prisma'), '@prisma'), join(cwd, 'node_modules/@prisma'));
  symlinkSync(root, join(cwd, 'node_modules/snowdrift'));
  writeFileSync(join(cwd, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(cwd, 'schema.prisma'), code);
  await query(DATABASE_URL, given);
  await generatePrisma(cwd);
}

/**
 * JavaScript with `require` is the body of a function; other JavaScript, and TypeScript, a module.
 * @param schema the block of a Prisma schema, if the page has one
 */
async function runProgram({ language, code, given, then }, env, schema) {
  const isCommonJs = language === 'js' && /\brequire\(|module\.exports/.test(given + code);
  const body = `${given}\n${code}${then}\n`;
  const source = isCommonJs ? `(async () => {\n${body}})();\n` : body;
  const [name, program] = {
    js: isCommonJs ? ['page.cjs', 'page.cjs'] : ['page.mjs', 'page.mjs'],
    ts: ['page.mts', 'page.mjs'],
  }[language];
  await within(async (cwd) => {
    if (schema) await preparePrisma(cwd, schema, env);
    writeFileSync(join(cwd, name), inPlace(source, cwd, env));
    if (language === 'ts') {
      const args = [TSC, ...TSC_OPTIONS.split(' '), '--ignoreConfig', name];
      const { code, stdout } = await run(process.execPath, args, { cwd });
      assert.equal(code, 0, stdout);
    }
    const printed = printedBy(code).map(shape);
    const all = (code.match(/console\.log\(/g) ?? []).length;
    const isServer = /forkWorkers\(|createServer\(/.test(code);
    const ended = await run(process.execPath, [program], {
      cwd,
      env,
      isDone: (lines) => isServer && printed.every((line) => lines.includes(line)),
    });
    assert.ok(ended.code === 0 || isServer, `${ended.signal ?? ended.code} ${ended.stderr}`);
    const missing = printed.filter((line) => !ended.lines.includes(line));
    assert.deepEqual(missing, [], `printed: ${ended.stdout}${ended.stderr}`);
    if (!isServer && printed.length === all) assert.deepEqual(ended.lines, [...printed, '']);
  });
}

/** `npx snowdrift` is this one, `npm` is asked for nothing that there is not. */
const NPX = `#!/usr/bin/env node
const [name, ...args] = process.argv.slice(2);
if (name !== 'snowdrift') throw new Error('npx ' + name);
process.argv.splice(2, process.argv.length, ...args);
require(${JSON.stringify(join(root, 'js/cli/main.js'))});
`;
const NPM = `#!/usr/bin/env node
const { name, scripts, peerDependencies } = require(${JSON.stringify(join(root, 'package.json'))});
const [verb, ...args] = process.argv.slice(2);
const known = { install: { [name]: 1, ...peerDependencies }, run: scripts, test: scripts }[verb];
const unknown = args.filter((arg) => !arg.startsWith('-') && !Object.hasOwn(known, arg));
if (unknown.length > 0) throw new Error('npm ' + verb + ' knows no ' + unknown);
`;

async function runShell({ code, given }, env) {
  await within(async (cwd) => {
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
    if (value !== undefined) environment[name] = String(value).replace('{{.Task.Slot}}', '3');
  }
}

module.exports = { blocksOf, environmentIn, query, runProgram, runShell };
