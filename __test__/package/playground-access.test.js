'use strict';
// docs/playground.html for everyone: by keyboard, read aloud, legible in light and dark, on a phone; from files and
// servers, without a request.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { once } = require('node:events');
const { describe, test } = require('node:test');

const { missingBrowser } = require('../support/chromium.js');
const { PATH, URL_OF_FILE, playground } = require('../support/playground.js');

describe('in Chromium', { skip: missingBrowser(), concurrency: 1 }, () => {
  const { page, run, set, text, texts, value } = playground();

  /** The name and the ring of the element that has the focus. */
  const focused = () =>
    run(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      const { id, labels } = document.activeElement;
      const label =
        document.activeElement.ariaLabel ?? (labels?.[0] ?? document.activeElement).innerText;
      return { id, label, hasRing: outlineStyle === 'solid' && outlineWidth === '3px' };
    });

  /** Presses Tab until an element has the focus. */
  async function tabTo(name) {
    for (let n = 0; n < 30; n++) {
      await page().press('Tab');
      if ((await focused()).id === name) return;
    }
    assert.fail(`Tab does not reach ${name}`);
  }

  test('Tab reaches each control once, in order, with a label and a ring', async () => {
    const expected = await run(() =>
      [...document.querySelectorAll('input, select, button')].map(({ id }) => id),
    );
    assert.equal(expected.length, 13);
    const reached = [];
    for (let n = 0; n < expected.length; n++) {
      await page().press('Tab');
      const { id: name, label, hasRing } = await focused();
      assert.ok(label?.trim().length > 0, `${name} has a label`);
      assert.ok(hasRing, `${name} shows that it has the focus`);
      reached.push(name);
    }
    assert.deepEqual(reached, expected);
  });

  test('works by keyboard alone', async () => {
    await tabTo('id');
    await page().type('175928847299117063');
    await tabTo('id-layout');
    await page().press('ArrowDown', 'ArrowDown');
    assert.equal(await value('own-layout'), 'uid');
    await page().press('ArrowDown');
    assert.equal(await value('id-layout'), 'discord');
    assert.match(await text('#fields .timestamp .value'), /^2016-04-30T11:18:25\.796Z/);
    await tabTo('workerBits');
    await page().press('ArrowLeft', 'ArrowLeft');
    assert.match((await texts('#figures dd'))[1], /^256\n32 datacenters x 8 workers$/);
    await tabTo('clockBackBits');
    await page().press('ArrowRight', 'ArrowRight');
    await tabTo('epoch');
    await page().type('2026-01-01');
    await page().press('Enter');
    assert.match(await text('#code'), /\n {4}epoch: 1767225600000,\n/);
  });

  test('works from a server, requests nothing and reports no error', async () => {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'text/html').end(readFileSync(PATH));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${server.address().port}/docs/playground.html`;
    try {
      await page().load(url);
      await set('id', '900710334548459521');
      assert.equal(await text('#fields .sequence .value'), '1 of 4,096');
    } finally {
      server.close();
      server.closeAllConnections();
    }
    const others = page().requests.filter((request) => ![URL_OF_FILE, url].includes(request));
    assert.deepEqual(
      others.filter((request) => request !== 'data:,'),
      [],
    );
    assert.deepEqual(page().complaints, []);
    // What would be counted.
    await run(() => fetch('https://example.invalid/').catch(() => console.error('refused')));
    assert.ok(page().complaints.length > 0);
  });
});
