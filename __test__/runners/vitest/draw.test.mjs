// One of a project's test files, which vitest runs in parallel. The test starts as many copies of it.

import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as snowdrift from 'snowdrift';
import { test } from 'vitest';

import { DIRECTORY, draw } from './draw.js';

const DRAWERS = 4;

test('draws beside other files', async () => {
  const end = draw(snowdrift, `${process.pid}-${basename(import.meta.url)}`);
  await sleep(100);
  while (readdirSync(DIRECTORY).length < DRAWERS) await sleep(5);
  end();
}, 30_000);
