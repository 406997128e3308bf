'use strict';
// IDs that grow from 18 to 19 digits, on a clock of their own: text then sorts otherwise than numbers.

const { compareIds } = require('../../js/id.js');
const { SnowFlake } = require('./support.js');

const LONGER = 10n ** 18n;

/** An instance whose clock is a ms later at each reading. It draws a few IDs of 18 digits, then those of 19. */
function crossingFlake(options) {
  const clock = () => clock.now++;
  clock.now = 0;
  const flake = new SnowFlake({ datacenterId: 2, workerId: 9, clock, ...options });
  clock.now = flake.parse(LONGER).timestamp - 9;
  return flake;
}

/** IDs of any form as numbers sort them. */
const byValue = (ids) => [...ids].sort(compareIds);

/** Whether IDs cross 10^18. */
const cross = (ids) =>
  ids.some((id) => compareIds(id, LONGER) < 0) && ids.some((id) => compareIds(id, LONGER) >= 0);

module.exports = { byValue, cross, crossingFlake };
