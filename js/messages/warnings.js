'use strict';
// Warnings of the clock, the layout, slots and leases.

const { lossOf, textOf, urlOf } = require('./faults.js');
const { propertyOf } = require('../ids/properties.js');
const { sanitize } = require('./secrets.js');
const { moment, unixNow } = require('../runtime/time.js');

/** @import { Fault, Layout, LeaseInfo, Loss, Rollback } from '../types.js' */

/**
 * Emits a warning. Never throws, even if an application replaced process.emitWarning().
 * @param {string} code
 * @param {string} message
 * @param {string} [detail]
 */
function warn(code, message, detail) {
  try {
    process.emitWarning(sanitize(message), {
      type: 'SnowFlakeWarning',
      code,
      detail: detail && sanitize(detail),
    });
  } catch {
    // Nobody can receive the warning.
  }
}

/**
 * Warns of a clock rollback.
 * @param {Rollback} rollback
 */
function warnOfRollback({ backMs, counter, isRefused, unreported }) {
  const ids = isRefused
    ? 'IDs stop until it has caught up'
    : `IDs continue under clock-back counter ${counter}`;
  const more = unreported > 0 ? ` (${unreported} more rollbacks since the last warning)` : '';
  warn(
    'SNOWFLAKE_CLOCK_BACK',
    `The clock rolled back by ${backMs} ms; ${ids}${more}.`,
    "IDs stay unique. Check the service that sets this machine's clock: it should slew the clock, not step it.",
  );
}

const DAY_MS = 86_400_000;

/** The layouts that were warned of. */
const ending = new Set();

/**
 * Warns, once per layout, that its timestamp overflows soon.
 * @param {Layout} layout
 */
function warnOfEnd({ epoch, timestampBits, tickMs }) {
  const end = epoch + 2 ** timestampBits * tickMs;
  const left = end - unixNow();
  if (left <= 0 || ending.has(`${epoch} ${end}`)) return;
  ending.add(`${epoch} ${end}`);
  warn(
    'SNOWFLAKE_TIME_ENDING',
    `The layout's timestamp overflows at ${moment(end)}, in ${Math.ceil(left / DAY_MS)} days: no more IDs after that.`,
    'Plan the move to more timestampBits, or to a later epoch with worker IDs that never issued any.',
  );
}

/**
 * Warns that IDs, which a column stores as text, will get another digit.
 * @param {number} digits
 * @param {number} end
 * @param {number} left
 */
function warnOfTextIds(digits, end, left) {
  warn(
    'SNOWFLAKE_TEXT_IDS',
    `IDs grow from ${digits} to ${digits + 1} digits at ${moment(end)}, in ${Math.ceil(left / DAY_MS)} days, and a column stores them as text: it will sort wrongly from then on.`,
    'Change the column to BIGINT before that, or store a text of fixed width, such as that of nextIdBase32().',
  );
}

/**
 * Warns of an unusable slot that a search skipped.
 * @param {Fault} fault
 */
function warnOfUnusable(fault) {
  warn('SNOWFLAKE_SLOT_UNUSABLE', `Skipped a slot that cannot be used: ${textOf(fault)}.`);
}

/**
 * Warns of another user of the machine who issues the same IDs.
 * @param {Fault} fault
 */
function warnOfSecondUser(fault) {
  warn('SNOWFLAKE_SECOND_USER', `${textOf(fault)}.`);
}

/**
 * Warns of a variable with a name similar to one that snowdrift reads.
 * @param {string} given
 * @param {string} name
 */
function warnOfVariable(given, name) {
  warn(
    'SNOWFLAKE_VARIABLE',
    `The environment variable ${given} is not read. Did you mean ${name}?`,
    `If ${given} is your own, ignore this warning.`,
  );
}

/**
 * Warns that a lease waits for its floor.
 * @param {{ name: string }} store
 * @param {{ workerId: number, ms: number }} wait
 */
function warnOfFloor(store, { workerId, ms }) {
  const [isNew, create] = propertyOf(store, 'mayForget')
    ? ['is new, ', '. If there never was a namespace, create it ahead: snowdrift recover URL --new']
    : ['', ''];
  const message = `A lease waits ${ms} ms for its first ID.`;
  const why = `the last holder of workerId ${workerId} did not release it, or the namespace ${isNew}was lost or was recovered`;
  warn('SNOWFLAKE_FLOOR', message, `${store.name}: ${why}. IDs up to then may exist${create}`);
}

