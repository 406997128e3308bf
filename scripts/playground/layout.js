'use strict';
// "Divide the bits".

const { isId } = require('../../js/id.js');
const { capacityOf } = require('../../js/ids/capacity.js');
const { bitsOf } = require('../../js/ids/layout-key.js');
const { LAYOUT_KEYS, RANGES, widthOf } = require('../../js/ids/presets.js');
const { attempt, byId, element, grouped, setSlider, showText } = require('./dom.js');
const { FIELDS, sampleNode } = require('./fields.js');

const NUMBER_BITS = 53;
const DAY_MS = 86_400_000;
/** The stops of the slider of ticks, in ms. */
const TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 60_000, 3_600_000];

const years = (count) => (count < 1000 ? count.toFixed(1) : grouped(Math.round(count)));
const many = (count, noun) => `${grouped(count)} ${noun}${String(count) === '1' ? '' : 's'}`;

/** What a field's width gives, in the layout. */
const GIVES = {
  timestampBits: (capacity) => `${years(capacity.years)} years`,
  datacenterBits: ({ datacenters }) => many(datacenters, 'datacenter'),
  workerBits: ({ workers }) => `${many(workers, 'worker')} each`,
  clockBackBits: ({ clockRollbacks }) => `${many(clockRollbacks, 'rollback')} at once`,
  sequenceBits: ({ idsPerTick }) => `${many(idsPerTick, 'ID')} a tick`,
};

function sliderRow(id, label, range, ...more) {
  return element(
    'div',
    { className: 'slider' },
    element('label', { htmlFor: id }, label),
    element('input', { id, type: 'range', ...range }),
    ...more,
  );
}

function textInput(id, label) {
  return element('input', {
    ...{ id, type: 'text', autocomplete: 'off', spellcheck: false },
    attributes: { 'aria-label': label, 'aria-describedby': 'layout-error' },
  });
}

/** A text as a whole number; as it is, for the check of the layout, if it is none. */
const readNumber = (text) => (/^-?\d+$/.test(text) ? Number(text) : text);

/** A text as Unix ms, as `--epoch` reads it. */
function readTime(text) {
  const ms = Date.parse(text);
  return Number.isNaN(ms) || /^-?\d+$/.test(text) ? readNumber(text) : ms;
}

/** Shows the layout on its controls. @param capacity undefined if the layout is refused */
function showControls(layout, capacity) {
  const total = widthOf(layout);
  for (const { name, bits, label } of FIELDS) {
    const gives = capacity === undefined ? '' : GIVES[bits](capacity);
    const width = many(layout[bits], 'bit');
    setSlider(bits, layout[bits], `${width}: ${gives}`);
    byId(`${bits}-text`).replaceChildren(width, element('small', {}, gives));
    byId(`${name}-width`).style.flexGrow = layout[bits];
    byId(`${name}-width`).textContent = layout[bits] > 1 ? layout[bits] : '';
    byId(`${name}-width`).title = `${label}: ${width}`;
  }
  byId('unused-width').style.flexGrow = Math.max(1, 64 - total);
  byId('widths').setAttribute(
    'aria-label',
    FIELDS.map(({ bits, label }) => `${label} ${layout[bits]}`).join(', '),
  );
  // What was refused stays as it was typed.
  if (Number.isInteger(layout.tickMs)) {
    const nearest = TICKS.findLastIndex((ms) => ms <= layout.tickMs);
    setSlider('tick', nearest, `${layout.tickMs} ms`);
    byId('tickMs').value = layout.tickMs;
  }
  if (Number.isInteger(layout.epoch) && Math.abs(layout.epoch) <= RANGES.epoch[1]) {
    const date = new Date(layout.epoch).toISOString();
    setSlider('day', layout.epoch, date);
    byId('epoch').value = date;
  }
}

/** A node's IDs per second, or per tick where those are less than one. */
function rateOf({ idsPerSecond, idsPerTick }) {
  const isSlow = idsPerSecond === '0';
  return { rate: grouped(isSlow ? idsPerTick : idsPerSecond), unit: isSlow ? 'tick' : 'second' };
}

function figures(layout, capacity) {
  const { yearsLeft, ends, clockRollbacks, unusedBits } = capacity;
  const isOver = yearsLeft === 0;
  const total = widthOf(layout);
  const day = ends?.split('T')[0];
  const end = day ? element('time', { dateTime: ends }, day) : 'beyond all dates';
  const { rate, unit } = rateOf(capacity);
  const rows = [
    [
      'years left',
      isOver ? 'none' : years(yearsLeft),
      isOver
        ? 'its timestamp has overflowed, choose a later epoch'
        : element('span', {}, `of ${years(capacity.years)}, until `, end),
    ],
    [
      'nodes',
      grouped(capacity.nodes),
      `${many(capacity.datacenters, 'datacenter')} x ${many(capacity.workers, 'worker')}`,
    ],
    [
      `IDs per ${unit} and node`,
      rate,
      `${grouped(capacity.idsPerTick)} per tick of ${grouped(layout.tickMs)} ms`,
    ],
    [
      'clock rollbacks tolerated at once',
      String(clockRollbacks),
      clockRollbacks === 0
        ? 'IDs wait for the clock, or are refused'
        : 'then IDs wait, or are refused',
    ],
    [
      'bits in all',
      `${total} of 63`,
      total <= NUMBER_BITS
        ? 'exact as JavaScript numbers: nextIdNumber()'
        : `${unusedBits} unused; IDs are bigints or strings, since a number holds 53`,
    ],
  ];
  return rows.map(([name, value, detail]) =>
    element(
      'div',
      {},
      element('dt', {}, name),
      element('dd', {}, value, element('small', {}, detail)),
    ),
  );
}

