'use strict';
// Patches the built-ins after snowdrift was loaded, uses instances of all kinds, and prints the built-ins that saw a
// channel, its memory or a view of that. Argument: a directory for their records.

for (const name of ['fs', 'os', 'stream', 'util']) require(name);
const { isAnyArrayBuffer, isProxy, isTypedArray } = require('node:util').types;

const { CachedSnowFlake, SnowFlake, layouts } = require('../../js/index.js');
const native = require('../../js/runtime/native.js');

const { apply, construct, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } =
  Reflect;
const TypedArray = getPrototypeOf(Uint8Array);
const getBuffer = getOwnPropertyDescriptor(TypedArray.prototype, 'buffer').get;
const getLength = getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get;

const node = { layout: layouts.node, datacenterId: 0, workerId: 0 };
const policies = { clockBack: 'wait', maxWait: 0, maxAhead: 0, sequenceStart: 'zero' };
const channel = native.open({ ...node, ...policies, datacenterId: 1, scope: 'process' });
const channels = getPrototypeOf(channel);
const bytes = channel.memory.byteLength;

const found = { __proto__: null };
let isWatching = false;

function isSecret(value) {
  if (value === null || typeof value !== 'object' || isProxy(value)) return false;
  if (isTypedArray(value)) return isSecret(apply(getBuffer, value, []));
  if (isAnyArrayBuffer(value)) return apply(getLength, value, []) === bytes;
  if (getPrototypeOf(value) === channels) return true;
  return isSecret(getOwnPropertyDescriptor(value, 'channel')?.value ?? null);
}

function look(where, self, others) {
  if (!isWatching) return;
  isWatching = false;
  if (isSecret(self)) found[where] = true;
  for (let n = 0; n < others.length; n++) if (isSecret(others[n])) found[where] = true;
  isWatching = true;
}

function spyOn(holder, where, key) {
  const { value, writable } = getOwnPropertyDescriptor(holder, key);
  if (typeof value !== 'function' || !writable) return;
  holder[key] = new Proxy(value, {
    __proto__: null,
    apply(target, self, values) {
      look(where, self, values);
      return apply(target, self, values);
    },
    construct(target, values, created) {
      look(where, null, values);
      return construct(target, values, created);
    },
  });
}

function spyOnAll(holder, where) {
  for (const key of ownKeys(holder)) {
    if (key !== 'constructor' && key !== 'prototype') spyOn(holder, where + String(key), key);
  }
}

function spyOnReads(key) {
  defineProperty(Object.prototype, key, {
    __proto__: null,
    configurable: true,
    get() {
      look(`get ${key}`, this, []);
    },
    set(value) {
      look(`set ${key}`, this, [value]);
      const own = { writable: true, enumerable: true, configurable: true };
      defineProperty(this, key, { __proto__: null, value, ...own });
    },
  });
}

async function useAll(directory) {
  const slots = `file://${directory}/slots`;
  for (const flake of [
    new SnowFlake(node),
    new SnowFlake({ ...node, clock: () => 1_780_000_000_000 }),
    new CachedSnowFlake({ datacenterId: 0, workerId: 1 }),
    new SnowFlake({ datacenterId: 0, workerId: 2, state: `${directory}/state` }),
    await SnowFlake.lease(slots, { datacenterId: 0 }),
    await CachedSnowFlake.lease(slots, { datacenterId: 0, scope: 'process' }),
  ]) {
    for (let n = 0; n < 200; n++) flake.nextId();
    flake.nextIds(10);
    flake.nextIds(100);
    flake.nextIds(new BigUint64Array(10));
    flake.nextIdStrings(10);
    await flake.nextIdAsync();
    flake.stats();
    await flake.close();
  }
}

const names = Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Z]/.test(name));
const classes = names.filter((name) => name !== 'Proxy');
for (const [name, value] of [
  ['TypedArray', TypedArray],
  ...classes.map((one) => [one, globalThis[one]]),
]) {
  if (Object(value) !== value) continue;
  spyOnAll(value, `${name}.`);
  if (value.prototype) spyOnAll(value.prototype, `${name}#`);
}
for (const name of classes) spyOn(globalThis, `new ${name}`, name);
const READS = ['then', 'channel', 'memory', 'number', 'kind', 'settings', 'lease', 'rejected'];
for (const key of [...READS, 'workerId', 'warnings']) spyOnReads(key);

isWatching = true;
useAll(process.argv[2]).then(() => {
  isWatching = false;
  console.log(ownKeys(found).join());
});
