'use strict';
// How long require('snowdrift') takes in a process of its own, in ms; or, with an argument, what it names.

const what = process.argv[2] ?? '..';
// Not of `performance`, which is loaded when it is first looked at.
const start = process.hrtime.bigint();
require(what);
console.log(Number(process.hrtime.bigint() - start) / 1e6);
