'use strict';
// Loads this platform's addon of snowdrift or of snowdrift-zookeeper, or reports the missing package.

const { existsSync } = require('node:fs');
const { join } = require('node:path');

const { SnowFlakeError, isMissing } = require('./errors.js');

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
 * @param name the package that the addon belongs to
 */
const packageOf = (name, target) => `@${name}-${target}`.replace('-', '/');

/** In a bundle, this code is in another file. */
const isBundled = typeof __filename !== 'string' || !/[\\/]addon\.js$/.test(__filename);

/** The processor by the system's name for it, which Node 18.9 and later know. Others need not load node:os for it. */
const machineName = () => require('node:os').machine?.() ?? arch;

/** Whether this is ARMv6 or older, which lacks instructions of the addon for arm. */
const isOldArm = () => arch === 'arm' && /^armv[3-6]/.test(machineName());

/** The targets of this system and processor. On Linux there are two, one of which does not load. */
function candidates() {
  if (isOldArm()) return [];
  return TARGETS.filter((target) => `${target}-`.startsWith(`${platform}-${arch}-`));
}

/** The target of this machine. The report takes long, so only failures and builds use it. */
function targetHere() {
  if (platform !== 'linux' || isOldArm()) return candidates()[0];
  return `linux-${arch}-${process.report.getReport().header.glibcVersionRuntime ? 'gnu' : 'musl'}`;
}

/**
 * @param name the package that the addon belongs to
 * @param directory the folder of an addon built here
 * @param load requires the package of a target, or records in `failures` why it cannot
 */
function loadAddon(name, directory, load) {
  const failures = new Map();
  for (const target of candidates()) {
    const built = join(directory, `${name}.${target}.node`);
    // `module.require`, so that bundlers do not look for a file that only a checkout has.
    const addon = existsSync(built) ? module.require(built) : load(target, failures);
    if (addon !== undefined) return addon;
  }
  const target = targetHere();
  const cause = failures.get(target);
  throw new SnowFlakeError('ERR_SNOWFLAKE_ADDON', whyNone(name, target, cause), { cause });
}

function whyNone(name, target, failure) {
  const decoder = name === 'snowdrift' ? '. snowdrift/id decodes IDs without an addon' : '';
  if (failure === undefined) {
    const system = target ?? `${platform}-${isOldArm() ? machineName() : arch}`;
    return `${name} has no addon for ${system}: run it on one of ${TARGETS.join(', ')}${decoder}`;
  }
  const { version } = require('../package.json');
  const addon = packageOf(name, target);
  if (!isMissing(failure)) {
    const [reason] = String(failure.message).split('\n');
    return `cannot load ${addon}, the addon of ${name} for this platform, although it is installed: ${reason}${decoder}`;
  }
  const remedy = isBundled
    ? `In a bundle, make ${name} external, and install it where the bundle runs`
    : existsSync(join(__dirname, '../Cargo.toml'))
      ? `Run \`npm run build${name === 'snowdrift' ? '' : ' -- --zookeeper'}\``
      : `Optional dependencies were omitted, or node_modules or the lock file comes from another platform: install again on this one, or run npm install ${addon}@${version}. ${join(__dirname, '../docs/installation.md')} has each case`;
  return `the package ${addon}, the addon of ${name} for this platform, is not installed. ${remedy}`;
}

module.exports = { TARGETS, isBundled, loadAddon, packageOf, targetHere };
