'use strict';
// Reads layouts: names, or objects of applications.

const { configError, describe } = require('../messages/errors.js');
const { LAYOUT_KEYS, faultOf, layoutText, layouts } = require('./presets.js');

const checks = () => require('../messages/checks.js');

/** @import { Layout, LayoutName } from '../types.js' */

/** Layouts that readLayout() returned. They need no other check. */
const checked = new WeakSet(Object.values(layouts));

/**
 * @param {unknown} layout
 * @returns {layout is Layout}
 */
const isChecked = (layout) => checked.has(/** @type {Layout} */ (layout));

/**
 * The layout that was read last. If the next one is equal, readLayout() returns this one.
 * @type {Layout}
 */
let lastRead = layouts.node;

/**
 * The frozen layout of a name or an object.
 * @param {unknown} layout
 * @param {unknown} [epoch]
 * @returns {Layout}
 */
function readLayout(layout, epoch) {
  if (epoch === undefined && isChecked(layout)) return layout;
  const { propertiesOf, unixMs } = checks();
  let read;
  if (typeof layout === 'string') {
    if (!Object.hasOwn(layouts, layout)) throw configError(layoutText(layout, describe));
    const named = layouts[/** @type {LayoutName} */ (layout)];
    if (epoch === undefined) return named;
    read = { ...named };
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
  const valid = /** @type {Record<keyof Layout, number>} */ (read);
  // Turns -0 into 0.
  for (const key of LAYOUT_KEYS) valid[key] += 0;
  checked.add(valid);
  lastRead = Object.freeze(valid);
  return lastRead;
}

module.exports = { layouts, readLayout };
