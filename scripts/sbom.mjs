// The bill of materials of a published package, in CycloneDX's JSON: the crates in its addons. It has no date and no random
// number, so that the same sources give the same bytes. docs/contributing/decisions.md says why no tool makes it.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Of each crate that is linked into an addon on any platform, its name, version and licence. */
function cratesOf(name) {
  const which = ['--package', name, '--target', 'all', '--edges', 'normal'];
  const how = ['--no-dedupe', '--prefix', 'none', '--format', '{p}|{l}'];
  const tree = execFileSync('cargo', ['tree', '--locked', ...which, ...how], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  // The first one is the addon's own.
  const [, ...crates] = new Set(tree.trim().split('\n'));
  return crates.sort().map((line) => /^(\S+) v(\S+).*\|(.*)$/.exec(line).slice(1));
}

/** SHA-256 of each crate's archive, by its URL. */
function checksums() {
  const lock = readFileSync(`${ROOT}/Cargo.lock`, 'utf8');
  const entries = lock.matchAll(
    /name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "([0-9a-f]{64})"/g,
  );
  return new Map([...entries].map(([, name, version, sum]) => [urlOf(name, version), sum]));
}

const urlOf = (crate, version) => `pkg:cargo/${crate}@${version}`;

/**
 * The bill of materials of a package.
 * @param name of the package, and of the crate that its addons are built of
 */
export function sbomOf(name, version) {
  const sums = checksums();
  const component = (of, its, purl, license, more) => {
    const licenses = [{ expression: license.replaceAll('/', ' OR ') }];
    return { type: 'library', 'bom-ref': purl, name: of, version: its, licenses, purl, ...more };
  };
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: component(name, version, `pkg:npm/${name}@${version}`, 'MIT') },
    components: cratesOf(name).map(([crate, its, license]) => {
      const content = sums.get(urlOf(crate, its));
      if (content === undefined) throw new Error(`Cargo.lock has no checksum of ${crate} ${its}`);
      const hashes = [{ alg: 'SHA-256', content }];
      return component(crate, its, urlOf(crate, its), license, { hashes });
    }),
  };
}
