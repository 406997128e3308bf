'use strict';
// docs/playground.html: it is up to date, and in headless Chromium it shows what snowdrift/id and `snowdrift layout`
// say, by keyboard, too, and without a request.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { readFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { describe, test } = require('node:test');

const vectors = require('../ids/vectors.json');
const { gate } = require('../support/amount.js');
const { missingBrowser } = require('../support/chromium.js');
const { json } = require('../support/cli.js');
const { PATH, URL_OF_FILE, playground } = require('../support/playground.js');
const id = require('snowdrift/id');

const { layouts } = id;

test('the page is up to date: run node scripts/playground.mjs if this fails', async () => {
  const { page } = await import('../../scripts/playground.mjs');
  assert.ok(
    readFileSync(PATH, 'utf8') === page(),
    'docs/playground.html differs from scripts/playground',
  );
});

describe('in Chromium', { skip: gate ?? missingBrowser(), concurrency: 1 }, () => {
  const { click, isShown, page, run, set, text, texts, value } = playground();

  const NAMES = ['datacenterId', 'workerId', 'clockBack', 'sequence'];

  test('known IDs show the fields that parse gives, in decimal and in base32', async () => {
    const named = vectors.ids.filter(({ layout }) => typeof layout === 'string');
    assert.ok(named.length >= 3);
    const known = [...named, { id: '9223372036854775807', layout: 'node' }];
    for (const { id: decimal, layout } of known) {
      await set('id-layout', layout);
      const parsed = id.parse(decimal, layout);
      for (const form of [decimal, id.toBase32(decimal), ` ${decimal}\n`]) {
        await set('id', form);
        assert.equal(await text('#decimal'), decimal);
        assert.equal(await text('#base32'), id.toBase32(decimal));
        assert.equal(await text('#fields .timestamp .value'), await timeText(parsed, layout));
        for (const name of NAMES) {
          const bits = layouts[layout][`${name.replace('Id', '')}Bits`];
          const shown = await texts(`#fields .${name} .value`);
          const value = `${parsed[name].toLocaleString('en-US')} of ${(2 ** bits).toLocaleString('en-US')}`;
          assert.deepEqual(shown, bits === 0 ? [] : [value], `${name} of ${decimal}`);
        }
      }
      const cells = await texts('#bits span');
      const digits = cells.map((cell) => cell[0]).join('');
      assert.equal(BigInt(`0b${digits}`), BigInt(decimal));
      assert.equal(await isShown('id-error'), false);
    }
  });

  function timeText({ id: whole, date, timestamp }, layout) {
    const { tickMs, timestampBits, epoch, ...widths } = layouts[layout];
    const below = Object.values(widths).reduce((sum, bits) => sum + bits, 0);
    const tick = (whole >> BigInt(below)).toLocaleString('en-US');
    assert.equal(Number(whole >> BigInt(below)) * tickMs + epoch, timestamp);
    return `${date.toISOString()}\ntick ${tick} of ${tickMs.toLocaleString('en-US')} ms, Unix ms ${timestamp}`;
  }

  test('an ID that is none shows the error of snowdrift/id', async () => {
    const wrong = ['', 'abc', '-5', '007', '1e3', '9223372036854775808', '900 710'];
    const refusals = wrong.map((value) => [value, () => id.parse(value)]);
    for (const value of ['0RZZQ8VR4HG0U', '0rzzq8vr4hg00', '8ZZZZZZZZZZZZ']) {
      refusals.push([value, () => id.fromBase32(value)]);
    }
    for (const [value, refuse] of refusals) {
      await set('id', value);
      const { code, message } = catching(refuse);
      assert.equal(await text('#id-error'), `${code}: ${message}`);
      assert.equal(await isShown('id-result'), false, value);
    }
    await set('id-layout', 'safe');
    await set('id', '900710334548459520');
    assert.match(await text('#id-error'), /wider than this layout's 53 bits/);
    await set('id-layout', 'node');
    assert.ok(await isShown('id-result'));
    await set('id', '1234567890123');
    assert.match(await text('#id-note'), new RegExp(` ${id.fromBase32('1234567890123')}\\.$`));
  });

  function catching(call) {
    try {
      call();
    } catch (error) {
      return error;
    }
    assert.fail('it is an ID');
  }

  test('composes an ID of now, in any layout that has a now', async () => {
    for (const name of ['node', 'twitter', 'discord', 'safe']) {
      await set('id-layout', name);
      const start = Date.now();
      await click('now');
      const { date, workerId } = id.parse(await text('#decimal'), name);
      assert.ok(date >= start && date <= Date.now());
      assert.equal(workerId, 3);
    }
    await set('id-layout', 'uid');
    await click('now');
    assert.match(
      await text('#id-error'),
      /ERR_SNOWFLAKE_ARGUMENT: the time must lie in this layout/,
    );
  });

  const FIGURES = [
    { node: {}, args: ['node'] },
    {
      own: {
        timestampBits: 41,
        datacenterBits: 2,
        workerBits: 7,
        clockBackBits: 1,
        sequenceBits: 12,
      },
      args: ['41/2/7/1/12@7', '--epoch=-5'],
      tickMs: '7',
      epoch: '-5',
    },
  ];

  for (const { args, own = {}, tickMs, epoch } of FIGURES) {
    test(`the figures are those of snowdrift layout ${args.join(' ')}`, async () => {
      for (const [name, bits] of Object.entries(own)) await set(name, bits);
      if (tickMs !== undefined) await set('tickMs', tickMs);
      if (epoch !== undefined) await set('epoch', epoch);
      const expected = await json('layout', ...args);
      const [years, nodes, rate, rollbacks, width] = await texts('#figures dd');
      const count = (value) => BigInt(value).toLocaleString('en-US');
      assert.ok(years.startsWith(`${expected.yearsLeft.toFixed(1)}\n`), years);
      const day = expected.ends?.split('T')[0] ?? 'beyond all dates';
      assert.ok(years.endsWith(`of ${expected.years.toFixed(1)}, until ${day}`), years);
      assert.equal(await text('#starts'), `epoch ${new Date(expected.epoch).toISOString()}`);
      assert.equal(await text('#ends'), `ends ${expected.ends ?? 'beyond all dates'}`);
      assert.ok(nodes.startsWith(`${count(expected.nodes)}\n${count(expected.datacenters)} dat`));
      assert.ok(nodes.includes(` x ${count(expected.workers)} worker`), nodes);
      assert.ok(
        rate.startsWith(`${count(expected.idsPerSecond)}\n${count(expected.idsPerTick)} per`),
      );
      assert.ok(rollbacks.startsWith(`${expected.clockRollbacks}\n`), rollbacks);
      assert.ok(width.startsWith(`${63 - expected.unusedBits} of 63\n`), width);
      const shown = (await texts('#digits time')).join(' ');
      assert.equal(
        shown,
        expected.digits
          .slice(-4)
          .map(({ from }) => from)
          .join(' '),
      );
      const [command] = (await text('#code')).split('\n');
      assert.deepEqual(
        { ...(await json(...command.replace('npx snowdrift ', '').split(' '))), yearsLeft: 0 },
        { ...expected, yearsLeft: 0 },
      );
    });
  }

  test('a layout that is none shows the error of snowdrift/id, and another one mends it', async () => {
    await set('sequenceBits', 20);
    assert.match(await text('#layout-error'), /add up to at most 63 bits .*add up to 71$/);
    assert.deepEqual(await Promise.all(['layout-result', 'id-result'].map(isShown)), [
      false,
      false,
    ]);
    await set('sequenceBits', 12);
    assert.ok(await isShown('layout-result'));
    for (const [name, typed, message] of [
      ['tickMs', '0', /tickMs must be a whole number from 1 to 86400000; it is 0$/],
      ['epoch', 'soon', /epoch must be a whole number .*; it is 'soon'$/],
    ]) {
      await set(name, typed);
      assert.match(await text('#layout-error'), message);
      assert.equal(await value(name), typed);
      await set('own-layout', 'twitter');
      assert.equal(await isShown('layout-error'), false);
    }
  });

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
