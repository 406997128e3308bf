'use strict';
// How long the first `require` of a package takes in a process of its own, in ms.

const [, , name] = process.argv;
// Not of `performance`, which is loaded when it is first looked at.
const start = process.hrtime.bigint();
require(name);
console.log(Number(process.hrtime.bigint() - start) / 1e6);
