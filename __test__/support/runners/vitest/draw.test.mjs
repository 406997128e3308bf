// One of a project's test files, which vitest runs in parallel: app/runners.test.js makes copies of it.

import { basename } from 'node:path';
import * as snowdrift from 'snowdrift';
import { test } from 'vitest';

import { draw } from './draw.js';

/** One in each of four workers. */
const DRAWERS = 4;

test('draws beside other files', async () => {
  const end = draw(snowdrift, `${process.pid}-${basename(import.meta.url)}`);
  await end(DRAWERS);
}, 300_000);
