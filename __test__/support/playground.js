'use strict';
// docs/playground.html in Chromium: what it shows, and its controls.

const { join } = require('node:path');
const { after, before, beforeEach } = require('node:test');
const { pathToFileURL } = require('node:url');

const { Page } = require('./chromium.js');

const PATH = join(__dirname, '../../docs/playground.html');
const URL_OF_FILE = pathToFileURL(PATH).href;

/** Within describe(): a page for its tests, which is loaded anew for each. */
function playground() {
  let page;
  before(async () => {
    page = await Page.open();
  });
  after(() => page?.close());
  beforeEach(async () => {
    await page.show(1200, 900, 'light');
    await page.load(URL_OF_FILE);
  });
  return {
    page: () => page,
    run: (...args) => page.run(...args),
    text: (selector) => page.run((of) => document.querySelector(of).innerText, selector),
    texts: (selector) =>
      page.run((of) => [...document.querySelectorAll(of)].map((one) => one.innerText), selector),
    value: (id) => page.run((id) => document.getElementById(id).value, id),
    isShown: (id) => page.run((id) => document.getElementById(id).checkVisibility(), id),
    click: (id) => page.run((id) => document.getElementById(id).click(), id),
    /** Sets a control as its user does. */
    set: (id, value) =>
      page.run(
        (id, value) => {
          const control = document.getElementById(id);
          control.value = value;
          for (const type of ['input', 'change']) control.dispatchEvent(new Event(type));
        },
        id,
        value,
      ),
  };
}

module.exports = { PATH, URL_OF_FILE, playground };
