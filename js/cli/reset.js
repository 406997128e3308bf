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
format. Without a URL it does so for the page in this host's shared memory.

Without --yes it changes nothing, says what it would do and which IDs could be issued twice, and exits
with 2. It refuses a slot or page that a process uses. Check the clock of this machine first.

  URL                   file:///var/lib/app/ids; else the environment variable SNOWDRIFT_LEASE; else this
                        host's page
  --datacenter-id N     the slot's
  --worker-id N         the slot's
  --yes                 resets the slot
  --json                one object; times in Unix ms
${LAYOUT_HELP}
                        (for a page, or a file that cannot be read: other files record it)`;

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
  if (positionals.length === 0 && process.env.SNOWDRIFT_LEASE === undefined) {
    return resetPage(flags, { print, usage });
  }
  const url = placeOf('reset', positionals, usage);
  if (url.protocol !== 'file:') {
    throw configError(
      'reset is for a directory, file:///...: other stores limit leases by their own clock. After a restore, use snowdrift recover',
    );
  }
  const slot = [idOf(flags, 'datacenter-id', usage), idOf(flags, 'worker-id', usage)];
  const { layout, epoch } = layoutOf(flags);
  const isNamed = flags.layout !== undefined || flags.epoch !== undefined;
  const isMeant = flags.yes === true;
  const now = Date.now();
  const found = granted(
    native.resetSlot(
      directoryOf(url),
      ...slot,
      isNamed ? readLayout(layout, epoch) : undefined,
      isMeant,
      process.env.SNOWDRIFT_SHARED || undefined,
    ),
  );
  const shown = { ...found, now, isDone: isMeant && found.plan !== null };
  if (flags.json) print(JSON.stringify(asJson(shown), undefined, 2));
  else print(show(shown));
  if (found.plan !== null && !isMeant) process.exitCode = 2;
}

/** The node's page in this host's shared memory. */
function resetPage(flags, { print, usage }) {
  const node = [idOf(flags, 'datacenter-id', usage), idOf(flags, 'worker-id', usage)];
  const { layout, epoch } = layoutOf(flags);
  const isMeant = flags.yes === true;
  const now = Date.now();
  const shared = process.env.SNOWDRIFT_SHARED || undefined;
  const page = granted(native.resetPage(...node, readLayout(layout, epoch), isMeant, shared));
  const isDone = isMeant && page?.isAhead === true;
  if (flags.json) print(JSON.stringify({ page: page ?? null, now, isDone }, undefined, 2));
  else print(page ? shownPage(page, now, isDone) : 'There is no page of this node and layout.');
  if (page?.isAhead && !isMeant) process.exitCode = 2;
}

function shownPage({ path, isDurable, highMarks, highest, isAhead }, now, isDone) {
  const lines = [
    bold(path),
    ...table([
      ['clock now', time(now)],
      ['IDs up to', time(highest)],
      ['last IDs', highMarks.map(time).join(', ')],
    ]),
    '',
  ];
  if (!isAhead) lines.push('The clock has passed all IDs of this page. There is nothing to reset.');
  else if (isDurable) {
    lines.push(
      isDone ? 'Done: the page was removed.' : 'A reset removes this page.',
      'A state directory records it: reset its slot, too, with snowdrift reset file:///...',
    );
  } else {
    lines.push(
      isDone
        ? `Done: the page was removed. IDs have times after ${time(now)} from now on.`
        : `A reset removes this page. IDs then have times after ${time(now)}.`,
      `IDs with later times, up to ${time(highest)}, may have been issued. They can be issued again when the`,
      'clock comes to these times.',
    );
  }
  if (isAhead && !isDone) lines.push('', 'Nothing was changed. With --yes it is done.');
  return lines.join('\n');
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
