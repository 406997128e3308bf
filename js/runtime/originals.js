'use strict';
// Parts of the language as they were when snowdrift was loaded. The code that uses them is compiled later, and a
// replacement would see the memory of blocks, or the channels. So is the async context.

const { AsyncResource } = require('node:async_hooks');

const { BigUint64Array: Ids, Float64Array: Times, Uint32Array: Halves } = globalThis;
const { hasOwn } = Object;

const TypedArray = Object.getPrototypeOf(Ids).prototype;

/** The async context in which snowdrift was loaded: as a rule none, whatever the application does when the code is compiled. */
const OUTSIDE = new AsyncResource('snowdrift', { triggerAsyncId: 0 });

module.exports = { Halves, Ids, OUTSIDE, Times, TypedArray, hasOwn };
