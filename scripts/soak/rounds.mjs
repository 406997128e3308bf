// So many rounds, a thread in every other one: what scripts/leaks.mjs runs under valgrind.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { round } from './round.mjs';

const directory = mkdtempSync(join(tmpdir(), 'snowdrift-rounds-'));
try {
  for (let n = 0; n < Number(process.argv[2]); n++) {
    await round(n, { directory, inThread: n % 2 === 0 });
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
