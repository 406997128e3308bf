'use strict';
// Everything that snowdrift throws or warns of, and how it is worded.

const { inspect, types } = require('node:util');

const { unixNow } = require('./time.js');

class SnowFlakeError extends Error {
  constructor(code, message, { cause, retryAfterMs, holders } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (holders !== undefined) this.holders = holders;
  }

  get name() {
    return 'SnowFlakeError';
  }
}

/** A text without the user and password of a URL, valid or not. */
function withoutLogin(text) {
  return text.includes('//')
    ? text.replace(/\/\/\S*@/, '//***@')
    : text.replace(/^[^/\s]*:\S*@/, '***@');
}

/** A value as an error shows it: short, and never running the value's own code. */
function shown(value) {
  try {
    // Without its stack, which the error that has it as a cause shows anyway.
    if (types.isNativeError(value)) return `${value.name}: ${value.message}`.slice(0, 200);
    const safe = typeof value === 'string' ? withoutLogin(value) : value;
    return inspect(safe, {
      depth: 0,
      maxStringLength: 60,
      maxArrayLength: 3,
      breakLength: Infinity,
      customInspect: false,
    });
  } catch {
    return `a ${typeof value}`;
  }
}

const configError = (message, options) =>
  new SnowFlakeError('ERR_SNOWFLAKE_CONFIG', message, options);
const argumentError = (message, options) =>
  new SnowFlakeError('ERR_SNOWFLAKE_ARGUMENT', message, options);
const clockError = (message, options) =>
  new SnowFlakeError('ERR_SNOWFLAKE_CLOCK', message, options);
const invalidId = (message) => new SnowFlakeError('ERR_SNOWFLAKE_INVALID_ID', message);

/** Whether `require` or `import` did not find a package. */
function isMissing({ code }) {
  return code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND';
}

/** What to say where a package could not be loaded that the application is to have. */
function needsPackage(what, name, cause) {
  if (!isMissing(cause)) return cause;
  return configError(`${what} needs the package '${name}': npm install ${name}`, { cause });
}

/** What a native call answered, unless it answered with a fault. */
function granted(answer) {
  if (answer !== null && typeof answer === 'object' && Object.hasOwn(answer, 'code')) {
    throw held(answer) ?? new SnowFlakeError(answer.code, answer.message);
  }
  return answer;
}

/** The error for a slot that others hold, if that is the fault. */
function held({ code, message, holders }) {
  const remedy = {
    ERR_SNOWFLAKE_IN_USE:
      'Processes of one host share a slot if all have the same state, scope and SNOWDRIFT_SHARED. Otherwise give each host or container a workerId of its own, take any free one with SnowFlake.lease(), or set waitForSlot to wait for the other process to end',
    ERR_SNOWFLAKE_NO_SLOT:
      'End one of these processes, set waitForSlot to wait for one to end, or use another datacenterId or a layout with more workerBits',
  }[code];
  if (remedy === undefined) return undefined;
  const who = holders.map(({ workerId, pid, host, started }) => {
    const slot = workerId === undefined ? '' : `workerId ${workerId}: `;
    return `${slot}process ${pid} on ${host}, started ${moment(started)}`;
  });
  const list = who.length === 0 ? '' : `: ${who.join('; ')}`;
  return new SnowFlakeError(code, `${message}${list}. ${remedy}`, {
    holders: holders.map(({ started, ...rest }) => ({ ...rest, startedAt: new Date(started) })),
  });
}

/** A moment in Unix ms, as far as a Date can show it. */
function moment(unixMs) {
  const date = new Date(unixMs);
  return Number.isNaN(date.getTime()) ? `${unixMs} (Unix ms)` : date.toISOString();
}

const HOUR_MS = 3_600_000;

