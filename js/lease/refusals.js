'use strict';
// The errors of a lease that gets no slot.

const { SnowFlakeError, configError, faultError, unwrap } = require('../errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const native = require('../native.js');
const { formatConflict } = require('../stores/failures.js');
const { moment } = require('../time.js');

/** The limits that a namespace records for its holders, and the flags of the command that raises them. */
const LIMITS = { ttl: 'ttl', maxClockSkew: 'max-clock-skew', maxAhead: 'max-ahead' };

/** The most characters that are shown of a host's name, which anybody may have written: the most of a DNS name. */
const MOST_OF_HOST = 255;

const limitsOf = ({ leasing: { ttl, maxClockSkew }, maxAhead = 0 }) => ({
  ttl,
  maxClockSkew,
  maxAhead,
});

/** The error of a command that is a refusal. @param name the store's */
function refusalOf(command, name, settings) {
  const { datacenterId: datacenter, workerId: worker, layout } = settings;
  switch (command.kind) {
    case 'failed':
      return faultError(command.fault);
    case 'no-slot':
      return faultError({
        ...(worker === undefined ? { kind: 'no-slot' } : { kind: 'claim-held', worker }),
        unusable: command.damaged.map((slot) => ({ kind: 'slot-record-damaged', worker: slot })),
        ...{ store: name, datacenter },
        holders: command.holders.map(({ workerId, host, ...holder }) => ({
          ...{ ...holder, kind: 'holder', worker: workerId, host: host.slice(0, MOST_OF_HOST) },
        })),
      });
    case 'layout':
      return layoutError(
        name,
        [command.layout, layout],
        'Use another namespace for each layout and epoch',
      );
    case 'limits':
      return limitsError(command, name, settings);
    case 'unproven':
      return new SnowFlakeError(
        'ERR_SNOWFLAKE_CONFLICT',
        `${name} is not the store from which this host holds workerId ${command.workerId}, or no process of the host has shown that it is: it may be a copy of that store, or one that has gone back in time. Use another namespace for the copy`,
      );
    case 'ahead':
      return new SnowFlakeError(
        'ERR_SNOWFLAKE_STORE',
        `the namespace of ${name} starts after ${moment(unwrap(native.tickEnd(layout, command.floor)))}, further ahead of its clock than any holder can be: set the clock of the store right. If its record is damaged, use another namespace with another datacenterId`,
      );
    case 'damaged':
      return formatConflict(name, `the key ${command.key}`);
    default:
      return new Error(`the lease cannot go on: ${command.kind}`);
  }
}

function layoutError(name, [found, wanted], advice) {
  const what = `${layoutKey(found)}, and not ${layoutKey(wanted)}`;
  return new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} is for IDs of another layout or epoch: ${what}. ${advice}`,
  );
}

/** Refuses limits above the recorded ones, on which holders that take over or recover rely. */
function limitsError(recorded, name, settings) {
  const own = limitsOf(settings);
  const larger = Object.keys(LIMITS).filter((limit) => own[limit] > recorded[limit]);
  const found = larger.map((limit) => `${limit} ${own[limit]} (recorded: ${recorded[limit]})`);
  const raise = larger.map((limit) => `--${LIMITS[limit]} ${own[limit]}`);
  return configError(
    `${found.join(' and ')} is more than ${name} allows its holders, in ms. Lower it to the recorded value, or raise that for all holders: snowdrift namespace raise URL ${raise.join(' ')}`,
  );
}

/** The error for a clock that differs from the store's by more than `maxClockSkew`. @param skew this clock's minus the store's, ms */
function clockSkewError(skew, name, maxClockSkew) {
  return new SnowFlakeError(
    'ERR_SNOWFLAKE_CLOCK_SKEW',
    `this machine's clock is ${Math.round(Math.abs(skew))} ms ${skew > 0 ? 'ahead of' : 'behind'} the clock of ${name}; maxClockSkew allows ${maxClockSkew} ms. Set this machine's clock right (NTP), or the store's`,
  );
}

/** The error for a record that is written again and again: the store, or another program, does not keep it. */
function changingError(key, name) {
  const what = key === 'namespace' ? 'its namespace' : `its key ${key}`;
  return new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} failed to acquire a slot: ${what} keeps changing`,
  );
}

/** The error where each look at a slot finds another record. */
const unsettledError = (name, ttl) =>
  new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} failed to acquire a slot: its records keep changing, or its calls are too slow for a ttl of ${ttl} ms. Set a longer ttl`,
  );

module.exports = {
  LIMITS,
  MOST_OF_HOST,
  changingError,
  clockSkewError,
  layoutError,
  limitsOf,
  refusalOf,
  unsettledError,
};
