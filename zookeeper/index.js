'use strict';
// Loads the addon: the one built here, else the platform's package. Or says what is missing.

const { platform, arch } = process;

const TARGETS =
  {
    linux: [`linux-${arch}-gnu`, `linux-${arch}-musl`],
    darwin: [`darwin-${arch}`],
    win32: [`win32-${arch}-msvc`],
  }[platform] ?? [];

function load() {
  const failures = [];
  for (const target of TARGETS) {
    for (const place of [`./snowdrift-zookeeper.${target}.node`, `snowdrift-zookeeper-${target}`]) {
      try {
        return require(place);
      } catch (failure) {
        failures.push(failure);
      }
    }
  }
  const cause = failures.find(({ code }) => code !== 'MODULE_NOT_FOUND') ?? failures[0];
  throw new Error(`snowdrift-zookeeper has no addon that loads on ${platform}-${arch}`, { cause });
}

const { connect } = load();

module.exports = { connect };
