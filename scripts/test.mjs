// All tests: the core's, then the addon's, then the types.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';

function run(command, ...args) {
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0) {
    console.error(`${command} ${args.slice(0, 3).join(' ')} ... failed`);
    process.exit(1);
  }
}

run('cargo', 'test', '--locked', '--quiet');
if (process.platform === 'linux') {
  // The clock, the disk and the boot under the addon: see __test__/machine-shim.
  run('cargo', 'build', '--locked', '--quiet', '--release', '--package', 'machine-shim');
}
if (existsSync('/usr/share/zookeeper')) run(process.execPath, 'scripts/prepare.mjs', '--zookeeper');
if (process.env.ORMS === 'required') run(process.execPath, 'scripts/prepare.mjs', '--orms');
if (process.env.RUNNERS === 'required') run(process.execPath, 'scripts/prepare.mjs', '--runners');
const files = readdirSync('__test__').filter((name) => name.endsWith('.test.js'));
// Two files at a time: most tests wait more than they work.
run(process.execPath, '--test', '--test-concurrency=2', ...files.map((name) => `__test__/${name}`));
run(process.execPath, 'node_modules/typescript/bin/tsc', '--project', 'tsconfig.json');
console.log('types ok');
