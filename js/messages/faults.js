'use strict';
// The code and the text of each fault of a native call. Rust sends its kind and its values: `fault!` in src/.
// js/messages/refusals.js has the texts of calls that got no ID.

const { basename, dirname, join } = require('node:path');
const { pathToFileURL } = require('node:url');

const { ownOf } = require('../ids/properties.js');
const { printable } = require('./secrets.js');
const { moment } = require('../runtime/time.js');

/** @import { Failure, Fault, FaultDetails, Loss, SnowFlakeErrorCode, TextsByCode } from '../types.js' */
/** @typedef {{ [key: string]: string }} Texts */

const PAGE_REMEDY =
  "snowdrift left it unchanged. End this user's processes of this node, and remove it when the clock has passed the node's last ID";
const SLOT_REMEDY =
  'snowdrift left it unchanged. To continue at once, use another workerId. To use this one again, end its processes and move the file away: its next holder starts above all that they issued, unless their clock was ahead';
const INTRUDER = 'Remove it, and stop the program that created it';
const THREADS = "Raise this process's limit of threads";
const ABSENT =
  'Check the path, and mount the directory or put it back. Only its first lease, or its first use as state, creates it';
const DISK = 'Check the disk and its file system';

/**
 * The remedies for failures of the system, by Rust's reason.
 * @type {Texts}
 */
const REMEDIES = {
  TooManyFiles:
    'This process has as many files open as its limit permits (ulimit -n): close what it does not need, or raise the limit',
  TooManyFilesOfSystem:
    'The system has as many files open as it permits (fs.file-max): end processes that leave files open, or raise the limit',
  OutOfMemory:
    'Free memory, or raise the limit of memory of this process (ulimit -v) or of its container',
  InvalidFilename: 'Give a shorter path',
  FilesystemLoop: 'Give a path without a loop of symbolic links',
  NoLocks: 'That file system gives no locks: start its lock service (NFS), or give a local path',
  Unsupported: 'That file system lacks what this needs: give a path on a local one',
  StaleNetworkFileHandle: 'Mount that file system again',
};

/**
 * The remedy for an error of Node, by its code, or by the code in its message.
 * @param {Failure} failure
 */
function lackOf({ code, message }) {
  const start = typeof message === 'string' ? message.slice(0, 200) : '';
  const [found] = /^E[MN]FILE$/.exec(String(code)) ?? /\bE[MN]FILE\b/.exec(start) ?? [];
  if (found === undefined) return undefined;
  return found === 'EMFILE' ? REMEDIES.TooManyFiles : REMEDIES.TooManyFilesOfSystem;
}

/**
 * @type {(other: string) => Texts}
 * @param other how to give another directory
 */
const remediesOf = (other) => ({
  ...REMEDIES,
  PermissionDenied: `Let this process's user write there, or ${other}`,
  StorageFull: 'Remove files from that file system, or enlarge it',
  QuotaExceeded: "Remove this user's files from that file system, or raise its quota",
  ReadOnlyFilesystem: `Mount it writable, or ${other}`,
  NotFound: `Create it, or ${other}`,
});

const PAGE_REMEDIES = remediesOf('set SNOWDRIFT_SHARED to another directory');

/** @type {Texts} */
const SLOT_REMEDIES = {
  ...remediesOf('choose another directory'),
  NotFound: 'Create its parent directory',
  NotADirectory: 'Give the path of a directory',
  WouldBlock: THREADS,
  ResourceBusy: 'A process that looks at it has been stopped: continue it, or end it',
};

/**
 * @param {FaultDetails} details
 * @param {Texts} remedies
 */
function refusalOfSystem({ doing, place, cause, reason }, remedies) {
  const isAbsent = reason === 'NotFound' && /^(find|read) the directory$/.test(doing);
  const remedy = isAbsent ? ABSENT : (remedies[reason] ?? DISK);
  return `cannot ${doing} ${place}: ${cause}. ${remedy}`;
}

