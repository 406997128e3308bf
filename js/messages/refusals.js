'use strict';
// The errors of calls that got no ID: the code and the text of each kind.

const { SnowFlakeError } = require('./errors.js');
const { afterClockAhead, fileOf, lossOf, textOf, wordsFor } = require('./faults.js');
const { ownOf } = require('../ids/properties.js');
const { moment } = require('../runtime/time.js');

/** @import { Fault, Layout, LeaseInfo, Loss, Refusal, Settings, TextsByCode } from '../types.js' */

/**
 * What a text may show of a refusal, the settings and the lease.
 * @typedef {Pick<Settings, 'layout' | 'maxWait'> & Pick<LeaseInfo, 'store' | 'scope' | 'ceiling' | 'failure'> & Shared} Shown
 * @typedef {object} Shared
 * @property {Fault} why
 * @property {number} workerId
 * @property {Loss} lost
 * @property {string} clock
 * @property {() => string} theirClock
 * @property {string} again when to try again; '' if that does not help
 * @property {string} issuedTo
 * @property {string} earlier
 * @property {() => string} ahead
 */

const HOUR_MS = 3_600_000;

const LONGER = 'Choose more timestampBits, or a later epoch with worker IDs that never issued any';

/** @type {(layout: Layout) => string} */
const idsOfTick = ({ sequenceBits, tickMs }) => `${2 ** sequenceBits} IDs of a tick (${tickMs} ms)`;

/**
 * Texts by code and kind. src/binding/reports.rs and `kindOf` have the kinds.
 * @type {TextsByCode<Shown>}
 */
const TEXTS = {
  ERR_SNOWFLAKE_CLOSED: {
    closed: () => 'this SnowFlake is closed: open another one to generate more IDs',
  },
  ERR_SNOWFLAKE_EXHAUSTED: {
    exhausted: ({ layout, maxWait, again }) =>
      again === ''
        ? `the ${idsOfTick(layout)} are exhausted, and it was the layout's last tick. ${LONGER}`
        : `the ${idsOfTick(layout)} are exhausted, and the next tick is further off than maxWait (${maxWait} ms).${again}, await nextIdAsync(), or choose more sequenceBits, a larger maxWait, or maxAhead with state or a lease`,
    'clock-stands': ({ clock, layout, maxWait, again }) =>
      `the ${idsOfTick(layout)} are exhausted, and the clock, at ${clock}, does not reach the next one. It has stood still or was set back for longer than maxWait (${maxWait} ms).${again}, or check the service that sets this machine's clock`,
    'own-clock-stands': ({ clock, layout, maxWait }) =>
      `the ${idsOfTick(layout)} are exhausted, and the option clock, at ${clock}, does not reach the next one within maxWait (${maxWait} ms): advance it, as jest.advanceTimersByTime(${layout.tickMs}) does, or choose more sequenceBits`,
  },
  ERR_SNOWFLAKE_CLOCK_BACK: {
    'clock-back': ({ clock, issuedTo, again, ahead }) =>
      `the clock rolled back to ${clock}, and IDs up to ${issuedTo} are already issued.${again && `${again}.`} Check the service that sets this machine's clock${ahead()}`,
  },
  ERR_SNOWFLAKE_BEFORE_EPOCH: {
    'before-epoch': ({ clock, layout }) =>
      `the clock shows ${clock}, before the layout's epoch ${moment(layout.epoch)}. Correct the clock, or choose an earlier epoch`,
  },
  ERR_SNOWFLAKE_TIME_ENDED: {
    'time-ended': ({ clock, layout }) =>
      `the clock shows ${clock}, and the layout's ${layout.timestampBits} timestamp bits have run out. ${LONGER}`,
  },
  ERR_SNOWFLAKE_WINDOW: {
    floor: ({ clock, earlier, issuedTo, again, ahead }) =>
      `the clock shows ${clock}, and ${earlier} may have issued IDs up to ${issuedTo}.${again}${ahead()}`,
    ceiling: ({ clock }) =>
      `the clock shows ${clock}, above the recorded ceiling: the process was suspended, or the clock jumped. The ceiling is being raised: try again, await nextIdAsync(), or choose a larger maxWait`,
  },
  ERR_SNOWFLAKE_STORE: {
    page: ({ why }) => `cannot use the sequence that this host's processes share: ${textOf(why)}`,
    unrecorded: ({ failure, again }) =>
      `cannot record more IDs of this node, so they stop: ${failure}.${again}`,
  },
  ERR_SNOWFLAKE_CLOCK_SKEW: {
    'clock-skew': ({ clock, theirClock, store }) =>
      `this machine's clock shows ${clock}, and the clock of ${store} shows ${theirClock()}: they differ by more than ttl, maxClockSkew and maxAhead allow. Correct this machine's clock (NTP), or the store's; then IDs continue`,
  },
  ERR_SNOWFLAKE_LEASE_EXPIRED: {
    'lease-lost': ({ workerId, store, lost, scope, failure }) =>
      `workerId ${workerId} of ${store} ${lossOf(lost, scope)}. This process waits for a free slot, and continues by itself when it has one${inBrackets(failure)}`,
    'lease-expired': ({ workerId, store, ceiling, failure }) =>
      `the lease of workerId ${workerId} from ${store} expired at ${moment(ceiling)}${inBrackets(failure)}. The lease is being renewed; IDs then continue by themselves. ${failure === undefined ? 'If this process was busy or suspended for longer than ttl, raise ttl' : 'Check the store'}`,
  },
};

