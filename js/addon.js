'use strict';
// Which addon is this machine's, and what is missing if none loads. Of snowdrift's own, and of
// snowdrift-zookeeper's.

const { existsSync } = require('node:fs');
const { join } = require('node:path');

const { SnowFlakeError, isMissing } = require('./errors.js');

const { platform, arch } = process;

/** What addons are built for: a system, a processor, an ABI. */
const TARGETS = [
  'darwin-arm64',
  'darwin-x64',
  'linux-arm64-gnu',
  'linux-arm64-musl',
  'linux-x64-gnu',
  'linux-x64-musl',
  'win32-x64-msvc',
];

/** In a bundle, this code is in another file. */
const isBundled = typeof __filename !== 'string' || !/[\\/]addon\.js$/.test(__filename);

/** Those that may run here. Of glibc and musl, the wrong one does not load. */
function candidates() {
  return TARGETS.filter(
    (target) => target.startsWith(`${platform}-${arch}-`) || target === `${platform}-${arch}`,
  );
}

/** The one that runs here. To ask takes long, so only what fails or builds does. */
function targetHere() {
  if (platform !== 'linux') return candidates()[0];
  return `linux-${arch}-${process.report.getReport().header.glibcVersionRuntime ? 'gnu' : 'musl'}`;
}

/**
 * @param name the package whose addon it is
 * @param directory where it lies if it was built here
 * @param load loads the package of a target, or notes why it cannot
 */
function loadAddon(name, directory, load) {
  const failures = new Map();
  for (const target of candidates()) {
    const built = join(directory, `${name}.${target}.node`);
    // By `module`, so that bundlers do not look for what there is in a checkout only.
    const addon = existsSync(built) ? module.require(built) : load(target, failures);
    if (addon !== undefined) return addon;
  }
  const target = targetHere();
  const cause = failures.get(target);
  throw new SnowFlakeError('ERR_SNOWFLAKE_ADDON', whyNone(name, target, cause), { cause });
}

function whyNone(name, target, failure) {
  if (failure === undefined) {
    return `${name} has no addon for ${target ?? `${platform}-${arch}`}, only for ${TARGETS.join(', ')}`;
  }
  const { version } = require('../package.json');
  const addon = `${name}-${target}`;
  if (!isMissing(failure)) {
    const [reason] = String(failure.message).split('\n');
    return `${addon}, the addon of ${name} for this platform, is installed and does not load: ${reason}`;
  }
  const remedy = isBundled
    ? `This is a bundle: make ${name} external to it, and install it where the bundle runs`
    : existsSync(join(__dirname, '../Cargo.toml'))
      ? 'Run `npm run build`'
      : `It is left out by --omit=optional, and where node_modules or the lock file were made on another platform: install again on this one, or add it by npm install ${addon}@${version}`;
  return `the package ${addon}, the addon of ${name} for this platform, is not installed. ${remedy}`;
}

module.exports = { TARGETS, isBundled, loadAddon, targetHere };
