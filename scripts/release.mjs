// Publishes a release: checks that all is there, puts the packages together in artifacts/packages from the
// addons in artifacts/, packs them with their checksums in artifacts/packed, publishes them. With --dry-run it does all
// but publish, goes on where something is missing, and asks GitHub nothing. With --check it only says whether this commit
// may be released. --tag v1.2.3 is the tag that releases; --provenance is npm's; --repository OWNER/NAME is the repository
// that the packages name, which a workflow on GitHub knows. --sums TEXT has the SHA-256 of each addon, as its job put it out:
// another addon stops a release, and a try.
//
// It takes no token: in the workflow npm trusts the workflow, elsewhere `npm login` has been called.
// It skips packages that are published already, so a release that failed halfway can be repeated.

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { commitObstacles, repositoryOf } from './origin.mjs';
import { ADDONS, addSboms, assemble, npm, obstacles, pack, publish, version } from './packages.mjs';
import { readSums, sumObstacles } from './sums.mjs';

const PACKAGES = 'artifacts/packages';
const PACKED = 'artifacts/packed';
/** The first npm that a workflow can publish by without a token. */
const TRUSTED = '11.5.1';

const { values: asked } = parseArgs({
  options: {
    check: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
    provenance: { type: 'boolean' },
    repository: { type: 'string' },
    sums: { type: 'string' },
    tag: { type: 'string' },
  },
});
const isTry = asked['dry-run'];

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** Ends here if something is wrong, but for what a try goes on without. */
function refuse(wrong, isFatal = !isTry) {
  for (const what of wrong) console.error(`${isFatal ? 'error' : 'would stop a release'}: ${what}`);
  if (wrong.length > 0 && isFatal) process.exit(1);
}

const { url: repository, wrong: unknown } = repositoryOf(asked.repository);
const wrong = obstacles(asked.tag);
if (unknown !== undefined) wrong.push(unknown);
refuse(wrong);
if (!isTry) refuse(await commitObstacles(repository));
if (asked.check) {
  console.log(`${version} may be released`);
  process.exit(0);
}

const absent = [];
if (asked.sums === undefined) {
  absent.push('nothing says which addons were built: --sums with the SHA-256 of each');
} else {
  const sums = readSums(asked.sums);
  refuse(sumObstacles('artifacts', ADDONS, sums), true);
  for (const [addon, sum] of sums) console.log(`${sum}  ${addon}`);
}
const { packages, missing } = assemble('artifacts', PACKAGES, repository);
addSboms(PACKAGES);
absent.push(...missing.map((addon) => `there is no ${addon}`));
const found = await npm(['--version']);
if (found.localeCompare(TRUSTED, 'en', { numeric: true }) < 0) {
  absent.push(`npm is ${found}, and publishes without a token from ${TRUSTED} on`);
}
refuse(absent);

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
