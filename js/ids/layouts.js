'use strict';
// Reads layouts: names, or objects of applications.

const { propertiesOf, unixMs } = require('../messages/checks.js');
const { configError, describe } = require('../messages/errors.js');
const { LAYOUT_KEYS, faultOf, layoutText, layouts } = require('./presets.js');

/** Layouts that readLayout() returned. They need no other check. */
const checked = new WeakSet(Object.values(layouts));

/** The layout that was read last. If the next one is equal, readLayout() returns this one. */
let lastRead = layouts.node;

/** The frozen layout of a name or an object. */
function readLayout(layout, epoch) {
  if (epoch === undefined && checked.has(layout)) return layout;
  let read;
  if (typeof layout === 'string') {
    if (!Object.hasOwn(layouts, layout)) throw configError(layoutText(layout, describe));
    if (epoch === undefined) return layouts[layout];
    read = { ...layouts[layout] };
  } else {
    if (typeof layout !== 'object') throw configError(layoutText(layout, describe));
    const given = propertiesOf(layout, 'layout', LAYOUT_KEYS, configError);
    const missing = LAYOUT_KEYS.filter((key) => given[key] === undefined);
    if (missing.length > 0) throw configError(`the layout lacks ${missing.join(', ')}`);
    read = { ...given, epoch: unixMs('epoch of the layout', given.epoch, configError) };
  }
  if (epoch !== undefined) read.epoch = unixMs('epoch', epoch, configError);
  if (LAYOUT_KEYS.every((key) => read[key] === lastRead[key])) return lastRead;
  const fault = faultOf(read, describe);
  if (fault !== undefined) throw configError(fault);
  // Turns -0 into 0.
  for (const key of LAYOUT_KEYS) read[key] += 0;
  checked.add(read);
  lastRead = Object.freeze(read);
  return lastRead;
}

module.exports = { layouts, readLayout };
