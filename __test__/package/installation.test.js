'use strict';
// The blocks of docs/installation.md, with the package managers: from a registry, and with the file that `npm pack`
// makes. The steps of its Dockerfiles run without containers.

const assert = require('node:assert/strict');
const { readFileSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { TARGETS, targetHere } = require('../../js/runtime/addon.js');
const { buildImage } = require('../support/package/dockerfile.js');
const { PNPM, Scratch, YARN, skipped } = require('../support/package/scratch.js');
const { pack } = require('../support/package/tarball.js');
const { blocksOf } = require('../support/page.js');

/** As its Node calls it: 20 has it as an experiment. */
const PERMISSION = process.allowedNodeEnvironmentFlags.has('--permission')
  ? '--permission'
  : '--experimental-permission';

/** Prints an ID. */
const APP = `const { SnowFlake } = require('snowdrift');
SnowFlake.configure({ datacenterId: 1, workerId: 3 });
console.log(SnowFlake.nextIdString());`;

/** Later ones lock all platforms. */
const NPM_10 = 'npm@10.9.3';

const PAGE = 'docs/installation.md';

/** What the stage before one of Alpine runs. */
const [, FOR_ALPINE] = /`(npm ci .*musl)`/.exec(
  readFileSync(join(__dirname, '../..', PAGE), 'utf8'),
);

describe(PAGE, { skip: skipped(), concurrency: 1 }, () => {
  const scratch = new Scratch();
  before(() => scratch.publish());
  after(() => scratch.remove());

  const blocks = blocksOf(PAGE);
  const used = new Set();
  const blockWith = (text) => {
    const block = blocks.find(({ code }) => code.includes(text));
    used.add(block);
    return block.code;
  };
  const addonsIn = (folder) => readdirSync(join(folder, 'node_modules/@snowdrift')).sort();
  const shell = (folder, code, env) => scratch.run(folder, ['sh', '-ec', code], env);
  const here = targetHere();

  async function draws(folder) {
    const node = { datacenterId: '1', workerId: '3' };
    const script = "console.log(typeof require('snowdrift').SnowFlake.nextId())";
    const { stdout } = await scratch.run(folder, [process.execPath, '-e', script], node);
    assert.equal(stdout, 'bigint\n');
  }

  /** The addon's package is not installed, or is that of another libc. */
  const isRefused = (folder) =>
    assert.rejects(
      draws(folder),
      /the package @snowdrift\/\S+, .* is not installed.*Optional dependencies were omitted.*npm install @snowdrift\/\S+@\d.*docs\/installation\.md has each case/,
    );

  test('npm', async () => {
    const project = scratch.project('npm');
    await shell(project, blockWith('npm install snowdrift\n'));
    assert.deepEqual(addonsIn(project), [here]);
    await draws(project);
  });

  test('a packed file, also with the permission model', async () => {
    const project = scratch.project('packed');
    pack(project, '.');
    await shell(project, blockWith('npm install ./snowdrift'));
    await draws(project);
    const { dependencies } = JSON.parse(readFileSync(join(project, 'package.json')));
    assert.deepEqual(dependencies, { snowdrift: 'file:snowdrift-0.1.0.tgz' });
    writeFileSync(join(project, 'app.js'), APP);
    const start = blockWith('--permission').replace('--permission', PERMISSION);
    const { stdout } = await shell(project, start);
    assert.match(stdout, /^\d{18,19}\n$/);
  });

  test('optional dependencies omitted', async () => {
    const project = scratch.project('omitted');
    await scratch.run(project, ['npm', 'install', '--omit=optional', 'snowdrift']);
    await isRefused(project);
    await shell(project, blockWith('--include=optional'));
    await draws(project);
  });

  test('a lock file from another platform, by npm 10', async () => {
    const tools = await scratch.tools('npm-10', [NPM_10]);
    const env = { PATH: `${join(tools, '.bin')}:${process.env.PATH}` };
    const project = scratch.project('foreign');
    const file = join(project, 'package-lock.json');
    const locked = () =>
      Object.keys(JSON.parse(readFileSync(file)).packages).filter((name) =>
        /@snowdrift/.test(name),
      );
    const macOs = ['npm', 'install', '--os=darwin', '--cpu=arm64'];
    await scratch.run(project, [...macOs, 'snowdrift'], env);
    rmSync(file);
    await scratch.run(project, macOs, env);
    assert.deepEqual(locked(), ['node_modules/@snowdrift/darwin-arm64']);
    rmSync(join(project, 'node_modules'), { recursive: true });
    await scratch.run(project, ['npm', 'ci'], env);
    await isRefused(project);
    await shell(project, blockWith('rm -rf'), env);
    await draws(project);
    assert.equal(locked().length, TARGETS.length);
  });

  let count = 0;

  /** Takes the steps of a Dockerfile. Returns the last stage's folder, where its command has run, if it has one. */
  async function build(code, context) {
    const makeFolder = (name) => scratch.project(`stage-${count++}-${name}`);
    const { folder, command } = await buildImage(code, context, { makeFolder, shell });
    if (command === undefined) return folder;
    const { stdout } = await scratch.run(folder, command);
    assert.match(stdout, /^\d{18,19}\n$/);
    return folder;
  }

  test('Docker', async () => {
    const context = scratch.project('context');
    await scratch.run(context, ['npm', 'install', 'snowdrift']);
    writeFileSync(join(context, 'app.js'), APP);
    assert.deepEqual(addonsIn(await build(blockWith('app.js ./'), context)), [here]);
    // Up to the application, which does not run here with the addon for Alpine.
    const [stage] = blockWith('app.js ./').split('\nCOPY app.js');
    const alpine = await build(stage.replace('npm ci --omit=dev', FOR_ALPINE), context);
    assert.deepEqual(addonsIn(alpine), ['linux-x64-musl']);
    await isRefused(alpine);
  });

  test('Docker, with a packed file', async () => {
    const context = scratch.project('packed-context');
    pack(context, '.');
    await shell(context, blockWith('npm install ./snowdrift'));
    writeFileSync(join(context, 'app.js'), APP);
    await draws(await build(blockWith('app.js ./'), context));
  });

  test('another platform', async () => {
    const project = scratch.project('arm64', { dependencies: { snowdrift: '*' } });
    await shell(project, blockWith('--cpu=arm64'));
    assert.deepEqual(addonsIn(project), ['linux-arm64-gnu']);
  });

  test('pnpm and Yarn, for several platforms', async () => {
    const tools = await scratch.tools('installers', [PNPM, YARN]);
    const pnpm = scratch.project('pnpm-several');
    writeFileSync(join(pnpm, 'pnpm-workspace.yaml'), blockWith('pnpm-workspace'));
    const bin = (path) => [process.execPath, join(tools, path)];
    await scratch.run(pnpm, [...bin('pnpm/bin/pnpm.cjs'), 'add', 'snowdrift']);
    const stored = readdirSync(join(pnpm, 'node_modules/.pnpm'));
    const several = TARGETS.filter((target) => /^linux-(x64|arm64)-/.test(target));
    const found = (names) =>
      several.filter((target) => names.some((name) => name.includes(`@snowdrift+${target}@`)));
    assert.deepEqual(found(stored), several);
    const yarn = scratch.project('yarn-several');
    const config = `nodeLinker: node-modules\n${blockWith('yarnrc')}`;
    writeFileSync(join(yarn, '.yarnrc.yml'), config);
    await scratch.run(yarn, [...bin('@yarnpkg/cli-dist/bin/yarn.js'), 'add', 'snowdrift']);
    assert.deepEqual(addonsIn(yarn), several);
  });

  test('offline', async () => {
    const project = scratch.project('offline');
    const [pack, install] = blockWith('npm pack').trim().split('\n');
    await shell(project, pack.replace('linux-x64-gnu', here));
    const cache = { npm_config_cache: join(project, 'empty-cache') };
    await scratch.run(project, ['sh', '-ec', install], cache);
    await draws(project);
  });

  test('each block of the page was run', () => {
    const others = blocks.filter((block) => !used.has(block)).map(({ line }) => line);
    assert.deepEqual(others, []);
  });
});
