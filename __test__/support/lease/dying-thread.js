'use strict';
// Loaded by --require: threads of the process end before they have begun.

if (!require('node:worker_threads').isMainThread) process.exit(3);
