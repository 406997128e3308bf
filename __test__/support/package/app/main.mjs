// An application in ESM.

import { SnowFlake } from 'snowdrift';

import drawing from './draw.cjs';

await drawing.draw(async (name) => {
  const found = await import(name);
  if (name === 'snowdrift' && found.SnowFlake !== SnowFlake) throw new Error('two copies');
  return found;
});
