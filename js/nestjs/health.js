'use strict';
// A health indicator for @nestjs/terminus.

/**
 * @import { Health } from '../monitoring.js'
 *
 * What is used of @nestjs/terminus. HealthIndicatorService came with version 11; before, a failure had to be thrown.
 * @typedef {object} Terminus
 * @property {unknown} [HealthIndicatorService]
 * @property {new (message: string, causes: { [key: string]: Health }) => Error} [HealthCheckError]
 */

const { argumentError, describe, needsPackage } = require('../messages/errors.js');
const { health } = require('../monitoring/health.js');

/** @returns {Terminus} */
function loadTerminus() {
  try {
    return /** @type {Terminus} */ (require('@nestjs/terminus'));
  } catch (cause) {
    throw needsPackage('SnowFlakeHealthIndicator', '@nestjs/terminus', cause);
  }
}

class SnowFlakeHealthIndicator {
  #terminus = loadTerminus();

  /**
   * @param {unknown} [key]
   * @param {unknown} [flake]
   */
  async isHealthy(key = 'snowdrift', flake = undefined) {
    if (typeof key !== 'string' || key === '') {
      throw argumentError(`the key of isHealthy() must be a text; it is ${describe(key)}`);
    }
    const result = health(flake);
    const { HealthCheckError, HealthIndicatorService } = this.#terminus;
    const mustThrow = result.status === 'down' && HealthIndicatorService === undefined;
    if (mustThrow && HealthCheckError !== undefined) {
      throw new HealthCheckError(`${key}: ${result.reason}`, { [key]: result });
    }
    return { [key]: result };
  }
}

module.exports = { SnowFlakeHealthIndicator };