/**
 * Whether the name of a store is that of a directory.
 * @type {(store: string) => boolean}
 */
const isDirectory = (store) => store.startsWith('file://');

/**
 * A store's URL for a command: of a directory, in the quotes of a shell where it needs them.
 * @param {string} store
 */
function urlOf(store) {
  if (!isDirectory(store)) return 'URL';
  const { href } = pathToFileURL(store.slice('file://'.length));
  return /^[\w:/.@%-]+$/.test(href) ? href : `'${href.replaceAll("'", '%27')}'`;
}

/**
 * What to do with a file of a directory that is no record.
 * @param {string} place
 */
function slotRemedy(place) {
  if (basename(place) !== 'namespace.slot') return SLOT_REMEDY;
  return `snowdrift left it unchanged. Move it away, and run, with the values of its holders: snowdrift recover ${urlOf(`file://${dirname(place)}`)} --layout LAYOUT --ttl MS --max-ahead MS`;
}

/**
 * The file of a record of a directory, as src/register names it.
 * @param {string} directory
 * @param {string} key 'namespace', or 'DATACENTER/WORKER'
 */
function fileOf(directory, key) {
  const [datacenterId, workerId] = key.split('/');
  const name = workerId === undefined ? key : `datacenter-${datacenterId}-worker-${workerId}`;
  return join(directory, `${name}.slot`);
}

/**
 * What lets a node issue IDs again that a clock ahead of time has used.
 * @param {string} [file] of its slot in a directory, if it has one
 * @param {string} [page] of the host; undefined if that is not known
 */
function afterClockAhead(file, page) {
  const pages =
    page === undefined
      ? ["this host's page of it (snowdrift slots --host --all lists pages)"]
      : [page, page.replace(/page$/, 'born')];
  const files = [...(file === undefined ? [] : [file]), ...pages].join(' and ');
  return `If the clock is right now and was ahead before, end all processes of this node, and remove ${files}. IDs that were issued ahead can repeat then when their times come`;
}

/**
 * The uses of a page, by its kind.
 * @type {Texts}
 */
const USES = {
  plain: 'without state or a lease',
  lease: 'with state or under a lease',
};

/** @type {(pid: number | undefined) => string} */
const processOf = (pid) => (pid === undefined ? 'another process' : `process ${pid}`);

/** @type {(how: string) => string} */
const elsewhere = (how) =>
  `this process has the same datacenterId, workerId and layout open ${how}: pass the same scope, state and ttl, or close the others first`;

/**
 * A holder without its worker ID.
 * @type {(holder: Fault) => Fault}
 */
const unnamed = (holder) => ({ ...ownOf(holder), worker: undefined });

/** The most holders or slots that a text describes. The error's `holders` has all. */
const DESCRIBED = 3;

/** @param {Fault[]} faults */
function described(faults) {
  const texts = faults.slice(0, DESCRIBED).map(textOf);
  if (faults.length > DESCRIBED) texts.push(`and ${faults.length - DESCRIBED} more`);
  return texts.join('; ');
}

/**
 * A list of holders, to append to the text of a failure.
 * @param {Fault[]} holders
 * @param {string} remedy
 */
const held = (holders, remedy) =>
  `${holders.length === 0 ? '' : `: ${described(holders)}`}. ${remedy}`;

/** @param {Fault[]} faults */
const unusableToo = (faults) =>
  faults.length === 0 ? '' : ` or cannot be used (${described(faults)})`;

/**
 * Who has slots that are not free. Without any that the store names, it is this host.
 * @param {Fault[]} holders
 * @param {Fault[]} unusable
 */
function heldBy(holders, unusable) {
  const isHere = holders.length === 0 && unusable.length === 0;
  return isHere
    ? 'used by another lease or state of this host, now or until less than its ttl ago: snowdrift slots --host lists its processes'
    : `held${unusableToo(unusable)}`;
}

