'use strict';
// `snowdrift reset`

const { directoryOf, sharedDirectory, variable } = require('../messages/checks.js');
const { configError, unwrap } = require('../messages/errors.js');
const { textOf } = require('../messages/faults.js');
const native = require('../runtime/native.js');
const { printable } = require('../messages/secrets.js');
const { layouts } = require('../ids/layouts.js');
const { moment } = require('../runtime/time.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags, readNodeFlags } = require('./flags.js');
const { FILE_HELP, STORE_OPTIONS, readStoreUrl } = require('./store-url.js');
const { table } = require('./table.js');
const { NONE } = require('../ids/properties.js');

const help = `Usage: snowdrift reset [URL] --datacenter-id N --worker-id N [--yes] [options]

Shows a directory's slot and resets it, so that its IDs continue from the present. Use it if the clock was
far ahead, so that the slot records a time in the future, or if its file is damaged or of another format.
Without a URL and without SNOWDRIFT_LEASE, it resets the page that this host's processes share.

Without --yes it changes nothing, shows the plan and the IDs that could be issued twice, and exits with 2. It
refuses a slot or page that a process uses. Check the clock of this machine first.

  URL                   file:///var/lib/app/ids; default: the environment variable SNOWDRIFT_LEASE
${FILE_HELP}
  --datacenter-id N     of the slot
  --worker-id N         of the slot
  --yes                 resets the slot
  --json                prints one object, with times in Unix ms
${LAYOUT_HELP}
                        (for a page, and for a slot file that cannot be read; other slot files record it)`;

const options = {
  ...STORE_OPTIONS,
  ...LAYOUT_OPTIONS,
  'datacenter-id': { type: 'string' },
  'worker-id': { type: 'string' },
  yes: { type: 'boolean' },
};

/** The slot or page to reset. @param layout if it is known */
function readSlot(flags, layout, usage) {
  const missing = ['datacenter-id', 'worker-id'].filter((flag) => flags[flag] === undefined);
  if (missing.length > 0) {
    const names = missing.map((flag) => `--${flag}`).join(' and ');
    throw usage(`reset needs ${names}: snowdrift slots lists the slots`);
  }
  const { datacenterId, workerId } = readNodeFlags(flags, layout);
  return [datacenterId, workerId];
}

async function run(flags, positionals, { show, usage }) {
  const layout = readLayoutFlags(flags);
  const isConfirmed = flags.yes === true;
  const now = Date.now();
  const shared = sharedDirectory();
  let found;
  if (positionals.length === 0 && variable('SNOWDRIFT_LEASE') === undefined) {
    const ofPage = layout ?? layouts.node;
    found = unwrap(
      native.resetPage(ofPage, ...readSlot(flags, ofPage, usage), isConfirmed, shared),
    );
    if (found === null) {
      throw configError(
        'this host has no page of that node: snowdrift slots lists its pages. For a directory, pass its URL, file:///...',
      );
    }
  } else {
    const directory = readDirectory(readStoreUrl('reset', positionals, usage));
    const slot = readSlot(flags, layout, usage);
    found = unwrap(native.resetSlot(directory, ...slot, layout, isConfirmed, shared));
  }
  const fault = found.fault && textOf(found.fault);
  const shown = { ...found, fault, now, isDone: isConfirmed && found.plan !== null };
  show(asJson(shown), () => formatSlot(shown));
  return found.plan !== null && !isConfirmed ? 2 : 0;
}

function readDirectory(url) {
  if (url.protocol === 'file:') return directoryOf('the URL', url.href, { urlOnly: true });
  throw configError(
    'reset is for a directory, file:///..., or a page. Other stores limit leases by their own clock; after a restore, use snowdrift recover',
  );
}

function planJson({ repeatsTo, ...plan }) {
  return { ...plan, duplicatesTo: repeatsTo === Infinity ? 'unknown' : repeatsTo };
}

function asJson({ holder, plan, ...rest }) {
  const { started, ...lastHolder } = holder ?? NONE;
  return {
    ...rest,
    ...(holder ? { lastHolder: { ...lastHolder, startedAt: started } } : {}),
    plan: plan && planJson(plan),
  };
}

const time = (ms) => (ms === null ? 'none' : moment(ms));

function formatSlot(shown) {
  const { path, fault, holder, floor, ceiling, highMarks, now, plan, isDone } = shown;
  const rows = [['clock now', time(now)]];
  if (fault) rows.push(['fault', fault]);
  else rows.push(['floor', time(floor)], ['IDs up to', time(ceiling)]);
  if (highMarks) rows.push(['last IDs', highMarks.map(time).join(', ')]);
  if (holder) {
    const { pid, host, started } = holder;
    rows.push(['died', `process ${pid} on ${printable(host)}, started ${time(started)}`]);
  }
  const lines = [path, ...table(rows), ''];
  if (plan === null) {
    return [...lines, 'The clock has passed all IDs of this slot. There is nothing to reset.'].join(
      '\n',
    );
  }
  return [...lines, ...planLines(plan, isDone)].join('\n');
}

function planLines({ floor, skip, repeatsTo }, isDone) {
  const lines = [
    isDone
      ? `Done. From now on, IDs of this slot have times after ${time(floor)}.`
      : `A reset lets this slot issue IDs with times after ${time(floor)}.`,
  ];
  if (skip) {
    const [from, to] = skip;
    lines.push(
      `IDs from ${time(from)} to ${time(to)} were issued ahead. They are never issued again.`,
    );
  }
  if (repeatsTo === Infinity) {
    lines.push(
      `The issued IDs are unknown. Those with times after ${time(floor)} can be issued again.`,
      'Reset the slot only when the clock has certainly passed its last ID.',
    );
  } else if (repeatsTo !== null) {
    lines.push(
      `IDs with times after ${time(floor)} and up to ${time(repeatsTo)} may have been issued.`,
      'They can be issued again.',
    );
  } else {
    lines.push(
      'No ID is issued again, provided that this clock is not behind: no correct clock may have issued IDs',
      'with later times than those above.',
    );
  }
  if (!isDone) lines.push('', 'Nothing was changed. Pass --yes to reset it.');
  return lines;
}

module.exports = { help, options, run };
