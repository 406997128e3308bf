'use strict';
// Notes each read of the package that comes to Object.prototype: with it on the prototype, such a property decides
// instead of being absent. Loaded with --require; the file of INHERITED_READS gets a line for each place and name.

const { appendFileSync } = require('node:fs');
const { join } = require('node:path');

const { ROOT, propertyNames } = require('./names.js');

const OURS = join(ROOT, 'js/');
const { INHERITED_READS } = process.env;
const { defineProperty } = Object;
const seen = new Set();
let isLooking = false;

/** The place that reads, below `getter`. */
function placeOf(getter) {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.prepareStackTrace = undefined;
  Error.stackTraceLimit = 1;
  const holder = { __proto__: null };
  Error.captureStackTrace(holder, getter);
  const { stack } = holder;
  Error.prepareStackTrace = prepareStackTrace;
  Error.stackTraceLimit = stackTraceLimit;
  return /([^( ]+):\d+\)?$/.exec(String(stack))?.[1] ?? '';
}

function note(name, getter) {
  if (isLooking) return;
  isLooking = true;
  try {
    const place = placeOf(getter);
    const line = `${place.slice(ROOT.length + 1)} ${name}\n`;
    if (!place.startsWith(OURS) || seen.has(line)) return;
    seen.add(line);
    appendFileSync(INHERITED_READS, line);
  } finally {
    isLooking = false;
  }
}

for (const name of propertyNames()) {
  const get = () => note(name, get);
  defineProperty(Object.prototype, name, {
    __proto__: null,
    configurable: true,
    get,
    // As without: an assignment makes an own property.
    set(value) {
      const own = { value, writable: true, enumerable: true, configurable: true };
      defineProperty(this, name, { __proto__: null, ...own });
    },
  });
}
