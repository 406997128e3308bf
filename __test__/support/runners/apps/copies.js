'use strict';
// An application that has snowdrift, and a dependency that has a copy of its own. Both are used in two
// threads.

const { Worker, isMainThread, threadId } = require('node:worker_threads');
const snowdrift = require('snowdrift');
const billing = require('billing');

const { draw } = require('./draw.js');

draw(snowdrift, `${process.pid}-${threadId}-own`);
draw(billing.snowdrift, `${process.pid}-${threadId}-billing`);
if (isMainThread) new Worker(__filename);
