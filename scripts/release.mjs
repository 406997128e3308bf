// Publishes a release: checks that all is there, makes the packages' folders in npm/ from the addons in
// artifacts/, publishes them by the token in NPM_TOKEN. With --dry-run it does all but publish, and goes
// on where something is missing. --tag v1.2.3 is the tag that releases; --provenance is npm's.
//
// What is published already is passed over, so that a release that broke off can be run again.

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { assemble, npm, obstacles, publish } from './packages.mjs';

const { values: asked } = parseArgs({
  options: {
    'dry-run': { type: 'boolean' },
    provenance: { type: 'boolean' },
    tag: { type: 'string' },
  },
});
const isTry = asked['dry-run'];

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const { packages, missing } = await assemble('artifacts', 'npm');
const wrong = [...obstacles(asked.tag), ...missing.map((addon) => `there is no ${addon}`)];
for (const what of wrong) console.error(`${isTry ? 'would stop a release' : 'error'}: ${what}`);
if (wrong.length > 0 && !isTry) process.exit(1);

const kB = (bytes) => `${Math.ceil(bytes / 1000)} kB`;
const packed = await npm(['pack', '--workspaces', '--dry-run', '--json'], { cwd: 'npm' });
for (const { id, size, unpackedSize } of JSON.parse(packed)) {
  console.log(`${id}: ${kB(size)} packed, ${kB(unpackedSize)} unpacked`);
}
if (isTry) process.exit(0);

const registry = await npm(['config', 'get', 'registry']);
const env = {
  [`npm_config_${registry.replace(/^https?:/, '')}:_authToken`]: process.env.NPM_TOKEN,
};
const flags = asked.provenance ? ['--provenance'] : [];
for (const name of await publish('npm', packages, registry, flags, env)) {
  console.log(`${name} is published`);
}
