'use strict';
// The exports of `snowdrift/monitoring`: health and metrics of an instance.

const { givenFlake, health } = require('./monitoring/health.js');
const { samplesOf, textOf } = require('./monitoring/list.js');
const { presentDefault } = require('./snowflake.js');

/** @import { Flake } from './monitoring/list.js' */

/**
 * The instance that is given, else the default one if there is one. Opens none: an application may choose another one later.
 * @param {unknown} flake
 * @param {string} caller
 */
function flakeOf(flake, caller) {
  if (flake === undefined) return presentDefault();
  return /** @type {Flake} */ (givenFlake(flake, caller));
}

const metrics = (/** @type {unknown} */ flake) => samplesOf(flakeOf(flake, 'metrics'));
const prometheus = (/** @type {unknown} */ flake) => textOf(flakeOf(flake, 'prometheus'));

/** @satisfies {Record<keyof typeof import('./monitoring.js'), unknown>} */
module.exports = { health, metrics, prometheus };
