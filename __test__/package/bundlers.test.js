'use strict';
// Runs docs/bundlers.md in an empty project: with the package that `npm run package` makes, and with those of a release. What is
// bundled with its addon then runs where there is no node_modules.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { missing, freePort, Server } = require('../support/lease/servers.js');
const { Scratch, skipped } = require('../support/package/scratch.js');
const { pack } = require('../support/package/tarball.js');
const { blocksOf } = require('../support/page.js');

const PAGE = 'docs/bundlers.md';
const TOOLS = [
  'esbuild@0.28.2',
  'webpack@5.112.2',
  'webpack-cli@7.3.1',
  'node-loader@2.1.0',
  '@rspack/core@2.3.3',
  '@rspack/cli@2.2.8',
  '@vercel/ncc@0.45.0',
  'postject@1.0.0-alpha.6',
  'next@16.4.6',
  'react@19.3.1',
  'react-dom@19.3.1',
];
/** What an application installs for a lease. */
const CLIENTS = ['pg@8.23.1', 'mysql2@3.24.5', 'ioredis@5.11.1'];

/** The longest wait for a server, ms. */
const PATIENCE = 300_000;

const SERVER = 'server.mjs';
const node = { datacenterId: '1', workerId: '3' };

/** By what is in a command of the page: the program that it makes, and whether that needs no node_modules. */
const MADE = [
  { command: '--external:snowdrift', program: ['dist/server.mjs'] },
  { command: 'npx webpack --config webpack.config.mjs', program: ['dist/server.cjs'] },
  { command: 'npx rspack --config webpack.config.mjs', program: ['dist/server.cjs'] },
  { command: 'next build' },
  { command: '--outfile=alone/server.cjs', program: ['alone/server.cjs'], isAlone: true },
  {
    command: 'npx webpack --config webpack.alone.config.mjs',
    program: ['alone-by-webpack/server.cjs'],
    isAlone: true,
  },
  {
    command: 'npx rspack --config webpack.alone.config.mjs',
    program: ['alone-by-webpack/server.cjs'],
    isAlone: true,
  },
  { command: 'npx ncc', program: ['alone-by-ncc/index.mjs'], isAlone: true },
  { command: 'postject', program: 'single/server', isAlone: true },
];

const blocks = blocksOf(PAGE);
const commands = blocks.filter(({ language }) => language === 'sh').map(({ code }) => code.trim());
/** Each is named by its first line, as a comment. JSON has none. */
const files = blocks
  .filter(({ language }) => language !== 'sh')
  .map(({ language, code }) => ({
    file: language === 'json' ? 'sea-config.json' : code.match(/^\/\/ (\S+)\n/)[1],
    text: code,
  }));

