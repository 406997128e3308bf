'use strict';
// The page: one layout, shown in two sections.

const { layouts } = require('../../js/id.js');
const { layoutKey } = require('../../js/ids/layout-key.js');
const { element } = require('./dom.js');
const { connectDecoder, showId } = require('./decode.js');
const { connectLayout, showLayout } = require('./layout.js');

let layout = layouts.node;
const selects = [...document.querySelectorAll('.layouts')];

function use(chosen) {
  layout = chosen;
  const isSame = ([, known]) => layoutKey(known) === layoutKey(layout);
  const [name] = Object.entries(layouts).find(isSame) ?? ['own'];
  for (const select of selects) select.value = name;
  showId(layout);
  showLayout(layout, name);
}

for (const select of selects) {
  const options = Object.keys(layouts).map((name) => element('option', { value: name }, name));
  const own = element('option', { value: 'own', disabled: true }, 'your own (by the sliders)');
  select.append(...options, own);
  select.addEventListener('change', () => use(layouts[select.value]));
}
connectDecoder(() => layout);
connectLayout(() => layout, use);
use(layout);
