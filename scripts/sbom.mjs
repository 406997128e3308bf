// The bill of materials of a published package, in CycloneDX's JSON: the packages of its addons, and the crates in
// them. It has no date and no random number, so that the same sources give the same bytes.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * The crates that are linked into an addon on any platform, and what each depends on. Not those that only build or
 * test it.
 */
function cratesOf(name) {
  const which = ['--package', name, '--target', 'all'];
  const how = ['--edges', 'normal', '--no-dedupe', '--prefix', 'depth', '--format', '|{p}|{l}'];
  const args = ['tree', '--locked', ...which, ...how];
  const tree = execFileSync('cargo', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28 });
  const crates = new Map();
  const above = [];
  for (const line of tree.trim().split('\n')) {
    const [depth, named, license] = line.split('|');
    const [crate, version] = named.split(' ');
    const key = `${crate}@${version.slice(1)}`;
    if (!crates.has(key)) crates.set(key, { license, dependsOn: new Set() });
    if (depth !== '0') crates.get(above[depth - 1]).dependsOn.add(key);
    above[depth] = key;
  }
  const [root] = above;
  const { dependsOn } = crates.get(root);
  crates.delete(root);
  return { crates, dependsOn };
}

/** SHA-256 of each crate's archive, by name and version. */
function checksums() {
  const lock = readFileSync(`${ROOT}/Cargo.lock`, 'utf8');
  const entries = lock.matchAll(
    /name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "([0-9a-f]{64})"/g,
  );
  return new Map([...entries].map(([, name, version, sum]) => [`${name}@${version}`, sum]));
}

const npmUrl = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`;
const crateUrl = (key) => `pkg:cargo/${key}`;
const sorted = (keys) => [...keys].map(crateUrl).sort();

/**
 * The bill of materials of a package.
 * @param name of the package, and of the crate that its addons are built of
 * @param platforms the packages of its addons
 */
export function sbomOf(name, version, platforms) {
  const { crates, dependsOn } = cratesOf(name);
  const sums = checksums();
  const mit = [{ license: { id: 'MIT' } }];
  const ours = (of, scope) => {
    const purl = npmUrl(of, version);
    return { type: 'library', 'bom-ref': purl, name: of, version, scope, licenses: mit, purl };
  };
  const addons = platforms.map((platform) => ours(platform, 'optional'));
  const linked = [...crates].map(([key, { license }]) => {
    const [crate, of] = key.split('@');
    const content = sums.get(key);
    if (content === undefined) throw new Error(`Cargo.lock has no checksum of ${key}`);
    return {
      type: 'library',
      'bom-ref': crateUrl(key),
      name: crate,
      version: of,
      scope: 'required',
      hashes: [{ alg: 'SHA-256', content }],
      licenses: [{ expression: license.replaceAll('/', ' OR ') }],
      purl: crateUrl(key),
    };
  });
  const component = ours(name, 'required');
  const refs = addons.map((addon) => addon['bom-ref']);
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component },
    components: [...addons, ...linked].sort((a, b) => (a.purl < b.purl ? -1 : 1)),
    dependencies: [
      { ref: component.purl, dependsOn: refs.sort() },
      ...refs.map((ref) => ({ ref, dependsOn: sorted(dependsOn) })),
      ...[...crates].map(([key, crate]) => ({
        ref: crateUrl(key),
        dependsOn: sorted(crate.dependsOn),
      })),
    ],
  };
}
