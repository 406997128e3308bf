'use strict';
// Loads this platform's addon of snowdrift or of snowdrift-zookeeper, or reports the missing package.

const { readdirSync } = require('node:fs');
const { basename, dirname, join } = require('node:path');

const { SnowFlakeError, isMissing } = require('../messages/errors.js');

/** @import { Failure } from '../types.js' */
/** @typedef {Failure & { resource?: string }} AddonFailure */

const { platform, arch } = process;

/** The platforms with an addon: system, processor, ABI. */
const TARGETS = [
  'darwin-arm64',
  'darwin-x64',
  'linux-arm-gnu',
  'linux-arm-musl',
  'linux-arm64-gnu',
  'linux-arm64-musl',
  'linux-x64-gnu',
  'linux-x64-musl',
  'win32-arm64-msvc',
  'win32-x64-msvc',
];

/**
 * The package of an addon: @snowdrift/linux-x64-gnu, @snowdrift/zookeeper-linux-x64-gnu.
 * @type {(name: string, target: string) => string}
 * @param name the package that the addon belongs to
 */
const packageOf = (name, target) => `@${name}-${target}`.replace('-', '/');

/** Whether this code is in a bundle of the application: then it is in another file. In the package it is in core-*.js. */
const isBundled = () =>
  typeof __filename !== 'string' ||
  basename(dirname(__filename)) !== 'runtime' ||
  !['addon.js', 'core'].includes(basename(__filename).split('-', 1)[0]);

/** The system's name of the processor, from Node 18.9 on. It loads node:os only if it is needed. */
const machineName = () => require('node:os').machine?.() ?? arch;

/** Whether the processor is ARMv6 or older. It lacks instructions that the addon for arm needs. */
const isOldArm = () => arch === 'arm' && /^armv[3-6]/.test(machineName());

/** The targets for this system and processor. On Linux there are two, of which one does not load. */
function candidates() {
  if (isOldArm()) return [];
  return TARGETS.filter((target) => `${target}-`.startsWith(`${platform}-${arch}-`));
}

/** The target of this machine. The report takes long to create, so only failures and builds use it. */
function targetHere() {
  if (platform !== 'linux' || isOldArm()) return candidates()[0];
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (
    process.report.getReport()
  );
  return `linux-${arch}-${header.glibcVersionRuntime ? 'gnu' : 'musl'}`;
}

/**
 * @param {string} name the package that the addon belongs to
 * @param {string | undefined} directory the directory of the package's code; undefined in a bundle
 * @param {(target: string, fail: (failure: unknown) => void) => unknown} load requires the addon of a target, or passes the
 *   failure to its second argument
 */
function loadAddon(name, directory, load) {
  /** @type {{ target: string, failure: AddonFailure }[]} */
  const failures = [];
  for (const target of candidates()) {
    const addon = load(target, (failure) => {
      failures.push({ target, failure: /** @type {AddonFailure} */ (failure) });
    });
    if (addon !== undefined) return addon;
  }
  const target = targetHere();
  const here = failures.filter((each) => each.target === target).map(({ failure }) => failure);
  // A failure to load an addon that exists says more than a missing one.
  const cause = here.find((failure) => !isMissing(failure)) ?? here.at(-1);
  const why = whyNone(name, { directory, target, failure: cause });
  throw new SnowFlakeError('ERR_SNOWFLAKE_ADDON', why, { cause });
}

/**
 * The names in a directory; empty if it cannot be read, or is undefined.
 * @param {string | undefined} folder
 */
function namesIn(folder) {
  try {
    return readdirSync(/** @type {string} */ (folder));
  } catch {
    return [];
  }
}

/**
 * The targets of the addons beside the code, which were built here or packed by `npm run package`.
 * @param {string} name
 * @param {string | undefined} directory
 */
function packedFor(name, directory) {
  const prefix = `${name}.`;
  return namesIn(directory)
    .filter((file) => file.startsWith(prefix) && file.endsWith('.node'))
    .map((file) => file.slice(prefix.length, -'.node'.length));
}

/**
 * The remedies for an addon that exists but does not load, by the code of the failure.
 * @type {{ [code: string]: (failure: AddonFailure) => string }}
 */
const REMEDIES = {
  ERR_DLOPEN_DISABLED: () =>
    'Start Node without --no-addons, and with --allow-addons if it has --permission',
  ERR_ACCESS_DENIED: ({ resource = 'it' }) =>
    `Let Node read ${resource}: start it with --allow-fs-read=FOLDER, that of the application with its node_modules`,
};
const REINSTALL =
  'If its file system is mounted with noexec, install it on another one; else install it again';

/**
 * @param {string} name
 * @param {{ directory: string | undefined, target: string | undefined, failure: AddonFailure | undefined }} why
 */
function whyNone(name, { directory, target, failure }) {
  if (failure === undefined || target === undefined) {
    const system = target ?? `${platform}-${isOldArm() ? machineName() : arch}`;
    const decoder = name === 'snowdrift' ? '. snowdrift/id decodes IDs without an addon' : '';
    return `${name} has no addon for ${system}: run it on one of ${TARGETS.join(', ')}${decoder}`;
  }
  // webpack's loader puts the failure on a second line.
  const [line] = String(failure.message).replace(':\n', ': ').split('\n');
  const reason = line.replace(/\.$/, '');
  const known = REMEDIES[String(failure.code)]?.(failure);
  if (isBundled()) {
    const remedy = `Deploy the .node file that the bundler copied beside the bundle; or make ${name} external, and install it where the bundle runs: docs/bundlers.md`;
    return `cannot load the addon of ${name} for ${target} in this bundle: ${reason}. ${known ?? remedy}`;
  }
  const root = join(__dirname, '../..');
  const page = `${join(root, 'docs/installation.md')} has each case`;
  if (!isMissing(failure)) {
    return `cannot load the addon of ${name} for ${target}: ${reason}. ${known ?? REINSTALL}. ${page}`;
  }
  const [flag, pack] =
    name === 'snowdrift'
      ? ['', 'npm run package']
      : [' -- --zookeeper', 'npm pack ./packages/zookeeper'];
  const build = `npm run build${flag}`;
  /** @type {{ version: string, optionalDependencies?: object }} */
  const { version, optionalDependencies } = require('../../package.json');
  const addon = packageOf(name, target);
  if (namesIn(root).includes('Cargo.toml')) {
    return `the addon of ${name} for ${target} is not built. Run \`${build}\``;
  }
  // Only a released package has optional dependencies.
  if (optionalDependencies === undefined) {
    const others = packedFor(name, directory).join(', ');
    const how = others === '' ? 'without an addon' : `for ${others}`;
    return `this ${name} was packed ${how}, and runs on ${target}: pack it there, in a clone, by \`${build} && ${pack}\`, and install that file. ${page}`;
  }
  return `the package ${addon}, the addon of ${name} for this platform, is not installed. Optional dependencies were omitted, or node_modules or the lock file comes from another platform: install again on this one, or run npm install ${addon}@${version}. ${page}`;
}

module.exports = { TARGETS, loadAddon, packageOf, targetHere };
