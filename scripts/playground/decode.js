'use strict';
// "Take an ID apart".

const { compose, fromBase32, isBase32, isId, parse, toBase32 } = require('../../js/id.js');
const { widthOf } = require('../../js/ids/presets.js');
const { attempt, byId, element, grouped, showText } = require('./dom.js');
const { FIELDS, sampleNode } = require('./fields.js');

const BASE32_LENGTH = 13;

/** The ID of a text, which may be either form. What is an ID in decimal is decimal. */
function readText(text, layout) {
  const isLikeBase32 = text.length === BASE32_LENGTH && /[a-z]/i.test(text);
  const isDecimal = isId(text) || !(isLikeBase32 || isBase32(text));
  return parse(isDecimal ? text : fromBase32(text), layout);
}

/** The fields that a layout has, each with its first and last bit. */
function positionsOf(layout) {
  let from = widthOf(layout);
  return FIELDS.filter(({ bits }) => layout[bits] > 0).map((field) => {
    const high = from - 1;
    from -= layout[field.bits];
    return { ...field, high, low: from };
  });
}

function bitCells(id, fields) {
  const digits = id.toString(2).padStart(64, '0');
  return [...digits].map((digit, at) => {
    const bit = 63 - at;
    const field = fields.find(({ high, low }) => bit <= high && bit >= low);
    return element(
      'span',
      { className: field?.name ?? 'unused', title: `bit ${bit}: ${field?.label ?? 'always 0'}` },
      digit,
      element('small', {}, field?.letter ?? ' '),
    );
  });
}

function fieldText(parsed, name) {
  return name === 'timestamp' ? parsed.date.toISOString() : grouped(parsed[name]);
}

function fieldRow(parsed, layout, { name, letter, label, why, high, low }) {
  const tick = parsed.id >> BigInt(low);
  const range = `${high === low ? `bit ${low}` : `bits ${high} to ${low}`}`;
  const detail =
    name === 'timestamp'
      ? `tick ${grouped(tick)} of ${grouped(layout.tickMs)} ms, Unix ms ${parsed.timestamp}`
      : `of ${grouped(2n ** BigInt(high - low + 1))}`;
  return element(
    'li',
    { className: name },
    element('span', { className: 'letter', attributes: { 'aria-hidden': 'true' } }, letter),
    element('h3', {}, label, ' ', element('small', {}, range)),
    element(
      'p',
      { className: 'value' },
      fieldText(parsed, name),
      ' ',
      element('small', {}, detail),
    ),
    element('p', { className: 'why' }, why),
  );
}

/** The note on digits that are one ID in decimal and another in base32. */
function noteOn(text) {
  if (!isBase32(text) || !isId(text)) return '';
  return `Read as decimal. As base32 these digits are the ID ${fromBase32(text)}.`;
}

/** Shows the ID of the input in a layout. */
function showId(layout) {
  const input = byId('id');
  const text = input.value.trim();
  const parsed = attempt('id-error', () => readText(text, layout));
  input.setAttribute('aria-invalid', String(parsed === undefined));
  byId('id-result').hidden = parsed === undefined;
  showText('id-note', parsed && noteOn(text));
  if (parsed === undefined) {
    showText('id-summary');
    return;
  }
  const fields = positionsOf(layout);
  const spoken = fields.map(({ name, label }) => `${label} ${fieldText(parsed, name)}`);
  showText('id-summary', `${spoken.join(', ')}.`);
  const digits = parsed.id.toString(2).padStart(64, '0');
  const pieces = fields.map(({ label, high, low }) => {
    return `${label} ${digits.slice(63 - high, 64 - low)}`;
  });
  byId('bits').setAttribute('aria-label', `Bits, high to low: ${pieces.join(', ')}`);
  byId('bits').replaceChildren(...bitCells(parsed.id, fields));
  byId('fields').replaceChildren(...fields.map((field) => fieldRow(parsed, layout, field)));
  byId('decimal').textContent = String(parsed.id);
  byId('base32').textContent = toBase32(parsed.id);
}

/** @param layoutNow returns the page's layout */
function connectDecoder(layoutNow) {
  byId('id').addEventListener('input', () => showId(layoutNow()));
  byId('now').addEventListener('click', () => {
    const layout = layoutNow();
    const fields = { timestamp: Date.now(), ...sampleNode(layout) };
    const id = attempt('id-error', () => compose(fields, layout));
    if (id === undefined) return;
    byId('id').value = String(id);
    showId(layout);
  });
}

module.exports = { connectDecoder, showId };
