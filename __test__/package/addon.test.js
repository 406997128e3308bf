'use strict';
// What users read where an addon does not load. The packages are those that `npm run package` makes, in a project of their own,
// and at the end those of a release.

const assert = require('node:assert/strict');
const {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { packageOf, targetHere } = require('../../js/runtime/addon.js');
const { Packed, isBuilt, run, runIn } = require('../support/package/tarball.js');

const here = targetHere();
const other = here === 'linux-arm64-gnu' ? 'darwin-arm64' : 'linux-arm64-gnu';

/** As its Node calls it: 20 and 22 in its first versions have it as an experiment. */
const PERMISSION = process.allowedNodeEnvironmentFlags.has('--permission')
  ? '--permission'
  : '--experimental-permission';

/** Mounts a file system with noexec, copies the project to it, and runs it there. */
const NOEXEC = `
  mount -t tmpfs -o noexec none "$1" && cp -R "$2/node_modules" "$2/app.js" "$1" && cd "$1" && exec "$3" app.js`;

const inNamespace = (...command) =>
  run('unshare', ['--user', '--map-root-user', '--mount', ...command]);

function noNamespaces() {
  const { status } = inNamespace('sh', '-c', 'mount -t tmpfs none /mnt');
  return status === 0 ? false : 'unshare cannot make namespaces here';
}

const ADDONS = [
  {
    name: 'snowdrift',
    source: '.',
    code: 'js/runtime',
    call: 'console.log(typeof SnowFlake.nextId());',
    loaded: /^bigint\n$/,
    pack: 'npm run build && npm run package',
  },
  {
    name: 'snowdrift-zookeeper',
    source: './packages/zookeeper',
    code: '',
    call: "await SnowFlake.lease('zookeeper://127.0.0.1:1', { datacenterId: 1 });",
    loaded: /^SnowFlakeError ERR_SNOWFLAKE_STORE /,
    pack: 'npm run build -- --zookeeper && npm pack ./packages/zookeeper',
  },
];

for (const { name, source, code, call, loaded, pack } of ADDONS) {
  const isHere = isBuilt(source) || 'it is not built: npm run build -- --zookeeper';
  describe(`the addon of ${name}`, { skip: isHere !== true && isHere }, () => {
    let packed;
    let project;
    let addon;
    before(() => {
      packed = new Packed(...new Set(['.', source]));
      project = packed.project();
      addon = join(project, 'node_modules', name, code, `${name}.${here}.node`);
      const app = `(async () => { const { SnowFlake } = require('snowdrift'); ${call} })()
        .catch(({ name, code, message, cause }) => console.log(name, code, message, cause?.code));`;
      writeFileSync(join(project, 'app.js'), app);
    });
    after(() => packed?.remove());

    const runApp = (...flags) => runIn(project, [...flags, 'app.js']);

    function messageIn({ stdout, stderr }) {
      const [, message] = /^SnowFlakeError ERR_SNOWFLAKE_ADDON (.*)/.exec(stdout) ?? [];
      assert.notEqual(message, undefined, stdout + stderr);
      return message;
    }

    /** The message of ERR_SNOWFLAKE_ADDON, with the addon as `change` leaves it. */
    function refusalAfter(change, ...flags) {
      const good = readFileSync(addon);
      try {
        change();
        return messageIn(runApp(...flags));
      } finally {
        // As a new file: the old one may be in use.
        rmSync(addon, { force: true });
        writeFileSync(addon, good);
      }
    }

    test('loads from the packed package', () => {
      const { stdout, stderr } = runApp();
      assert.match(stdout, loaded, stderr);
    });

    test('packed on another platform: for which, and to pack it on this one', () => {
      const foreign = addon.replace(here, other);
      const message = refusalAfter(() => {
        copyFileSync(addon, foreign);
        rmSync(addon);
      });
      rmSync(foreign);
      const start = `this ${name} was packed for ${other}, and runs on ${here}: pack it there, in a clone, by \`${pack}\`, and install that file. `;
      assert.equal(message.slice(0, start.length), start);
    });

    test('packed before it was built: to build it', () => {
      const message = refusalAfter(() => rmSync(addon));
      const start = `this ${name} was packed without an addon, and runs on ${here}: pack it there, in a clone, by \`${pack}\``;
      assert.equal(message.slice(0, start.length), start);
    });

    test('a damaged one: which file, and to install it again', () => {
      const message = refusalAfter(() => writeFileSync(addon, 'damaged'));
      const start = `cannot load the addon of ${name} for ${here}: `;
      assert.equal(message.slice(0, start.length), start);
      assert.ok(process.platform === 'win32' || message.includes(addon), message);
      assert.match(
        message,
        /; else install it again\. .*installation\.md has each case.* ERR_DLOPEN_FAILED$/,
      );
    });

    test('on a file system with noexec: to install it on another one', {
      skip: noNamespaces(),
    }, () => {
      const place = join(packed.directory, 'noexec');
      mkdirSync(place);
      const message = messageIn(
        inNamespace('sh', '-c', NOEXEC, 'sh', place, project, process.execPath),
      );
      assert.match(
        message,
        /If its file system is mounted with noexec, install it on another one; /,
      );
    });

    // snowdrift's own is loaded first.
    if (name !== 'snowdrift') return;

    test('Node with --no-addons: to start it without', () => {
      const message = messageIn(runApp('--no-addons'));
      assert.match(
        message,
        /is disabled\. Start Node without --no-addons, .* ERR_DLOPEN_DISABLED$/,
      );
    });

    test("Node's permissions: to allow addons", () => {
      const read = `--allow-fs-read=${packed.directory}`;
      assert.equal(runApp(PERMISSION, read, '--allow-addons').stdout, 'bigint\n');
      const message = messageIn(runApp(PERMISSION, read));
      assert.match(
        message,
        /\. Start Node without --no-addons, and with --allow-addons if it has --permission\. /,
      );
    });

    test("Node's permissions: to let Node read the addon, where it is another package", () => {
      const installed = join(project, 'node_modules/@snowdrift', here);
      mkdirSync(installed, { recursive: true });
      writeFileSync(join(installed, 'index.js'), '');
      const allowed = ['app.js', 'node_modules/snowdrift'].map((path) => join(project, path));
      const read = allowed.map((path) => `--allow-fs-read=${path}`);
      const message = refusalAfter(() => rmSync(addon), PERMISSION, ...read, '--allow-addons');
      assert.match(
        message,
        /Let Node read .*: start it with --allow-fs-read=FOLDER, .* ERR_ACCESS_DENIED$/,
      );
    });
  });
}

/** Prints the addons that are asked for, then the error, if there is one. */
const ASKING = `
  const Module = require('node:module');
  const { _load } = Module;
  const asked = [];
  Module._load = (name, ...rest) => {
    if (name.startsWith('@snowdrift/') || name.endsWith('.node')) asked.push(name);
    return _load(name, ...rest);
  };
  let failed = [];
  try {
    require('snowdrift');
  } catch ({ code, message, cause }) {
    failed = [code, message, cause.code];
  }
  console.log(JSON.stringify({ asked, failed }));
`;

describe('the addon of a release', () => {
  const project = mkdtempSync(join(tmpdir(), 'snowdrift-released-'));
  const installed = join(project, 'node_modules');
  const platform = packageOf('snowdrift', here);
  before(async () => {
    const { assemble } = await import('../../scripts/packages.mjs');
    assemble(join(__dirname, '../../js/runtime'), installed);
    writeFileSync(join(project, 'app.js'), ASKING);
  });
  after(() => rmSync(project, { recursive: true, force: true, maxRetries: 3 }));

  function answer() {
    const { stdout, stderr } = runIn(project, ['app.js']);
    assert.notEqual(stdout, '', stderr);
    return JSON.parse(stdout);
  }

  test("is asked for in its platform's package alone", () => {
    const { asked, failed } = answer();
    assert.deepEqual(failed, []);
    assert.equal(asked.at(-1), platform);
    // On Linux the one for the other libc may be tried first.
    const isPackage = (name) => name.startsWith(packageOf('snowdrift', `${process.platform}-`));
    assert.deepEqual(
      asked.filter((name) => !isPackage(name)),
      [],
    );
  });

  test('whose package is not installed: to install it', () => {
    rmSync(join(installed, platform), { recursive: true });
    const [code, message, cause] = answer().failed;
    assert.deepEqual([code, cause], ['ERR_SNOWFLAKE_ADDON', 'MODULE_NOT_FOUND']);
    const start = `the package ${platform}, the addon of snowdrift for this platform, is not installed. `;
    assert.equal(message.slice(0, start.length), start);
  });
});
