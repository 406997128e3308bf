'use strict';
// How long require('snowdrift') takes in a process of its own, in ms.

const start = performance.now();
require('..');
console.log(performance.now() - start);
