'use strict';
// The drawings and charts: up to date, and legible in Chromium, in light and in dark, on a page and on a phone.

const assert = require('node:assert/strict');
const { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { gate } = require('../support/amount.js');
const { Page, missingBrowser } = require('../support/chromium.js');
const { layouts } = require('snowdrift');

const ROOT = join(__dirname, '../..');
const PATHS = ['docs/drawings', 'bench/results'].flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.svg'))
    .map((name) => `${folder}/${name}`),
);
/** The widths of pages that show them. A wider page shows them in their own size. */
const WIDTHS = [400, 900];
const SCHEMES = ['light', 'dark'];
/** WCAG 2, AA. */
const LEAST_CONTRAST = 4.5;
/** Of a letter, in pixels of a page of 400. */
const LEAST_SIZE = 8.5;

const read = (path) => readFileSync(join(ROOT, path), 'utf8');

test('each is up to date: run node scripts/drawings.mjs if this fails', async () => {
  const { pictures } = await import('../../scripts/drawings.mjs');
  const made = pictures();
  assert.deepEqual(Object.keys(made).sort(), PATHS.sort());
  for (const [path, content] of Object.entries(made)) {
    assert.ok(read(path) === content, `${path} differs from what scripts/drawings.mjs makes`);
  }
});

/** Run in the page: what is wrong with the texts of its picture, which is shown `width` pixels wide. */
function problems({ leastContrast, leastSize }) {
  const svg = document.querySelector('svg');
  const whole = svg.getBoundingClientRect();
  const shapes = [...svg.querySelectorAll('rect, polygon, circle, path, line, polyline')];
  const rgb = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [dark, light] = [one, other].map(luminance).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const isFilled = (shape, [x, y]) => {
    if (getComputedStyle(shape).fill === 'none') return false;
    const at = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
    return shape.isPointInFill(at);
  };
  /** The colour of a point: of the shapes there, one above the other. */
  const colourAt = (point) =>
    shapes
      .filter((shape) => isFilled(shape, point))
      .reduce(
        (below, shape) => {
          const { fill, fillOpacity, opacity } = getComputedStyle(shape);
          const [r, g, b, alpha = 1] = rgb(fill);
          const share = alpha * fillOpacity * opacity;
          return [r, g, b].map((part, n) => part * share + below[n] * (1 - share));
        },
        [128, 128, 128],
      );
  const meet = (a, b, least) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > least &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > least;

  const texts = [];
  const walker = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!['text', 'tspan'].includes(parent.localName) || node.data.trim() === '') continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    texts.push({ content: node.data, parent, box: range.getBoundingClientRect() });
  }
  const found = [];
  for (const [n, { content, parent, box }] of texts.entries()) {
    const { fill, fontSize, stroke } = getComputedStyle(parent);
    const { left, right, top, bottom } = box;
    const inside = [left - whole.left, top - whole.top, whole.right - right, whole.bottom - bottom];
    if (Math.min(...inside) < 0) found.push(`leaves the picture: ${content}`);
    for (const other of texts.slice(n + 1)) {
      if (meet(box, other.box, 0.1)) found.push(`overlap: ${content}, ${other.content}`);
    }
    const points = [0.02, 0.5, 0.98].flatMap((across) =>
      [0.25, 0.5, 0.75].map((down) => [left + across * box.width, top + down * box.height]),
    );
    const least = Math.min(...points.map((point) => contrast(rgb(fill), colourAt(point))));
    if (least < leastContrast) found.push(`contrast ${least.toFixed(1)}: ${content}`);
    const behind = rgb(stroke === 'none' ? 'rgb(0, 0, 0, 0)' : stroke);
    const hasHalo = contrast(behind, colourAt(points[4])) === 1 && behind.length === 3;
    for (const [order, shape] of shapes.entries()) {
      const isBehind = shape.compareDocumentPosition(parent) & Node.DOCUMENT_POSITION_FOLLOWING;
      const isHidden = shapes.slice(order + 1).some((other) => isFilled(other, points[4]));
      if (shape.localName !== 'line' || isHidden || (isBehind && hasHalo)) continue;
      const { left: x, right: x2, top: y, bottom: y2 } = shape.getBoundingClientRect();
      const thick = { left: x - 0.5, right: x2 + 0.5, top: y - 0.5, bottom: y2 + 0.5 };
      if (meet(box, thick, 0.1)) found.push(`a line crosses: ${content}`);
    }
    const size = (Number.parseFloat(fontSize) * 400) / svg.viewBox.baseVal.width;
    if (size < leastSize) found.push(`small, ${size.toFixed(1)}: ${content}`);
  }
  return { count: texts.length, found };
}

