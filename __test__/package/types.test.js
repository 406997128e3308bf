'use strict';
// The declarations, as a compiler reads them that was told little: by default TypeScript 6 and later read no @types,
// and check the declarations of packages.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const { exports: entries } = require('../../package.json');
const { within } = require('../support/page.js');

const TSC = join(__dirname, '../../node_modules/typescript/bin/tsc');
const OPTIONS = '--ignoreConfig --noEmit --strict --target es2022 --module node16 --types'.split(
  ' ',
);

// By itself, since it reads @types/node, which the others must not need.
const CLUSTER = './cluster';
const OTHERS = Object.keys(entries).filter((name) => ![CLUSTER, './package.json'].includes(name));

for (const [title, names] of [
  ['cluster finds @types/node by itself', [CLUSTER]],
  ['all other entries compile without @types/node and esnext.disposable', OTHERS],
]) {
  test(title, () =>
    within(async (cwd) => {
      const lines = names.map(
        (name, at) => `export * as e${at} from 'snowdrift${name.slice(1)}';\n`,
      );
      writeFileSync(join(cwd, 'all.mts'), lines.join(''));
      const args = [TSC, ...OPTIONS, '', 'all.mts'];
      await promisify(execFile)(process.execPath, args, { cwd }).catch(({ stdout }) =>
        assert.fail(stdout),
      );
    }),
  );
}
