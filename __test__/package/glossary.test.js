'use strict';
// A word of docs/glossary.md links there where a page uses it first.

const assert = require('node:assert/strict');
const { readdirSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');

const root = join(__dirname, '../..');
const read = (page) => readFileSync(join(root, page), 'utf8');
const WORDS = Array.from(read('docs/glossary.md').matchAll(/^## (.+)$/gm), ([, word]) =>
  word.toLowerCase(),
);
/** The API is made of what editors show; the glossary links to itself. */
const OMITTED = ['api.md', 'glossary.md'];
const pages = [
  'README.md',
  'SECURITY.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md') && !OMITTED.includes(name))
    .map((name) => `docs/${name}`),
];

/** Where a word has another meaning. */
const OTHERS = [
  /\b(?:this|web|foreign|Node's|repository's) pages?\b/g,
  /\bpages?(?= (?:of (?:your|a list|results)|to open|that runs))/g,
  /\brows or pages\b/g,
  /\bturns?(?= (?:\w+ ){0,2}(?:on|off)\b)/g,
  /\b(?:take|in|by) turns?\b/g,
  /\bZooKeeper nodes?\b|\bnode(?=-\w| addon|\s+or instance)/g,
  /\bhost names?\b|\bhosts, ports\b/g,
];
/** Pages on which a word only has another meaning: nodes of Kubernetes, ZooKeeper and Redis Cluster; pages of a list. */
const OTHER_PAGES = {
  node: ['docs/deployment.md', 'docs/store-security.md', 'docs/stores.md'],
  page: ['docs/cursors.md'],
};

const blank = (text) => text.replace(/[^\n]/g, ' ');

/** A page of which only prose is left, at its places. */
function proseOf(text) {
  const hidden = [
    // Made by the benchmark.
    /<!-- table:[\s\S]*?<!-- end -->/g,
    /<!--[\s\S]*?-->/g,
    /^```[\s\S]*?^```$/gm,
    /`[^`]*`/g,
    /^#.*$/gm,
    /^\|.*\n(?=\| ?---)/gm,
    ...OTHERS,
  ];
  return hidden.reduce((prose, pattern) => prose.replace(pattern, blank), text);
}

/** The first use of a word on a page: its place, and the link that it is in. */
function firstUse(page, word) {
  const prose = proseOf(read(page));
  const links = [...prose.matchAll(/\[[^\]]*\]\(([^)]*)\)/g)];
  const uses = prose.matchAll(new RegExp(`\\b${word}(?:s|ed|ing)?\\b`, 'g'));
  for (const { index } of uses) {
    const link = links.find((one) => one.index < index && index < one.index + one[0].length);
    if (link === undefined) return { index };
    if (link[1].endsWith(`glossary.md#${word}`)) return { index, link: link[1] };
    // The text or the address of a link that leads elsewhere.
  }
  return undefined;
}

test('the first use of each word on a page is a link to the glossary', () => {
  const unlinked = pages.flatMap((page) =>
    WORDS.filter((word) => !OTHER_PAGES[word]?.includes(page)).flatMap((word) => {
      const use = firstUse(page, word);
      if (use === undefined || use.link !== undefined) return [];
      const line = read(page).slice(0, use.index).split('\n').length;
      return [`${page}:${line}: ${word}`];
    }),
  );
  assert.deepEqual(unlinked, []);
});

test('the glossary has one screen', () => {
  assert.ok(read('docs/glossary.md').split('\n').length <= 45);
});
