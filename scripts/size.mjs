// How large each room is: lines of code without comments, blank lines and the tests in a file of Rust; words of pages
// that their readers see, with those of code.
//
//   npm run size

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** A file counts for the first group that has it. Of `js` and `src`, files that are not in a folder are one room. */
const GROUPS = {
  'tests, support': /^__test__\/(support|types)\//,
  tests: /^(packages\/\w+\/)?(__test__|tests)\/|^src\/.*\btests\b/,
  js: /^js\/(?!.*\.d\.[cm]?ts$)/,
  src: /^(packages\/\w+\/)?src\//,
  'scripts, bench, demo': /^(scripts|bench|demo|\.ci)\//,
  "words of contributors' pages": /^(docs\/contributing\/|CONTRIBUTING\.md)/,
  "words of users' pages": /^(docs\/|README\.md|SECURITY\.md)/,
};
/** Made by a program. */
const OMITTED = ['docs/api.md'];
const CODE = ['.js', '.cjs', '.mjs', '.ts', '.rs', ''];
const COMMENT = /^(\/\/|#!|# )/;

/** Lines of code. Of Rust, up to the tests at the end. */
function linesOf(text) {
  const [code] = text.split(/^#\[cfg\(test\)\]\nmod \w+ \{/m);
  let isComment = false;
  let count = 0;
  for (const line of code.split('\n').map((each) => each.trim())) {
    if (line.startsWith('/*')) isComment = true;
    if (line !== '' && !isComment && !COMMENT.test(line)) count++;
    if (line.includes('*/')) isComment = false;
  }
  return count;
}

/** Words have a letter or a digit: the lines of a table are none. */
const wordsOf = (text) =>
  text.replace(/<!--[\s\S]*?-->/g, '').match(/\S*[\p{L}\p{N}]\S*/gu)?.length ?? 0;

const files = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0');
const sizes = new Map(Object.keys(GROUPS).map((group) => [group, { total: 0, rooms: new Map() }]));
for (const path of files.filter((each) => each !== '' && !OMITTED.includes(each))) {
  const [group] = Object.entries(GROUPS).find(([, pattern]) => pattern.test(path)) ?? [];
  if (group === undefined) continue;
  const isPage = extname(path) === '.md';
  if (isPage !== group.startsWith('words')) continue;
  if (!isPage && !CODE.includes(extname(path))) continue;
  const text = readFileSync(path, 'utf8');
  const size = isPage ? wordsOf(text) : linesOf(text);
  const room = path.split('/').slice(0, -1).slice(0, 2).join('/') || path;
  const { rooms } = sizes.get(group);
  sizes.get(group).total += size;
  rooms.set(room, (rooms.get(room) ?? 0) + size);
}
for (const [group, { total, rooms }] of sizes) {
  console.log(`${group}: ${total.toLocaleString('en')}`);
  const shown = [...rooms].sort(([, one], [, other]) => other - one);
  console.log(
    `  ${shown.map(([room, size]) => `${room} ${size.toLocaleString('en')}`).join(', ')}`,
  );
}
