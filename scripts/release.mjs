// Publishes a release: checks that all is there, puts the packages together in artifacts/packages from the
// addons in artifacts/, packs them with their checksums in artifacts/packed, publishes them. With --dry-run it does all
// but publish, and goes on where something is missing. --tag v1.2.3 is the tag that releases; --provenance is npm's.
//
// It takes no token: in the workflow npm trusts the workflow, elsewhere `npm login` has been called.
// It skips packages that are published already, so a release that failed halfway can be repeated.

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { addSboms, assemble, npm, obstacles, pack, publish } from './packages.mjs';

const PACKAGES = 'artifacts/packages';
const PACKED = 'artifacts/packed';
/** The first npm that a workflow can publish by without a token. */
const TRUSTED = '11.5.1';

const { values: asked } = parseArgs({
  options: {
    'dry-run': { type: 'boolean' },
    provenance: { type: 'boolean' },
    tag: { type: 'string' },
  },
});
const isTry = asked['dry-run'];

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const { packages, missing } = await assemble('artifacts', PACKAGES);
addSboms(PACKAGES);
const wrong = [...obstacles(asked.tag), ...missing.map((addon) => `there is no ${addon}`)];
const found = await npm(['--version']);
if (found.localeCompare(TRUSTED, 'en', { numeric: true }) < 0) {
  wrong.push(`npm is ${found}, and publishes without a token from ${TRUSTED} on`);
}
for (const what of wrong) console.error(`${isTry ? 'would stop a release' : 'error'}: ${what}`);
if (wrong.length > 0 && !isTry) process.exit(1);

const kB = (bytes) => `${Math.ceil(bytes / 1000)} kB`;
for (const { id, size, unpackedSize } of await pack(PACKAGES, PACKED)) {
  console.log(`${id}: ${kB(size)} packed, ${kB(unpackedSize)} unpacked`);
}
if (isTry) process.exit(0);

const registry = await npm(['config', 'get', 'registry']);
const flags = asked.provenance ? ['--provenance'] : [];
for (const name of await publish(PACKAGES, packages, registry, flags)) {
  console.log(`${name} is published`);
}
