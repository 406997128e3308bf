import { createRequire } from 'node:module';
import { afterEach, expect, test, vi } from 'vitest';

const require = createRequire(import.meta.url);
const forget = () => {
  for (const path of Object.keys(require.cache)) delete require.cache[path];
};

require('./timers.js')({ afterEach, expect, test, fakes: vi, forget });