/** What a server answers, when it has started. */
async function answerOf(url, server) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    try {
      return await (await fetch(url, { signal: AbortSignal.timeout(PATIENCE) })).json();
    } catch (failure) {
      if (server.exitCode !== null || Date.now() > end) throw failure;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

test('each command of the page is run', () => {
  const runs = commands.map((line) => MADE.filter(({ command }) => line.includes(command)).length);
  assert.deepEqual(
    runs,
    commands.map(() => 1),
  );
  assert.equal(MADE.length, commands.length);
});

describe(PAGE, { skip: skipped(), concurrency: 1 }, () => {
  const scratch = new Scratch();
  let project;
  let packed;
  before(async () => {
    await scratch.publish();
    packed = pack(scratch.directory, '.');
    project = join(await scratch.tools('bundlers', TOOLS), '..');
  });
  after(() => scratch.remove());

  const shell = (command, env) => scratch.run(project, ['sh', '-ec', command], env);
  const commandWith = (text) => commands.find((line) => line.includes(text));
  const write = (file, text) => {
    mkdirSync(dirname(join(project, file)), { recursive: true });
    writeFileSync(join(project, file), text);
  };

  let folders = 0;

  /**
   * What the program of a command prints. Alone, it runs in a folder outside of the project.
   * @param filter which files are deployed there
   */
  async function outputOf({ program, isAlone }, { env = node, filter = () => true } = {}) {
    let directory = project;
    const path = typeof program === 'string' ? program : program[0];
    if (isAlone) {
      directory = scratch.project(`elsewhere-${folders++}`);
      cpSync(join(project, dirname(path)), join(directory, dirname(path)), {
        recursive: true,
        filter,
      });
    }
    const run = typeof program === 'string' ? [join(directory, path)] : [process.execPath, path];
    const { stdout } = await scratch.run(directory, run, env);
    rmSync(join(project, dirname(path)), { recursive: true });
    return stdout;
  }

  for (const { what, isPacked, install } of [
    { what: 'as `npm run package` packs it', isPacked: true, install: () => packed },
    { what: 'as a release has it', isPacked: false, install: () => 'snowdrift' },
  ]) {
    describe(what, { concurrency: 1 }, () => {
      before(async () => {
        await scratch.run(project, ['npm', 'uninstall', 'snowdrift']);
        await scratch.run(project, ['npm', 'install', install()]);
        const code = readdirSync(join(project, 'node_modules/snowdrift/js/runtime'));
        assert.equal(
          code.some((name) => name.endsWith('.node')),
          isPacked,
        );
        for (const { file, text } of files) write(file, text);
      });

      for (const made of MADE.filter(({ program }) => program !== undefined)) {
        test(made.command, async () => {
          await shell(commandWith(made.command));
          assert.equal(await outputOf(made), 'bigint\n');
          if (!made.isAlone) return;
          // What comes of it where the addon is not deployed.
          await shell(commandWith(made.command));
          await assert.rejects(
            outputOf(made, { filter: (path) => !path.endsWith('.node') }),
            /SnowFlakeError\]?: cannot load the addon of snowdrift for .* in this bundle: .*\. Deploy the \.node file /,
          );
        });
      }

      test('Next.js traces the addon into its standalone server', async () => {
        await shell(commandWith('next build'));
        // What a container would have.
        const directory = scratch.project(`container-${folders++}`);
        cpSync(join(project, '.next/standalone'), directory, { recursive: true });
        const port = await freePort();
        const env = { ...process.env, ...node, PORT: String(port), HOSTNAME: '127.0.0.1' };
        const server = spawn(process.execPath, ['server.js'], { cwd: directory, env });
        try {
          const { id } = await answerOf(`http://127.0.0.1:${port}/id`, server);
          assert.match(id, /^\d{18}$/);
        } finally {
          server.kill();
        }
      });
    });
  }

  test('Next.js traces the clients that are installed', async () => {
    await scratch.run(project, ['npm', 'install', packed, ...CLIENTS]);
    for (const { file, text } of files) write(file, text);
    await shell(commandWith('next build'));
    const traced = readdirSync(join(project, '.next/standalone/node_modules'));
    for (const name of ['pg', 'mysql2', 'ioredis']) assert.ok(traced.includes(name), name);
  });

  test('a bundle leases by a client that was installed when it was built', {
    skip: missing('postgres'),
  }, async (t) => {
    const server = await Server.start('postgres');
    t.after(() => server.stop());
    await scratch.run(project, ['npm', 'install', packed, ...CLIENTS]);
    write(
      SERVER,
      `import { SnowFlake } from 'snowdrift';
      SnowFlake.lease(process.env.DATABASE_URL, { datacenterId: 1 }).then(async (flake) => {
        console.log(typeof flake.nextId());
        await flake.close();
      });`,
    );
    for (const made of MADE.filter(({ isAlone }) => isAlone)) {
      await shell(commandWith(made.command));
      const env = { DATABASE_URL: server.url };
      assert.equal(await outputOf(made, { env }), 'bigint\n', made.command);
    }
  });
});
