// What keeps the code in one style and the package well-formed. Shows all that is wrong, then fails.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { packHere } from './packages.mjs';

const bin = (name) => `node_modules/.bin/${name}`;
const clippy = ['clippy', '--locked', '--workspace', '--all-targets'];

const folder = mkdtempSync(join(tmpdir(), 'snowdrift-lint-'));
const packed = await packHere(folder);

const failed = [
  [bin('biome'), 'ci', '--colors=off', '--error-on-warnings', '.'],
  ['cargo', 'fmt', '--all', '--check'],
  ['cargo', 'fmt', '--manifest-path', 'fuzz/Cargo.toml', '--check'],
  ['cargo', ...clippy, '--', '--deny', 'warnings'],
  ['node', 'scripts/native-types.mjs', '--check'],
  [bin('tsc'), '--project', 'js'],
  [bin('publint'), '--strict', packed],
  [bin('attw'), packed],
  ['node', 'scripts/size.mjs'],
].filter(([command, ...args]) => {
  console.log(`\n$ ${command.replace('node_modules/.bin/', '')} ${args.join(' ')}`);
  return spawnSync(command, args, { stdio: 'inherit' }).status !== 0;
});

rmSync(folder, { recursive: true });
for (const command of failed) console.error(`failed: ${command.join(' ')}`);
process.exit(failed.length === 0 ? 0 : 1);
