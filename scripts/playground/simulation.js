'use strict';
// "Roll the clock back": a node whose clock moves only by the buttons.

const { compose, isId } = require('../../js/id.js');
const { DATE_LIMIT } = require('../../js/ids/presets.js');
const { byId, element, setSlider, showText } = require('./dom.js');
const { sampleNode } = require('./fields.js');
const { Sequencer } = require('./sequencer.js');

const SHOWN_IDS = 6;
const KEPT_IDS = 300;
const FIRST_IDS = 12;
/** What the lanes show, in steps of the clock. */
const SPAN_STEPS = 48;
const RUN_MS = 600;
/** More than anyone waits for. */
const MOST_STEPS = 1e6;

let layout;
let sequencer;
/** Unix ms. */
let clock;
/** By how much the clock moves from draw to draw, in ms. */
let step;
/** Newest first. */
let issued = [];
let timer;

/** A time as short as it can be told from its neighbours. */
function timeOf(ms) {
  const text = new Date(ms).toISOString();
  return step < 86_400_000 ? text.slice(11, 19) : text.slice(0, 10);
}

const stepOf = ({ tickMs }) => Math.max(1000, tickMs);
const tickOf = (ms) => Math.floor((ms - layout.epoch) / layout.tickMs);
const timeOfTick = (tick) => tick * layout.tickMs + layout.epoch;

/** By how much a number of steps moves the clock, as text. */
const stepsText = (count) =>
  step === 1000 ? `${count} s` : `${count} tick${count === 1 ? '' : 's'}`;

function refusalText(code) {
  if (code === 'ERR_SNOWFLAKE_EXHAUSTED') {
    return 'The sequence of this tick is exhausted. IDs wait for the next tick, for maxWait at most, and are then refused with ERR_SNOWFLAKE_EXHAUSTED.';
  }
  if (code === 'ERR_SNOWFLAKE_CLOCK_BACK') {
    const until = timeOf(timeOfTick(Math.min(...sequencer.marks) + 1));
    return `No ID at ${timeOf(clock)}: each counter value has issued IDs of this time or later. They are refused with ERR_SNOWFLAKE_CLOCK_BACK, and continue when the clock shows ${until}.`;
  }
  return `No ID: the clock is outside the layout's time. They are refused with ${code}.`;
}

function issueText({ counter, sequence }, before) {
  const at = timeOf(clock);
  if (counter > before.counter) {
    const mark = timeOf(timeOfTick(before.mark));
    return `The clock rolled back to ${at}. Counter ${before.counter} has issued IDs up to ${mark}, so IDs continue under counter ${counter}.`;
  }
  if (counter < before.counter) {
    return `The clock has passed the high mark of counter ${counter}, so the counter is ${counter} again.`;
  }
  return sequence === 0
    ? `The clock is above the high mark of counter ${counter}: each new tick starts at sequence 0.`
    : `The tick is the same: the sequence goes on under counter ${counter}.`;
}

/** Draws an ID by the clock. @returns what happened, as text */
function draw() {
  const before = { counter: sequencer.current, mark: sequencer.marks[sequencer.current] };
  const drawn = sequencer.draw(tickOf(clock));
  if (drawn.code !== undefined) return refusalText(drawn.code);
  const { counter, sequence } = drawn;
  const fields = { timestamp: clock, ...sampleNode(layout), clockBack: counter, sequence };
  issued = [{ ...fields, id: compose(fields, layout) }, ...issued].slice(0, KEPT_IDS);
  return issueText(drawn, before);
}

/** An absolutely placed part of a lane. */
function placed(className, percent, ...children) {
  const part = element('span', { className }, ...children);
  part.style.left = `${percent}%`;
  return part;
}