const quoted = (text) => (/^[\w:/.@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** What to do where a clock that stood hours ahead has used a slot of a directory, or the host's page. */
function remedy(retryAfterMs, { datacenterId, workerId, layout }, lease, page) {
  if (!(retryAfterMs > HOUR_MS)) return '';
  const node = `--datacenter-id ${datacenterId} --worker-id ${workerId}`;
  if (lease?.store.startsWith('file:')) {
    const file = `${lease.store}/datacenter-${datacenterId}-worker-${workerId}.slot`;
    return `. If the clock is right now and once stood ahead, end this process and reset the slot ${file.slice('file://'.length)}: snowdrift reset ${quoted(lease.store)} ${node} says what that risks`;
  }
  if (lease || page === undefined) return '';
  return `. If the clock is right now and once stood ahead, end all processes of this node and reset its page ${page}: snowdrift reset ${node} ${layoutFlags(layout)} says what that risks`;
}

/** A layout as the command line takes it. */
function layoutFlags({
  timestampBits,
  datacenterBits,
  workerBits,
  clockBackBits,
  sequenceBits,
  ...rest
}) {
  const bits = [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits].join('/');
  return `--layout ${bits}@${rest.tickMs} --epoch ${rest.epoch}`;
}

/**
 * Why there is no ID. `layout` and `maxWait` are those of the instance that was asked, `lease` is how
 * its lease stands.
 */
function refused({ kind: found, now, retryAfterMs, why, page }, settings, lease) {
  const { layout, maxWait } = settings;
  // A lease that lost its slot, and could not open another one, has no generator meanwhile.
  const kind = found === 'closed' && lease?.state === 'lost' ? 'ceiling' : found;
  // Of a lease from a directory there is no such field.
  const isOfStore = lease?.expires !== undefined;
  const isShared = page !== undefined && !lease;
  const again = retryAfterMs === undefined ? '' : ` Try again in ${retryAfterMs} ms`;
  const perTick = `${2 ** layout.sequenceBits} IDs a tick of ${layout.tickMs} ms`;
  const [code, message] = {
    closed: ['ERR_SNOWFLAKE_CLOSED', 'this SnowFlake is closed; make another one to draw more IDs'],
    'used-up': [
      'ERR_SNOWFLAKE_EXHAUSTED',
      retryAfterMs === undefined
        ? `the layout's ${perTick} are used up, and this tick was its last. Choose more timestampBits, or a later epoch with worker IDs that issued none before`
        : `the layout's ${perTick} are used up, and maxWait (${maxWait} ms) does not reach what is next. Try again in ${retryAfterMs} ms, await nextIdAsync(), or choose more sequenceBits, a larger maxWait or maxAhead`,
    ],
    'clock-back': [
      'ERR_SNOWFLAKE_CLOCK_BACK',
      `the clock stepped back to ${moment(now)}, below IDs that are already issued. Try again in ${retryAfterMs} ms, when it will have caught up, and look at what sets this machine's clock${remedy(retryAfterMs, settings, lease, page)}`,
    ],
    'before-epoch': [
      'ERR_SNOWFLAKE_BEFORE_EPOCH',
      `the clock stands at ${moment(now)}, before the layout's epoch ${moment(layout.epoch)}. Set the clock right, or choose an earlier epoch`,
    ],
    page: [
      'ERR_SNOWFLAKE_STORE',
      `the sequence that this host's processes share cannot be used: ${why}`,
    ],
    floor: [
      'ERR_SNOWFLAKE_WINDOW',
      isShared
        ? `the clock stands at ${moment(now)}, and this host's earlier page of the node may have issued IDs up to ${moment(now + retryAfterMs - 1)}.${again}${remedy(retryAfterMs, settings, lease, page)}`
        : `the clock stands at ${moment(now)}, and IDs up to ${moment(lease?.floor)} may have been issued ${
            isOfStore ? 'by other holders of this slot' : 'before this process started'
          }.${again}, when the clock has passed that${remedy(retryAfterMs, settings, lease, page)}`,
    ],
    ceiling: isOfStore
      ? leaseRefusal(lease, now)
      : isShared
        ? [
            'ERR_SNOWFLAKE_WINDOW',
            `the clock stands at ${moment(now)}, for which a clock that stood ahead has issued IDs, as a reset of ${page} found. Use another workerId. When the clock has passed them, end all processes of this node and remove the page`,
          ]
        : lease?.failure
          ? [
              'ERR_SNOWFLAKE_STORE',
              `the state of this node cannot be kept, so its IDs stop: ${lease.failure}.${again}`,
            ]
          : [
              'ERR_SNOWFLAKE_WINDOW',
              `the clock stands at ${moment(now)}, beyond what is recorded for this node: the process was suspended, or the clock stepped. It is being recorded further.${again}, or choose a larger maxWait`,
            ],
    'time-ended': [
      'ERR_SNOWFLAKE_TIME_ENDED',
      `the clock stands at ${moment(now)}, and the layout's ${layout.timestampBits} timestamp bits have run out. Choose more timestampBits, or a later epoch with worker IDs that issued none before`,
    ],
  }[kind];
  return new SnowFlakeError(code, message, { retryAfterMs });
}

/** Why a lease from a store has no ID: code and message. */
function leaseRefusal({ slot, store, state, lost, ceiling, failure, clockSkew }, now) {
  if (state !== 'lost' && failure === undefined && clockSkew > 0) {
    return [
      'ERR_SNOWFLAKE_CLOCK_SKEW',
      `this machine's clock shows ${moment(now)}, and the clock of ${store} shows ${moment(now - clockSkew)}: this is further apart than ttl, maxClockSkew and maxAhead allow. IDs go on by themselves when the clocks agree: set this machine's clock right (NTP), or the store's`,
    ];
  }
  const what = {
    taken: 'was taken over by another process, since it had not been renewed in time',
    missing: 'is no longer recorded there',
    reverted: 'is recorded there as it was before (a restored backup, or a replica that lagged)',
  }[lost];
  const why = failure === undefined ? '' : ` (${failure})`;
  return [
    'ERR_SNOWFLAKE_LEASE_EXPIRED',
    state === 'lost'
      ? `workerId ${slot.workerId} of ${store} ${what}. This process waits for a free slot, and IDs go on by themselves when it has one${why}`
      : `the lease of workerId ${slot.workerId} from ${store} has run out at ${moment(ceiling)}${why}. IDs go on by themselves when it is renewed, which is tried again and again: look at the store`,
  ];
}

/** Tells the process that its clock stepped back. */
function warnOfStep({ backMs, counter, unreported }, layout) {
  const counted = layout.clockBackBits > 0 ? `; IDs go on under clock-back counter ${counter}` : '';
  const more = unreported > 0 ? ` (${unreported} more steps since the last warning)` : '';
  process.emitWarning(`The clock stepped back by ${backMs} ms${counted}${more}.`, {
    type: 'SnowFlakeWarning',
    code: 'SNOWFLAKE_CLOCK_BACK',
    detail:
      "IDs stay unique. Look at what sets this machine's clock: it should be slewed, not stepped.",
  });
}

const YEAR_MS = 365 * 86_400_000;

/** The layouts that were warned of. */
const ending = new Set();

/** Tells the process, once a layout, that its time ends within a year. */
function warnOfEnd({ epoch, timestampBits, tickMs }) {
  const end = epoch + 2 ** timestampBits * tickMs;
  const left = end - unixNow();
  if (left <= 0 || left > YEAR_MS || ending.has(`${epoch} ${end}`)) return;
  ending.add(`${epoch} ${end}`);
  process.emitWarning(
    `The layout's time ends at ${moment(end)}, in ${Math.ceil(left / 86_400_000)} days; then there are no more IDs.`,
    {
      type: 'SnowFlakeWarning',
      code: 'SNOWFLAKE_TIME_ENDING',
      detail:
        'Plan the move to more timestampBits, or to a later epoch with worker IDs that issued none before.',
    },
  );
}

module.exports = {
  SnowFlakeError,
  argumentError,
  clockError,
  configError,
  granted,
  held,
  invalidId,
  isMissing,
  moment,
  needsPackage,
  refused,
  shown,
  warnOfEnd,
  warnOfStep,
};