/** The most names of other namespaces in a warning. */
const MOST_NAMES = 5;

/**
 * Warns of a new namespace beside others.
 * @param {{ name: string }} store
 * @param {readonly string[]} others the names of the others
 */
function warnOfNamespace({ name }, others) {
  const shown = [...others].sort().slice(0, MOST_NAMES).join(', ');
  const more = others.length > MOST_NAMES ? ` and ${others.length - MOST_NAMES} more` : '';
  warn(
    'SNOWFLAKE_NAMESPACE_NEW',
    `A lease created the namespace ${name}; its store has others: ${shown}${more}.`,
    'Two namespaces may give equal IDs: stop the processes of one, or give them other datacenterIds. If one of the others was meant, correct the name. This warning comes once.',
  );
}

/**
 * Warns of a loss after which other holders may have issued the same IDs as this one.
 * @param {{ name: string }} store
 * @param {{ workerId: number, lost: Loss, isShared: boolean, reach: number }} loss
 */
function warnOfNamespaceLoss(store, { workerId, lost, isShared, reach }) {
  const { name } = store;
  const holder = isShared ? 'this host' : 'this process';
  const tools = /^(typeorm|postgres|mysql):/.test(name)
    ? '. If an ORM dropped the table, give it a schema of its own: ?schema=ids'
    : '';
  const remedy =
    propertyOf(store, 'scope') === 'process'
      ? 'Set its auto-increment above all earlier worker IDs'
      : `After a loss of data, run once: snowdrift recover ${urlOf(name)}${tools}`;
  warn(
    'SNOWFLAKE_NAMESPACE_LOST',
    `workerId ${workerId} of ${name} ${lossOf(lost)}.`,
    `IDs of ${holder} stop for up to ${reach} ms, until the clock has passed all IDs issued before. Since the loss, other holders of ${name} may have issued the same IDs as ${holder}. ${remedy}`,
  );
}

/**
 * @param {{ name: string }} store
 * @param {{ workerId: number, newWorkerId: number, lost: Loss, isShared: boolean }} loss
 */
function warnOfNewSlot({ name }, { workerId, newWorkerId, lost, isShared }) {
  const [scope, who] = isShared
    ? ['host', 'all processes of this host were']
    : ['process', 'this process was'];
  warn(
    'SNOWFLAKE_SLOT_LOST',
    `workerId ${workerId} of ${name} ${lossOf(lost, scope)}; IDs continue under workerId ${newWorkerId}.`,
    lost === 'taken' ? `Its lease had expired: ${who} stopped or cut off.` : undefined,
  );
}

/**
 * Warns of a lease whose renewal fails.
 * @param {LeaseInfo} lease
 * @param {number} more the number of further failures since the last warning
 */
function warnOfFailure({ store, slot: { workerId }, state, ceiling, failure }, more) {
  const others = more > 0 ? ` (${more} more failures since the last warning)` : '';
  const [what, ids] =
    state === 'lost'
      ? [
          'lost, and another one is not available yet',
          'IDs have stopped, and continue when a slot is taken',
        ]
      : ['not renewed', `IDs continue until ${moment(ceiling)}, and after that when it is renewed`];
  warn(
    'SNOWFLAKE_LEASE_FAILING',
    `The lease of workerId ${workerId} from ${store} is ${what}: ${failure}${others}.`,
    `${ids}. The next try follows by itself.`,
  );
}

/**
 * Warns that a lease is renewed again.
 * @param {LeaseInfo} lease
 * @param {number} ms
 */
function warnOfRecovery({ store, slot: { workerId } }, ms) {
  warn(
    'SNOWFLAKE_LEASE_RENEWED',
    `The lease of workerId ${workerId} from ${store} is renewed again, ${Math.round(ms / 1000)} s after it failed.`,
  );
}

module.exports = {
  warn,
  warnOfEnd,
  warnOfFailure,
  warnOfFloor,
  warnOfNamespace,
  warnOfNamespaceLoss,
  warnOfNewSlot,
  warnOfRecovery,
  warnOfRollback,
  warnOfSecondUser,
  warnOfTextIds,
  warnOfUnusable,
  warnOfVariable,
};
