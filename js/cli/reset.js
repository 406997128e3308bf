'use strict';
// `snowdrift reset`

const { configError, granted, moment } = require('../errors.js');
const native = require('../native.js');
const { readLayout } = require('../options.js');
const { bold, table } = require('./colours.js');
const { LAYOUT, LAYOUT_HELP, layoutOf, wholeNumber } = require('./flags.js');
const { directoryOf, placeOf } = require('./place.js');

const help = `Usage: snowdrift reset [URL] --datacenter-id N --worker-id N [--yes] [options]

Shows the slot of a directory, and resets it: its IDs continue from the present. Use it if the clock was
years ahead, so that the slot records a time far in the future, or if its file is damaged or of another
format. Without a URL, and without SNOWDRIFT_LEASE, it does so with the page that this host's processes
share.

Without --yes it changes nothing, says what it would do and which IDs could be issued twice, and exits
with 2. It refuses a slot or page that a process uses. Check the clock of this machine first.

  URL                   file:///var/lib/app/ids; else the environment variable SNOWDRIFT_LEASE
  --datacenter-id N     the slot's
  --worker-id N         the slot's
  --yes                 resets the slot
  --json                one object; times in Unix ms
${LAYOUT_HELP}
                        (of a directory only for a file that cannot be read: other files record it)`;

const options = {
  ...LAYOUT,
  'datacenter-id': { type: 'string' },
  'worker-id': { type: 'string' },
  yes: { type: 'boolean' },
};

function idOf(flags, name, usage) {
  const id = wholeNumber(name, flags[name]);
  if (id === undefined)
    throw usage(`reset needs --${name}: snowdrift slots lists those of a directory`);
  return id;
}

async function run(flags, positionals, { print, usage }) {
  const slot = () => [idOf(flags, 'datacenter-id', usage), idOf(flags, 'worker-id', usage)];
  const { layout, epoch } = layoutOf(flags);
  const isMeant = flags.yes === true;
  const now = Date.now();
  const shared = process.env.SNOWDRIFT_SHARED || undefined;
  let found;
  if (positionals.length === 0 && !process.env.SNOWDRIFT_LEASE) {
    found = granted(native.resetPage(readLayout(layout, epoch), ...slot(), isMeant, shared));
    if (found === null) {
      throw configError(
        'this host has no page of that node: snowdrift slots lists its pages. A directory needs its URL, file:///...',
      );
    }
  } else {
    const directory = directoryIn(placeOf('reset', positionals, usage));
    const isNamed = flags.layout !== undefined || flags.epoch !== undefined;
    const named = isNamed ? readLayout(layout, epoch) : undefined;
    found = granted(native.resetSlot(directory, ...slot(), named, isMeant, shared));
  }
  const shown = { ...found, now, isDone: isMeant && found.plan !== null };
  if (flags.json) print(JSON.stringify(asJson(shown), undefined, 2));
  else print(show(shown));
  if (found.plan !== null && !isMeant) process.exitCode = 2;
}

function directoryIn(url) {
  if (url.protocol === 'file:') return directoryOf(url);
  throw configError(
    'reset is for a directory, file:///..., or a page: other stores limit leases by their own clock. After a restore, use snowdrift recover',
  );
}

function asJson({ holder, plan, ...rest }) {
  const { started, ...who } = holder ?? {};
  return {
    ...rest,
    ...(holder ? { lastHolder: { ...who, startedAt: new Date(started) } } : {}),
    plan: plan && { ...plan, repeatsTo: plan.repeatsTo === Infinity ? 'unknown' : plan.repeatsTo },
  };
}

const time = (ms) => (ms === null ? 'none' : moment(ms));

function show({ path, fault, holder, floor, ceiling, highMarks, now, plan, isDone }) {
  const rows = [['clock now', time(now)]];
  if (fault) rows.push(['fault', fault]);
  else rows.push(['floor', time(floor)], ['IDs up to', time(ceiling)]);
  if (highMarks) rows.push(['last IDs', highMarks.map(time).join(', ')]);
  if (holder) {
    const { pid, host, started } = holder;
    rows.push(['died', `process ${pid} on ${host}, started ${time(started)}`]);
  }
  const lines = [bold(path), ...table(rows), ''];
  if (plan === null) {
    return [...lines, 'The clock has passed all IDs of this slot. There is nothing to reset.'].join(
      '\n',
    );
  }
  return [...lines, ...planned(plan, isDone)].join('\n');
}

function planned({ floor, skip, repeatsTo }, isDone) {
  const lines = [
    isDone
      ? `Done. IDs of this slot have times after ${time(floor)} from now on.`
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
      `It is not known what was issued. IDs with times after ${time(floor)} that were issued already can be`,
      'issued again. Do it when the clock has certainly passed the last ID of this slot.',
    );
  } else if (repeatsTo !== null) {
    lines.push(
      `IDs with times after ${time(floor)} and up to ${time(repeatsTo)} may have been issued.`,
      'They can be issued again.',
    );
  } else {
    lines.push(
      'No ID is issued again, provided that this clock is not behind: of IDs with later times than those',
      'above, none may have been issued by a clock that was right.',
    );
  }
  if (!isDone) lines.push('', 'Nothing was changed. With --yes it is done.');
  return lines;
}

module.exports = { help, options, run };