/** @type {(failure: string | undefined) => string} */
const inBrackets = (failure) => (failure === undefined ? '' : ` (${failure})`);

/** @type {(lease: LeaseInfo | undefined) => boolean} */
const isOfStore = (lease) => lease !== undefined && !lease.store.startsWith('file:');

/**
 * The kind of a refusal. Distinguishes the reasons for a ceiling and for an exhausted tick.
 * @param {Refusal} refusal
 * @param {Pick<Settings, 'clock'>} settings
 * @param {LeaseInfo} [lease]
 */
function kindOf({ kind, isStanding, retryAfterMs }, { clock }, lease) {
  if (kind === 'exhausted' && retryAfterMs !== undefined && clock !== undefined) {
    return 'own-clock-stands';
  }
  if (isStanding) return 'clock-stands';
  // A lease that lost its slot, and has no other one yet, has no open generator.
  if (kind !== 'ceiling' && !(kind === 'closed' && lease?.state === 'lost')) return kind;
  if (lease !== undefined && isOfStore(lease)) {
    const { state, failure, clockSkew = 0 } = lease;
    if (state === 'lost') return 'lease-lost';
    return failure === undefined && clockSkew > 0 ? 'clock-skew' : 'lease-expired';
  }
  if (lease?.lost !== undefined) return 'lease-lost';
  return lease?.failure ? 'unrecorded' : 'ceiling';
}

/**
 * The processes that may have issued IDs up to the floor.
 * @param {string | undefined} page
 * @param {LeaseInfo | undefined} lease
 */
function earlierHolders(page, lease) {
  if (page !== undefined && !lease) return "this host's earlier page of the node";
  return isOfStore(lease) ? 'other holders of this slot' : 'earlier processes';
}

/**
 * @param {Refusal} given the refusal, as src/binding/reports.rs reports it; `isStanding` if the clock did not reach the next tick
 * @param {Settings} settings the settings of the instance
 * @param {LeaseInfo} [report] the instance's LeaseInfo, if there is one
 */
function refusalError(given, settings, report) {
  const refusal = ownOf(given);
  const lease = report && ownOf(report);
  const { now, retryAfterMs, page } = refusal;
  const isOver = retryAfterMs === undefined;
  const { code, message } = wordsFor(
    {
      ...{ ...refusal, ...settings, ...lease, ...lease?.slot },
      kind: kindOf(refusal, settings, lease),
      clock: moment(now),
      theirClock: () => moment(now - (lease?.clockSkew ?? 0)),
      again: isOver ? '' : ` Try again in ${retryAfterMs} ms`,
      issuedTo: isOver ? "the end of the layout's time" : moment(now + retryAfterMs - 1),
      earlier: earlierHolders(page, lease),
      ahead: () => aheadAdvice(retryAfterMs, { ...settings, ...lease?.slot }, lease, page),
    },
    TEXTS,
  );
  return new SnowFlakeError(code, message, { retryAfterMs });
}

/**
 * The advice for a node whose IDs a clock that was hours ahead has used; '' if that does not apply.
 * @param {number | undefined} retryAfterMs
 * @param {Pick<Settings, 'datacenterId' | 'workerId'>} node
 * @param {LeaseInfo} [lease]
 * @param {string} [page]
 */
function aheadAdvice(retryAfterMs = 0, { datacenterId, workerId }, lease, page) {
  if (retryAfterMs <= HOUR_MS || isOfStore(lease)) return '';
  if (lease === undefined) return page === undefined ? '' : `. ${afterClockAhead(undefined, page)}`;
  const file = fileOf(lease.store.slice('file://'.length), `${datacenterId}/${workerId}`);
  return `. ${afterClockAhead(file, page)}`;
}

module.exports = { TEXTS, refusalError };
