// Packs snowdrift with the addon that was built here: `npm run package`. Projects install the file. Another folder than this one
// may be given.

import { packHere } from './packages.mjs';

console.log(await packHere(process.argv[2] ?? '.'));