/** The last changes of the decimal length. */
function digitItems({ digits: changes }) {
  const next = changes.find(({ from }) => Date.parse(from) > Date.now());
  return changes
    .slice(-4)
    .map((change) =>
      element(
        'li',
        { className: change === next ? 'next' : '' },
        element('strong', {}, `${change.digits} from `),
        element('time', { dateTime: change.from }, change.from),
        change === next ? ': IDs stored as decimal text then sort wrong' : '',
      ),
    );
}

/** @param name of the layout, or `own` */
function codeOf(layout, name) {
  const node = Object.entries(sampleNode(layout)).map(([key, value]) => `  ${key}: ${value},`);
  const { epoch, tickMs } = layout;
  const isNamed = name !== 'own';
  const command = isNamed ? name : `${bitsOf(layout)}@${tickMs} --epoch=${epoch}`;
  const fields = LAYOUT_KEYS.map((key) => `    ${key}: ${layout[key]},`);
  const value = isNamed ? [`  layout: '${name}',`] : ['  layout: {', ...fields, '  },'];
  const code = ['new SnowFlake({', ...node, ...value, '});'];
  return [`npx snowdrift layout ${command}`, '', ...code].join('\n');
}

function showLayout(layout, name) {
  // Any call that takes a layout checks it.
  const isRight = attempt('layout-error', () => isId(0n, layout)) !== undefined;
  byId('layout-result').hidden = !isRight;
  const capacity = isRight ? capacityOf(layout) : undefined;
  showControls(layout, capacity);
  if (capacity === undefined) {
    showText('layout-summary');
    return;
  }
  const { yearsLeft, ends, epoch } = capacity;
  const { rate, unit } = rateOf(capacity);
  const left = yearsLeft === 0 ? 'No years left' : `${years(yearsLeft)} years left`;
  showText(
    'layout-summary',
    `${left}, ${many(capacity.nodes, 'node')}, ${rate} IDs per ${unit} and node.`,
  );
  byId('figures').replaceChildren(...figures(layout, capacity));
  const gone = Math.min(1, Math.max(0, 1 - yearsLeft / capacity.years));
  byId('gone').style.width = `${100 * gone}%`;
  byId('starts').textContent = `epoch ${new Date(epoch).toISOString()}`;
  byId('ends').textContent = `ends ${ends ?? 'beyond all dates'}`;
  byId('digits').replaceChildren(...digitItems(capacity));
  byId('code').textContent = codeOf(layout, name);
}

/** @param layoutNow returns the page's layout. @param use replaces it */
function connectLayout(layoutNow, use) {
  const change = (part) => use({ ...layoutNow(), ...part });
  const tickRange = { min: 0, max: TICKS.length - 1 };
  const dayRange = { min: Date.UTC(2010), max: Date.UTC(2031), step: DAY_MS };
  const exact = textInput('tickMs', 'tick in ms, exactly');
  const tickRow = sliderRow('tick', 'tick (ms)', tickRange, exact);
  tickRow.classList.add('tick');
  byId('sliders').append(
    ...FIELDS.map(({ name, bits, label }) => {
      const [min, max] = RANGES[bits];
      const output = element('output', { id: `${bits}-text`, htmlFor: bits });
      const row = sliderRow(bits, label, { min, max }, output);
      row.classList.add(name);
      return row;
    }),
    tickRow,
    sliderRow('day', 'epoch', dayRange, textInput('epoch', 'epoch, a date or Unix ms')),
  );
  for (const name of ['unused', ...FIELDS.map(({ name }) => name)]) {
    byId('widths').append(element('span', { id: `${name}-width`, className: name }));
  }
  for (const { bits } of FIELDS) {
    byId(bits).addEventListener('input', ({ target }) => change({ [bits]: Number(target.value) }));
  }
  const on = (id, event, read) => {
    byId(id).addEventListener(event, ({ target }) => change(read(target.value.trim())));
  };
  on('tick', 'input', (value) => ({ tickMs: TICKS[value] }));
  on('day', 'input', (value) => ({ epoch: Number(value) }));
  on('tickMs', 'change', (text) => ({ tickMs: readNumber(text) }));
  on('epoch', 'change', (text) => ({ epoch: readTime(text) }));
}

module.exports = { connectLayout, showLayout };
