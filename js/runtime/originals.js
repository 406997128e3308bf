'use strict';
// Parts of the language as they were when snowdrift was loaded. The code that uses them is compiled later, and a
// replacement would see the memory of blocks, or the channels.

const { BigUint64Array: Ids, Float64Array: Times, Uint32Array: Halves } = globalThis;
const { hasOwn } = Object;

const TypedArray = Object.getPrototypeOf(Ids).prototype;

module.exports = { Halves, Ids, Times, TypedArray, hasOwn };
