// Of the addon's tests, those that need nothing but Node and the addon. With TESTS=platform, their storms, too: run on each
// platform before a release, with the addon that will be released. One in artifacts/ is put where it is looked for.

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import addons from '../js/runtime/addon.js';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const file = `snowdrift.${addons.targetHere()}.node`;
if (existsSync(`artifacts/${file}`)) copyFileSync(`artifacts/${file}`, `js/runtime/${file}`);

const names = [
  'app/cluster',
  'messages/bad-input',
  'generator/cached',
  'runtime/environment',
  'generator/ids',
  'generator/one-process',
  'generator/turn',
  'ids/uid',
  'host/scope',
  'host/state',
];
const files = names.map((name) => `__test__/${name}.test.js`);
const { status } = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' });
process.exit(status ?? 1);
