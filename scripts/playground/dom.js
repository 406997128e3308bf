'use strict';
// The page's elements.

const byId = (id) => document.getElementById(id);

/** A new element. @param properties of the object, and `attributes` */
function element(tag, { attributes = {}, ...properties }, ...children) {
  const created = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  created.append(...children);
  return created;
}

/** Shows a text in a live region, which announces changes only. No text hides it. */
function showText(id, text = '') {
  const shown = byId(id);
  if (shown.textContent !== text) shown.textContent = text;
  shown.hidden = text === '';
}

/**
 * Shows what a call of snowdrift/id refuses.
 * @param id of the element for the message
 * @returns what the call returns; undefined if it is refused
 */
function attempt(id, call) {
  try {
    const result = call();
    showText(id);
    return result;
  } catch (error) {
    if (error.name !== 'SnowFlakeError') throw error;
    showText(id, `${error.code}: ${error.message}`);
    return undefined;
  }
}

/** Sets a slider, and what is read aloud of it. */
function setSlider(id, value, spoken) {
  const slider = byId(id);
  slider.value = String(value);
  slider.setAttribute('aria-valuetext', spoken);
  const share = (slider.value - slider.min) / (slider.max - slider.min);
  slider.style.setProperty('--share', `${100 * share}%`);
}

const grouped = (count) => BigInt(count).toLocaleString('en-US');

module.exports = { attempt, byId, element, grouped, setSlider, showText };