function showLanes() {
  const marks = sequencer.marks.filter((mark) => mark >= 0).map(timeOfTick);
  const right = Math.max(clock, ...marks) + 3 * step;
  const percentOf = (ms) => 100 * (1 - (right - ms) / (SPAN_STEPS * step));
  const isShown = (ms) => percentOf(ms) >= 0;
  const lanes = sequencer.marks.map((mark, counter) => {
    const track = element('div', { className: 'track' });
    for (const { timestamp, clockBack } of issued) {
      if (clockBack !== counter || !isShown(timestamp)) continue;
      track.append(placed('dot', percentOf(timestamp)));
    }
    if (mark >= 0 && isShown(timeOfTick(mark))) {
      track.append(placed('mark', percentOf(timeOfTick(mark))));
    }
    if (isShown(clock)) track.append(placed('line', percentOf(clock)));
    const className = counter === sequencer.current ? 'lane current' : 'lane';
    return element('div', { className }, element('span', {}, String(counter)), track);
  });
  byId('lanes').replaceChildren(...lanes);
  const spoken = sequencer.marks.map((mark, counter) => {
    return `${counter}: ${mark < 0 ? 'never used' : timeOf(timeOfTick(mark))}`;
  });
  byId('lanes').setAttribute('aria-label', `High marks by counter value, ${spoken.join(', ')}`);
}

function show(message) {
  showText('clock-message', message);
  const [last] = issued;
  const date = new Date(clock).toISOString().slice(0, 10);
  byId('clock').replaceChildren(timeOf(clock), element('small', {}, date));
  byId('counter').textContent = String(sequencer.current);
  byId('sequence').textContent = String(last?.sequence ?? '');
  showLanes();
  byId('issued').replaceChildren(
    ...issued
      .slice(0, SHOWN_IDS)
      .map(({ timestamp, clockBack, id }) =>
        element(
          'tr',
          {},
          element('td', {}, timeOf(timestamp)),
          element('td', {}, element('span', { className: 'chip' }, String(clockBack))),
          element('td', {}, element('code', {}, String(id))),
        ),
      ),
  );
}

function advance() {
  clock += step;
  show(draw());
}

function stop() {
  clearInterval(timer);
  timer = undefined;
  byId('run').setAttribute('aria-pressed', 'false');
}

function showRollback() {
  const text = stepsText(Number(byId('back').value));
  byId('back-text').textContent = text;
  setSlider('back', byId('back').value, text);
}

/** Begins with a new node of a layout, which has issued some IDs. */
function restart(chosen = layout) {
  stop();
  layout = chosen;
  const isRight = isSimulated(layout);
  byId('simulation').hidden = !isRight;
  if (!isRight) return;
  sequencer = new Sequencer(layout);
  issued = [];
  step = stepOf(layout);
  const end = layout.epoch + 2 ** layout.timestampBits * layout.tickMs;
  const now = Math.floor(Date.now() / 1000) * 1000;
  const first = layout.epoch + FIRST_IDS * step;
  // Where the layout's time is over, or has not begun, the clock shows its first day.
  clock = (now >= first && now < end ? now : first) - FIRST_IDS * step;
  byId('draw').textContent = `Generate an ID, ${stepsText(1)} later`;
  showRollback();
  for (let n = 1; n < FIRST_IDS; n++) {
    clock += step;
    draw();
  }
  advance();
}

/** Whether a layout is right, and a Date holds all that the clock may show. */
function isSimulated(layout) {
  try {
    isId(0n, layout);
  } catch {
    return false;
  }
  return Math.abs(layout.epoch) + MOST_STEPS * stepOf(layout) <= DATE_LIMIT;
}

function connectSimulation() {
  byId('draw').addEventListener('click', advance);
  byId('back').addEventListener('input', showRollback);
  byId('restart').addEventListener('click', () => restart());
  byId('roll').addEventListener('click', () => {
    clock -= Number(byId('back').value) * step;
    show(draw());
  });
  byId('run').addEventListener('click', () => {
    if (timer !== undefined) {
      stop();
      return;
    }
    timer = setInterval(advance, RUN_MS);
    byId('run').setAttribute('aria-pressed', 'true');
  });
}

module.exports = { connectSimulation, restart };
