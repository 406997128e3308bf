'use strict';
// The packages as users have them: released to a registry, installed by each package manager in an empty
// project, run by each runtime.

const assert = require('node:assert/strict');
const { readFileSync, readdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { TARGETS, packageOf, targetHere } = require('../../js/runtime/addon.js');
const { PNPM, ROOT, Scratch, YARN, skipped } = require('../support/package/scratch.js');

const NODES = ['18.20.8', '20.20.2', '22.23.3', '24.21.0'];
const BUN = '1.4.5';
const DENO = '2.9.6';

const ENTRIES = Object.keys(JSON.parse(readFileSync(join(ROOT, 'package.json'))).exports);

const IN_ORDER = { concurrency: 1 };

/** Asserts that an application drew what it should. */
function assertDrawn({ entries, all, stale, said }, { staleToo = [] } = {}) {
  const missing = Object.entries(entries).filter(([, found]) => typeof found === 'string');
  const loaded = Object.values(entries).filter((found) => Array.isArray(found));
  assert.ok(loaded.every((names) => names.length > 0));
  assert.deepEqual(missing, [
    [
      './typeorm',
      "ERR_SNOWFLAKE_CONFIG: snowdrift/typeorm needs the package 'typeorm': npm install typeorm",
    ],
  ]);
  assert.equal(loaded.length + missing.length, ENTRIES.length - 1);
  assert.equal(all.different, all.drawn);
  assert.ok(all.drawn > 280_000);
  assert.deepEqual([all.types, all.node, all.state], [['bigint'], [1, 0], 'released']);
  assert.deepEqual(
    stale.filter((way) => !staleToo.includes(way)),
    [],
  );
  const packages = ['pg', 'mysql2', 'ioredis', 'snowdrift-zookeeper'];
  for (const [i, name] of packages.entries()) {
    assert.match(said[i], /^SnowFlakeError ERR_SNOWFLAKE_CONFIG: /);
    assert.ok(said[i].endsWith(`needs the package '${name}': npm install ${name}`), said[i]);
  }
}

// Two parts at a time, since they wait for downloads a lot.
describe('the packages', { skip: skipped(), concurrency: 2 }, () => {
  const scratch = new Scratch();
  before(async () => {
    assert.equal((await scratch.publish()).length, 2 * (TARGETS.length + 1));
    // As after a release that broke off.
    assert.deepEqual(await scratch.publish(), []);
  });
  after(() => scratch.remove());

  /** Runs the application in CommonJS, then in ESM, then a cluster. */
  async function runApplication(project, runtime, options) {
    const reports = [];
    for (const file of ['main.cjs', 'main.mjs']) {
      const report = await scratch.report(project, [...runtime, file]);
      assertDrawn(report, options);
      assert.ok(report.recorded.rises);
      reports.push(report.recorded);
    }
    // The state directory outlives the process.
    assert.ok(BigInt(reports[1].first) > BigInt(reports[0].last));
    const { drawn, different } = await scratch.report(project, [...runtime, 'cluster.cjs']);
    assert.deepEqual([drawn, different], [40_000, 40_000]);
  }

  describe('as installed by', IN_ORDER, () => {
    let tools;
    before(async () => {
      tools = await scratch.tools('managers', [PNPM, YARN]);
    });

    const node = [process.execPath];
    const pnpm = () => [...node, join(tools, 'pnpm/bin/pnpm.cjs')];
    const yarn = () => [...node, join(tools, '@yarnpkg/cli-dist/bin/yarn.js')];

    async function drawsByCommand(project, command, env) {
      const args = ['next', '--datacenter-id', '1', '--worker-id', '3'];
      const { stdout } = await scratch.run(project, [...command, ...args], env);
      assert.match(stdout, /^\d{18}\n$/);
    }

    /** The package that a lease from ZooKeeper needs is found where it is installed. */
    async function findsPeer(project, runtime) {
      const script = `require('snowdrift').SnowFlake.lease('zookeeper://127.0.0.1:1', { datacenterId: 1 })
        .catch(({ code }) => console.log(code))`;
      const { stdout } = await scratch.run(project, [...runtime, '-e', script]);
      assert.equal(stdout, 'ERR_SNOWFLAKE_STORE\n');
    }

    test('npm', async () => {
      const project = scratch.project('npm');
      await scratch.run(project, ['npm', 'install', 'snowdrift']);
      const installed = (folder) =>
        readdirSync(join(project, 'node_modules', folder)).filter((name) => !name.startsWith('.'));
      assert.deepEqual(installed('.'), ['@snowdrift', 'snowdrift']);
      // Of all platforms', only this one's.
      assert.deepEqual(installed('@snowdrift'), [targetHere()]);
      for (const name of ['snowdrift', packageOf('snowdrift', targetHere())]) {
        const has = (file) => installed(name).includes(file);
        assert.ok(has('LICENSE') && has('README.md'), name);
      }
      await runApplication(project, node);
      await drawsByCommand(project, ['npx', 'snowdrift']);
      await scratch.run(project, ['npm', 'install', 'snowdrift-zookeeper']);
      await findsPeer(project, node);
    });

    test('pnpm', async () => {
      const project = scratch.project('pnpm');
      await scratch.run(project, [...pnpm(), 'add', 'snowdrift']);
      await runApplication(project, node);
      await drawsByCommand(project, [...pnpm(), 'exec', 'snowdrift']);
      await scratch.run(project, [...pnpm(), 'add', 'snowdrift-zookeeper']);
      await findsPeer(project, node);
    });

    test('Yarn, in node_modules', async () => {
      const project = scratch.project('yarn');
      const env = { YARN_NODE_LINKER: 'node-modules' };
      await scratch.run(project, [...yarn(), 'add', 'snowdrift'], env);
      await runApplication(project, node);
      await drawsByCommand(project, [...yarn(), 'snowdrift'], env);
    });

    test("Yarn, by Plug'n'Play", async () => {
      const project = scratch.project('pnp');
      // ESM is loaded where this is on, or where a workspace has "type": "module".
      const env = { YARN_NODE_LINKER: 'pnp', YARN_PNP_ENABLE_ESM_LOADER: 'true' };
      await scratch.run(project, [...yarn(), 'add', 'snowdrift'], env);
      assert.deepEqual(
        readdirSync(project).filter((name) => name === 'node_modules'),
        [],
      );
      // The addon cannot be loaded from within an archive.
      const unplugged = readdirSync(join(project, '.yarn/unplugged'));
      assert.equal(unplugged.length, 1);
      assert.match(unplugged[0], new RegExp(`^@snowdrift-${targetHere()}-npm-`));
      await runApplication(project, [...yarn(), 'node']);
      await drawsByCommand(project, [...yarn(), 'snowdrift'], env);
      await scratch.run(project, [...yarn(), 'add', 'snowdrift-zookeeper'], env);
      await findsPeer(project, [...yarn(), 'node']);
    });
  });

  describe('as run by', IN_ORDER, () => {
    let project;
    let tools;
    before(async () => {
      const arch = process.arch;
      const nodes = NODES.map((version) => {
        const name = `node-linux-${arch}`;
        return `node-${version.split('.')[0]}@npm:${name}@${version}`;
      });
      const bun = `@oven/bun-linux-${arch === 'arm64' ? 'aarch64' : arch}@${BUN}`;
      const deno = `@deno/linux-${arch}-glibc@${DENO}`;
      tools = await scratch.tools('runtimes', [...nodes, `bun@npm:${bun}`, `deno@npm:${deno}`]);
      project = scratch.project('runtimes-project');
      await scratch.run(project, ['npm', 'install', 'snowdrift']);
    });

    for (const version of NODES) {
      const [major] = version.split('.');
      test(`Node ${major}`, async () => {
        const node = join(tools, `node-${major}/bin/node`);
        const { stdout } = await scratch.run(project, [node, '--version']);
        assert.equal(stdout, `v${version}\n`);
        await runApplication(project, [node]);
      });
    }

    test('Bun', async () => {
      await runApplication(project, [join(tools, 'bun/bin/bun'), 'run']);
    });

    test('Deno', async () => {
      // What docs/installation.md names; besides, for the application itself, net and run.
      const allowed = ['ffi', 'read', 'env', 'sys', 'net', 'run'];
      const run = (...names) => [
        ...[join(tools, 'deno/deno'), 'run', '--no-prompt'],
        ...names.map((what) => `--allow-${what}`),
      ];
      const first =
        "const { SnowFlake } = require('snowdrift'); console.log(typeof SnowFlake.nextId());";
      writeFileSync(join(project, 'first.cjs'), first);
      const env = { datacenterId: '1', workerId: '3' };
      const alone = [...run('ffi', 'read', 'env'), 'first.cjs'];
      assert.equal((await scratch.run(project, alone, env)).stdout, 'bigint\n');
      const deno = run(...allowed);
      // Handlers of requests that arrive together are continuations of one turn: the README says so.
      await runApplication(project, deno, { staleToo: ['handler'] });
    });
  });
});