/**
 * The texts of losses.
 * @type {Record<Loss, (scope: string) => string>}
 * @param scope the scope of the holders
 */
const LOSSES = {
  taken: (scope) => `was taken over by another ${scope}, since it was not renewed in time`,
  reverted: () =>
    'is no longer recorded, or with an older ceiling: a table, key or file was deleted, a backup was restored, a replica that lagged took over, or snowdrift recover was run',
  restored: () => 'may be that of the machine whose snapshot this one was restored from',
  page: () =>
    'has no page of this host any more: the page was deleted, or another process of this host took the workerId over',
};

/** @type {(lost: Loss, scope?: string) => string} */
const lossOf = (lost, scope = 'process') => LOSSES[lost](scope);

/**
 * Texts by code and kind.
 * @type {TextsByCode<FaultDetails>}
 */
const TEXTS = {
  ERR_SNOWFLAKE_CONFIG: {
    'out-of-range': ({ name, value, min, max }) =>
      `${name} must be a whole number from ${min} to ${max}; it is ${value}`,
    'layout-too-wide': ({ bits }) =>
      `the widths of a layout must add up to at most 63 bits (bit 63 is the sign); these add up to ${bits}`,
    'no-such-choice': ({ option, value }) => `${option} has no value '${value}'`,
    'ahead-unrecorded': ({ maxAhead }) =>
      `maxAhead is ${maxAhead} ms, and nothing records this node: a restart would issue the IDs taken ahead of the clock again. Record it with state: '/var/lib/app/ids', lease a worker ID (SnowFlake.lease(), SNOWDRIFT_LEASE), or leave out maxAhead`,
    'no-shared-memory': () =>
      "scope 'host' needs a directory in memory that the host's processes see, and this system has none at /dev/shm: mount a tmpfs there, set SNOWDRIFT_SHARED to a directory in one, or use scope 'process' and give each process a workerId of its own",
    'ring-too-large': ({ slots, most }) =>
      `a ring of ${slots} IDs (those of a tick << boostPower) exceeds the limit of ${most} (${most / 2 ** 17} MiB): choose a smaller boostPower, or fewer sequenceBits`,
  },
  ERR_SNOWFLAKE_ARGUMENT: {
    'field-too-large': ({ name, value, max }) =>
      `${name} must be a whole number from 0 to ${max} in this layout; it is ${value}`,
  },
  ERR_SNOWFLAKE_CLOCK_SKEW: {
    'clock-skew': ({ skew, store, most }) =>
      `this machine's clock is ${Math.round(Math.abs(skew))} ms ${skew > 0 ? 'ahead of' : 'behind'} the clock of ${store}; maxClockSkew allows ${most} ms. Set this machine's clock right (NTP), or the store's`,
  },
  ERR_SNOWFLAKE_CONFLICT: {
    'page-max-ahead': ({ place, pid, theirs, ours }) =>
      `maxAhead is ${ours} ms in this process, and ${theirs} ms in the processes that share ${place}${pid === undefined ? '' : `, such as process ${pid}`}: set the same maxAhead in all processes of a node`,
    'page-kind': ({ place, pid, theirs, ours }) =>
      `${place} is used ${USES[theirs]} by ${processOf(pid)}, and this process opens it ${USES[ours]}: set the same state in all processes of a node, or use a workerId that nobody leases`,
    'page-user': ({ place, pid, from, to }) =>
      `this process has changed its user from ${from} to ${to}, and ${processOf(pid)} still uses ${place}: users share no sequence. Change the user in all processes of the node, best before the first ID. Or give this process a workerId of its own, or use state or a lease`,
    'page-mapped': ({ place }) =>
      `${place} was used with another maxAhead or state by an instance of a process that still runs, and Windows replaces no page that a process maps: set the same maxAhead and state again, or restart the processes of this node`,
    'page-lease': ({ place, pid }) =>
      `${place} is used under another lease by ${processOf(pid)}: set the same state, or lease from the same namespace, in all processes of this host, or close the other lease`,
    'open-max-ahead': ({ maxAhead }) =>
      `this process has the same datacenterId, workerId and layout open with maxAhead ${maxAhead}: pass the same maxAhead, or close the others first`,
    'open-in-scope': ({ scope }) => elsewhere(`with scope '${scope}'`),
    'open-ttl': ({ store, ttl }) => elsewhere(`under a lease from ${store} with ttl ${ttl}`),
    'open-leased': ({ scope }) =>
      elsewhere(`under a lease${scope === undefined ? '' : ` with scope '${scope}'`}`),
    'slot-left': () => 'the lease gave up this slot meanwhile: try again',
    'open-already': () => elsewhere('already'),
    'ring-options': ({ boostPower, paddingFactor, scheduleInterval, maxAge, ...policies }) =>
      `this process has a ring of the same datacenterId, workerId and layout open with other options (boostPower ${boostPower}, paddingFactor ${paddingFactor}, scheduleIntervalMs ${scheduleInterval}, maxAge of ${maxAge} ticks, clockBack '${policies.clockBack}', maxWait ${policies.maxWait}, sequenceStart '${policies.sequenceStart}'): pass the same options, or close the others first`,
  },
  ERR_SNOWFLAKE_IN_USE: {
    'claim-held': ({ store, datacenter, worker, holders, unusable }) =>
      `workerId ${worker} of datacenterId ${datacenter} in ${store} is ${heldBy(holders, unusable)}${held(holders.map(unnamed), 'End that process, wait for it with a longer waitForSlot, or use another workerId')}`,
    'page-format': ({ place, format, known }) =>
      `${place} is a page of format ${format}, and this version of snowdrift uses format ${known}: use one version for all processes of this node`,
  },
  ERR_SNOWFLAKE_NO_SLOT: {
    'no-slot': ({ store, datacenter, holders, unusable }) =>
      `all slots of datacenterId ${datacenter} in ${store} are ${heldBy(holders, unusable)}${held(holders, 'End one of these processes, set waitForSlot to wait until one ends, or use another datacenterId or a layout with more workerBits')}`,
  },
  ERR_SNOWFLAKE_STORE: {
    'store-layout': ({ store, layouts }) =>
      `${store} is for IDs of another layout or epoch: ${layouts.map(textOf).join(', not ')}. First stop all processes with the other one, since both may issue equal IDs; then use another ${isDirectory(store) ? 'directory' : 'namespace'} for this one`,
    'store-ahead': ({ store, from }) =>
      isDirectory(store)
        ? `the namespace of ${store} starts after ${moment(from)}, further ahead of this machine's clock than any holder can be: set the clock right. If it is right now and was ahead before, or namespace.slot is damaged: snowdrift recover ${urlOf(store)}`
        : `the namespace of ${store} starts after ${moment(from)}, further ahead of its clock than any holder can be: set the clock of the store right. If its record is damaged: snowdrift recover URL`,
    'store-records': ({ store, evidence }) =>
      `${store} has records of another format: ${evidence}. If they are damaged, run: snowdrift recover ${urlOf(store)}. If a newer snowdrift has written them, update this one. Another program${isDirectory(store) ? '' : ', or a setting of the session,'} may also have changed them. Do not delete them, since their holders may issue IDs. To continue at once, use another ${isDirectory(store) ? 'directory' : 'namespace'} with a datacenterId that this one does not use`,
    'store-unsettled': ({ store, ttl }) =>
      `${store} failed to acquire or renew a slot: its records keep changing. If its calls are slow, set a longer ttl than ${ttl} ms. Otherwise check that it keeps what is written`,
    'page-io': (values) => refusalOfSystem(values, PAGE_REMEDIES),
    'page-damaged': ({ place }) => `${place} is damaged. ${PAGE_REMEDY}`,
    'page-foreign': ({ place }) => `${place} is not a snowdrift page. ${PAGE_REMEDY}`,
    'page-misnamed': ({ place }) =>
      `${place} is the page of another node, under this name. ${PAGE_REMEDY}`,
    'page-overwritten': ({ place }) =>
      `${place} was overwritten while it was in use. ${PAGE_REMEDY}`,
    'page-length': ({ place, length, wanted }) =>
      `${place} is ${length} bytes long and should be ${wanted}. ${PAGE_REMEDY}`,
    'page-writable': ({ place, mode }) =>
      `${place} is writable by other users (mode ${mode}). ${PAGE_REMEDY}`,
    'page-byte-order': ({ place }) =>
      `${place} was created on an architecture of the other byte order. Use one architecture for all processes of this node`,
    'page-replaced': ({ place }) =>
      `${place} was deleted or replaced each time it was created. Find the program that does so, and stop it`,
    'page-changing': ({ place }) =>
      `${place} is being replaced by a process that does not finish. Find the process that has it open, and end it`,
    'page-deleted': ({ place, times }) =>
      `${place} was deleted ${times} times while it was in use. Find the program that deletes it, stop it, and restart this process`,
    'not-a-directory': ({ place, isLink }) =>
      `${place} is ${isLink ? 'a symbolic link and must be' : 'not'} a directory. ${INTRUDER}`,
    'not-a-file': ({ place, isLink }) =>
      `${place} is ${isLink ? 'a symbolic link and must be' : 'not'} a file. ${INTRUDER}`,
    'other-owner': ({ place, owner, user }) =>
      `${place} belongs to user ${owner}, not to user ${user} of this process. Have its owner or root remove it, or set SNOWDRIFT_SHARED to another directory`,
    'directory-writable': ({ place, mode }) =>
      `${place} is writable by other users (mode ${mode}). End this user's processes that use snowdrift, and remove it`,
    'not-in-memory': ({ place }) =>
      `${place} is not in memory (tmpfs or ramfs): a full or frozen disk would stop or end the processes that share it. Set SNOWDRIFT_SHARED to a directory in a tmpfs`,
    'unchecked-place': ({ place, cause }) =>
      `cannot check the file system of ${place} (${cause}): permit statfs() in the seccomp filter or security module of this process, or use scope 'process' and give each process a workerId of its own`,
    'no-user-directory': () =>
      "the system names no directory of this user's own for pages: set SNOWDRIFT_SHARED to a directory on a local disk, or use scope 'process' and give each process a workerId of its own",
    'not-local': ({ place }) =>
      `${place} is not on a local file system: processes of other machines could change it. Set SNOWDRIFT_SHARED to a directory on a local disk`,
    'not-fixed': ({ place }) =>
      `${place} is not on a fixed disk of this machine: other machines could change it, or somebody could unplug it while processes share it. Set SNOWDRIFT_SHARED to a directory on a fixed disk`,
    'slot-io': (values) => refusalOfSystem(values, SLOT_REMEDIES),
    'slot-damaged': ({ place }) => `${place} is damaged. ${slotRemedy(place)}`,
    'slot-foreign': ({ place }) => `${place} is not a snowdrift slot file. ${slotRemedy(place)}`,
    'slot-misnamed': ({ place, datacenter, worker }) =>
      `${place} is the file of datacenterId ${datacenter} and workerId ${worker} under another name. ${slotRemedy(place)}`,
    'slot-length': ({ place, length, wanted }) =>
      `${place} is ${length > wanted ? 'at least ' : ''}${length} bytes long and should be ${wanted}: it was truncated, or is not a slot file. ${slotRemedy(place)}`,
    'slot-newer': ({ place, format, known }) =>
      `${place} was written by a newer snowdrift (format ${format}; this one reads ${known}). Update snowdrift here, or use another workerId`,
    'slot-older': ({ place, format, known }) =>
      `${place} was written by an older snowdrift (format ${format}; this one reads ${known}). End the processes that use it. Then move it away when the clock has passed its last ID, or use another directory or workerId`,
    'slot-not-a-file': ({ place }) =>
      `${place} is not a regular file. Move it away, or use another directory or workerId`,
    'slot-link': ({ place }) =>
      `${place} is a symbolic link and must be a file: another user may have placed it. Remove it`,
    'slot-linked': ({ place }) =>
      `${place} has a second name (a hard link), and other users can write to its directory: one of them may have placed it. Remove it, or use a directory that only this user can write to`,
    'slot-owner': ({ place, owner, user }) =>
      `${place} belongs to user ${owner}, not to user ${user} of this process. Have its owner or root remove it, or choose a directory that only this user can write to`,
    'slot-writable': ({ place, mode }) =>
      `${place} is writable by all users (mode ${mode}). If none of them has changed it: chmod 600. Otherwise use another directory or workerId`,
    'slot-changing': ({ place, pid, waited }) =>
      `process ${pid} has been changing ${place} for ${waited} s: it was stopped, or its disk hangs. Continue it, or end it`,
    'slot-moved': ({ place }) =>
      `${place} was replaced while it was opened: do not touch the files of running processes`,
    'disk-hangs': ({ place, waited }) =>
      `${place} did not answer within ${waited} s: check its disk`,
    'no-thread': ({ purpose }) => `cannot start the thread that ${purpose}. ${THREADS}`,
  },
  // Parts of other texts, and warnings.
  none: {
    'slot-file-damaged': ({ worker, place, store }) =>
      `the line of workerId ${worker} in ${place} is damaged, or has times that no holder can have: snowdrift slots ${urlOf(store)} shows which. snowdrift recover ${urlOf(store)} replaces a damaged one. ${afterClockAhead(place)}`,
    'slot-record-damaged': ({ worker }) =>
      `the record of workerId ${worker} is damaged, or has times that no holder can have: see snowdrift slots URL. snowdrift recover URL replaces a damaged one`,
    holder: ({ worker, pid, host, started }) =>
      `${worker === undefined ? '' : `workerId ${worker}: `}process ${pid} on ${host}, started ${moment(started)}`,
    layout: ({ timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits, ...rest }) =>
      `${timestampBits}/${datacenterBits}/${workerBits}/${clockBackBits}/${sequenceBits} bits in ticks of ${rest.tickMs} ms from ${moment(rest.epoch)}`,
    'second-user': ({ place, uid, datacenter, worker }) =>
      `User ${uid} of this machine uses the same layout, datacenterId ${datacenter} and workerId ${worker} (${place}). Users do not share a sequence, so they may issue duplicates: give each user a workerId of its own`,
  },
};

/**
 * The code and the text of a fault.
 * @template {{ kind: string }} F
 * @param {F} fault
 * @param {TextsByCode<never>} texts the texts, by code and kind
 */
function wordsFor(fault, texts = TEXTS) {
  const all = /** @type {[SnowFlakeErrorCode, { [kind: string]: (values: never) => string }][]} */ (
    Object.entries(texts)
  );
  const found = all.find(([, ofCode]) => Object.hasOwn(ofCode, fault.kind));
  if (found === undefined) {
    const message = `the addon reports '${fault.kind}', which this version of snowdrift does not know: install snowdrift and its addon in the same version`;
    return { code: /** @type {const} */ ('ERR_SNOWFLAKE_ADDON'), message };
  }
  const [code, ofCode] = found;
  // Hosts and paths in it may be strangers' texts.
  return { code, message: printable(ofCode[fault.kind](/** @type {never} */ (ownOf(fault)))) };
}

/** @type {(fault: Fault) => string} */
const textOf = (fault) => wordsFor(fault).message;

module.exports = { TEXTS, afterClockAhead, fileOf, lackOf, lossOf, textOf, urlOf, wordsFor };