describe('in Chromium', { skip: gate ?? missingBrowser(), concurrency: 1 }, () => {
  let page;
  let directory;
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'snowdrift-pictures-'));
    page = await Page.open();
  });
  after(async () => {
    await page?.close();
    rmSync(directory, { recursive: true });
  });

  /** Loads a picture into a page, as wide as the page at most. */
  async function show(picture, width, scheme) {
    const file = join(directory, 'page.html');
    const meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">';
    const style = '<style>body { margin: 0 } svg { max-width: 100%; height: auto }</style>';
    writeFileSync(file, `<!doctype html>${meta}${style}${picture}`);
    await page.show(width, 900, scheme);
    await page.load(pathToFileURL(file).href);
  }

  async function problemsOf(picture, width, scheme) {
    await show(picture, width, scheme);
    const limits = { leastContrast: LEAST_CONTRAST, leastSize: LEAST_SIZE };
    return page.run(problems, limits);
  }

  for (const path of PATHS) {
    test(`${path}: no text overlaps, leaves the picture or is faint`, async () => {
      for (const width of WIDTHS) {
        for (const scheme of SCHEMES) {
          const { count, found } = await problemsOf(read(path), width, scheme);
          assert.deepEqual(found, [], `${width} pixels, ${scheme}`);
          assert.ok(count >= 10, `${count} texts`);
        }
      }
    });
  }

  test('in dark a picture is dark', async () => {
    for (const [scheme, expected] of [
      ['light', 'rgb(255, 255, 255)'],
      ['dark', 'rgb(13, 17, 23)'],
    ]) {
      for (const path of PATHS) {
        await show(read(path), 900, scheme);
        const back = await page.run(() => getComputedStyle(document.querySelector('rect')).fill);
        assert.equal(back, expected, path);
      }
    }
  });

  test('what would be found', async () => {
    const { line, picture, rect, text } = await import('../../scripts/svg.mjs');
    const faults = {
      'overlap: One, Two': [text(20, 30, 'One'), text(40, 34, 'Two')],
      'leaves the picture: far right': [text(560, 30, 'far right')],
      'leaves the picture: below': [text(20, 99, 'below')],
      'faint: hidden': [text(30, 30, 'hidden'), rect(20, 10, 90, 40, 'text')],
      'faint: faint': [text(30, 30, 'faint', 'worker')],
      'faint: on worker': [rect(0, 0, 200, 50, 'worker'), text(30, 30, 'on worker', 'on-dark')],
      'faint: half on it': [rect(0, 0, 60, 50, 'sequence'), text(30, 30, 'half on it', 'quiet')],
      'a line crosses: crossed': [line(50, 0, 50, 90), text(30, 30, 'crossed')],
      'a line crosses: crossed later': [
        text(30, 30, 'crossed later', 'text halo'),
        line(50, 0, 50, 90),
      ],
      'small, 8.0: small': [text(30, 30, 'small', 'text', { 'font-size': 12 })],
    };
    for (const [expected, parts] of Object.entries(faults)) {
      const { found } = await problemsOf(picture('A fault', 100, parts), 900, 'light');
      const kinds = found.map((one) => one.replace(/^contrast [\d.]+/, 'faint'));
      assert.ok(kinds.includes(expected), `${expected}, not ${found}`);
    }
    const halo = [line(50, 0, 50, 90), text(30, 30, 'above a line', 'text halo')];
    assert.deepEqual((await problemsOf(picture('None', 100, halo), 900, 'dark')).found, []);
  });

  test('bits.svg has each layout with its bits', async () => {
    await show(read('docs/drawings/bits.svg'), 900, 'light');
    const rows = await page.run(() => {
      const boxes = (selector) =>
        [...document.querySelectorAll(selector)].map((one) => {
          const { left, top, width, height } = one.getBoundingClientRect();
          return {
            left,
            width,
            middle: top + height / 2,
            name: one.textContent,
            height,
            field: one.classList[0],
          };
        });
      const texts = boxes('text');
      const cells = boxes('rect').filter(({ height }) => height === 30);
      const near = (one) => (other) => Math.abs(one.middle - other.middle) < 10;
      const isIn = (cell) => (label) =>
        near(cell)(label) && label.left > cell.left - 2 && label.left < cell.left + cell.width;
      const names = boxes('text[font-weight]');
      return names.map((row) => {
        const own = cells.filter(near(row));
        const all = own.reduce((sum, { width }) => sum + width, 0);
        const bits = own.map(({ field, width }) => [field, (width / all) * 64]);
        const labels = own.map((cell) => texts.find(isIn(cell))?.name);
        return { name: row.name, bits, labels };
      });
    });
    const expected = Object.entries(layouts).map(([name, layout]) => {
      const fields = ['timestamp', 'datacenter', 'worker', 'clockBack', 'sequence'];
      const used = fields.map((field) => [field.replace('B', '-b'), layout[`${field}Bits`]]);
      const unused = 64 - used.reduce((sum, [, bits]) => sum + bits, 0);
      return { name, bits: [['unused', unused], ...used.filter(([, bits]) => bits > 0)] };
    });
    assert.deepEqual(
      rows.map(({ name, bits }) => ({
        name,
        bits: bits.map(([field, value]) => [field, Math.round(value * 10) / 10]),
      })),
      expected,
    );
    for (const [row, { labels }] of rows.entries()) {
      const shown = labels.slice(1).map((label) => Number(/\d+$/.exec(label)));
      assert.deepEqual(
        shown,
        expected[row].bits.slice(1).map(([, bits]) => bits),
      );
    }
  });
});

test('the chart names the layouts of what it compares', () => {
  const { layout } = JSON.parse(read('bench/results/latest.json'));
  const widthsOf = ({ timestampBits: ts, datacenterBits: dc, workerBits: worker, ...rest }) =>
    [ts, dc, worker, rest.clockBackBits, rest.sequenceBits].join('/');
  const texts = [...read('bench/results/chart.svg').matchAll(/>([^<\n]+)<\/text>/g)].map(
    ([, one]) => one,
  );
  const titles = texts.filter((one) => one.includes('; layout '));
  assert.deepEqual(
    titles.map((title) => title.split('layout ')[1]),
    [layouts.node, layout, layouts.node].map(widthsOf),
  );
  assert.ok(texts.includes(`snowdrift, default ${widthsOf(layouts.node)}`));
});
