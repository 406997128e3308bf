// Makes docs/api.md of the declarations: index.d.ts and those of the other entries. package/pages.test.js fails if the
// page is not up to date:
//
//   node scripts/api.mjs

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../', import.meta.url);

/** Entries with pages of their own, and the manifest. */
const ELSEWHERE = ['./nestjs', './prisma', './typeorm', './package.json'];

/** The other entries of the package, each with its declarations. */
function entries() {
  const { exports, types } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'));
  const { '.': _, ...others } = exports;
  const files = Object.entries(others).filter(([path]) => !ELSEWHERE.includes(path));
  return [
    ['snowdrift', types],
    ...files.map(([path, file]) => [path.replace('.', 'snowdrift'), file.replace(/js$/, 'd.ts')]),
  ];
}

/** What an application has around an example, by the name that the example uses. */
const AROUND = {
  SnowFlake: "import { SnowFlake } from 'snowdrift';",
  layouts: "import { layouts } from 'snowdrift';",
  flake:
    "import { SnowFlake as Flake } from 'snowdrift'; const flake = new Flake({ datacenterId: 1, workerId: 3 });",
  pool: "import pg from 'pg'; const pool = new pg.Pool({ connectionString: 'postgres://127.0.0.1/app' });",
  postgres: "import { postgres } from 'snowdrift/lease/postgres';",
  sql: "import { sql } from 'snowdrift/lease/sql';",
  workerNode: "import { workerNode } from 'snowdrift/lease/worker-node';",
};

const COMMENT = /^\s*(\/\*\*|\*|\/\/)/;

/** The declarations of a file or a body, each with its comment. A comment without a declaration is the file's. */
function declarationsIn(lines) {
  const found = [];
  let doc = [];
  let code = [];
  let depth = 0;
  for (const line of lines) {
    const isDoc = line.startsWith('/**') || (doc.length > 0 && !doc.at(-1).endsWith('*/'));
    if (code.length === 0 && isDoc) {
      doc.push(line);
    } else if (code.length > 0 || /^[^/\s]/.test(line)) {
      code.push(line);
      if (COMMENT.test(line)) continue;
      depth += line.match(/[({[]/g)?.length ?? 0;
      depth -= line.match(/[)}\]]/g)?.length ?? 0;
      if (depth === 0 && /[;}]$/.test(line)) {
        found.push({ doc: textOf(doc), code });
        [doc, code] = [[], []];
      }
    } else if (doc.length > 0) {
      found.push({ doc: textOf(doc), code: [] });
      doc = [];
    }
  }
  return found;
}

/** The text of a comment. */
function textOf(doc) {
  const inner = doc.join('\n').replace(/^\/\*\*\s?|\s*\*\/$/g, '');
  return inner.replace(/^ *\* ?/gm, '').trim();
}

/** An example, and before it what it has around it: for the test that runs it. */
function exampleOf(block, code) {
  if (/^import /m.test(code)) return block;
  const uses = (name, text) => new RegExp(`\\b${name}\\b`).test(text);
  const declares = (name) => new RegExp(`const (\\{[^}]*)?\\b${name}\\b`).test(code);
  const needed = Object.keys(AROUND).filter((name) => uses(name, code) && !declares(name));
  if (needed.length === 0) return block;
  const given = needed.map((name) => AROUND[name]).join(' ');
  const then = needed.includes('pool') ? '\n\n<!-- then: process.exit(); -->' : '';
  return `<!-- given: ${given} -->\n\n${block}${then}`;
}

/** A comment's text, then its parameters, result and errors as a list. */
function proseOf(doc) {
  const [text, ...tags] = doc.split(/^@(?=(?:param|returns|throws) )/m);
  const items = tags.map((tag) => {
    const [, kind, rest] = /^(\w+) ([\s\S]*?)\s*$/.exec(tag);
    if (kind === 'returns') return `- Returns: ${rest}`;
    if (kind === 'param') return `- ${rest.replace(/^(\S+)\s+/, '`$1`: ')}`;
    return `- Throws ${rest.replace(/^(`ERR_\w+`)\s+/, '$1: ')}`;
  });
  const prose = text.trim().replace(/^```js\n([\s\S]*?)^```$/gm, exampleOf);
  return paragraphs(prose, items.join('\n'));
}

const paragraphs = (...parts) => parts.filter((part) => part !== '').join('\n\n');
const indented = (text) => text.replace(/\n(?=.)/g, '\n  ');

/** A declaration on one line, without what only the compiler needs. */
function signatureOf(code) {
  const lines = code.filter((line) => !COMMENT.test(line)).map((line) => line.trim());
  const text = lines
    .join(' ')
    .replace(/^export /, '')
    .replace(/^declare /, '')
    .replace(/\bthis: void(, )?/, '')
    .replace(/\( /g, '(')
    .replace(/,? \)/g, ')')
    .replace(/ ?[;{]$/, '');
  return `\`${text}\``;
}

/** The heading of a file's declaration; undefined if applications cannot use it. */
function headingOf({ code: [line = ''] }) {
  const kinds = 'class|interface|type|function|const';
  return new RegExp(`^(?:export|declare abstract) (?:${kinds}) (\\w+)`).exec(line)?.[1];
}

/** The heading of a class's member; undefined as above. */
function memberHeading(className, { code: [line = ''] }) {
  const [, isStatic, name] =
    /^(static )?(?:readonly )?(\w+|\[Symbol\.\w+\])\??[<(:]/.exec(line) ?? [];
  if (name === 'constructor') return `new ${className}()`;
  if (name === undefined) return undefined;
  return `${isStatic ? `${className}.` : ''}${name}${/^[^:]*[<(]|=> /.test(line) ? '()' : ''}`;
}

/** A class's members as sections, overloads under one heading. */
function sectionsOf(className, body) {
  const sections = new Map();
  for (const member of declarationsIn(body)) {
    const heading = memberHeading(className, member);
    if (heading === undefined) continue;
    const before = sections.get(heading) ?? `#### ${heading}`;
    sections.set(heading, paragraphs(before, signatureOf(member.code), proseOf(member.doc)));
  }
  return paragraphs(...sections.values());
}

/** An interface's properties as a list. */
function listOf(body) {
  const members = declarationsIn(body).filter(({ code }) => code.length > 0);
  const items = members.map(({ doc, code }) => paragraphs(signatureOf(code), proseOf(doc)));
  return items.map((item) => `- ${indented(item)}`).join('\n');
}

/** The alternatives of a union as a list, if they have comments. */
function alternativesOf(code) {
  const found = code.join('\n').matchAll(/^ {2}(\/\*\*[\s\S]*?\*\/)\n {2}\| ('\w+')/gm);
  return Array.from(found, ([, doc, value]) => {
    return `- \`${value}\`: ${indented(proseOf(textOf(doc.split('\n'))))}`;
  }).join('\n');
}

/** A file's declaration, without its heading. */
function declarationOf(name, { doc, code }) {
  const alternatives = alternativesOf(code);
  if (alternatives !== '') return paragraphs(proseOf(doc), alternatives);
  const start = code.findIndex((line) => line.endsWith(' {')) + 1;
  const hasBody = code.at(-1) === '}' && start > 0;
  const head = paragraphs(signatureOf(hasBody ? code.slice(0, start) : code), proseOf(doc));
  if (!hasBody) return head;
  const body = code.slice(start, -1).map((line) => line.slice(2));
  return paragraphs(head, / class /.test(code[0]) ? sectionsOf(name, body) : listOf(body));
}

/** An entry's text and the names of what it exports, classes first. */
function entryOf(entry, file) {
  const all = declarationsIn(readFileSync(new URL(file, ROOT), 'utf8').split('\n'));
  const intro = all.filter(({ code }) => code.length === 0).map(({ doc }) => proseOf(doc));
  const isClass = ({ code }) => / class /.test(code[0]);
  const exported = all.filter((one) => headingOf(one) !== undefined);
  const sections = new Map();
  for (const one of [...exported.filter(isClass), ...exported.filter((other) => !isClass(other))]) {
    const name = headingOf(one);
    const before = sections.get(name) ?? `### ${name}`;
    sections.set(name, paragraphs(before, declarationOf(name, one)));
  }
  const text = paragraphs(`## ${entry}`, ...intro, ...sections.values());
  return { entry, text, names: [...sections.keys()] };
}

/** By heading: its anchor, as GitHub makes it. */
function anchorsIn(text) {
  const anchors = new Map();
  const times = new Map();
  for (const [, heading] of text.matchAll(/^#{1,4} (.+)$/gm)) {
    const slug = heading
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-');
    const count = times.get(slug) ?? 0;
    times.set(slug, count + 1);
    if (!anchors.has(heading)) anchors.set(heading, count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}

/** The page's text. */
export function page() {
  const all = entries().map((one) => entryOf(...one));
  const rows = all.map(({ entry, names }) => {
    return `| {@link ${entry}} | ${names.map((name) => `{@link ${name}}`).join(', ')} |`;
  });
  const head = `<!-- Made by scripts/api.mjs of index.d.ts and the declarations beside the other entries: change those. -->

# API

All exports, with units, ranges and errors: the text that editors show. [TypeORM](typeorm.md), [Prisma](prisma.md) and
[NestJS](nestjs.md) have pages of their own. [Troubleshooting](troubleshooting.md) explains each error.

| import | exports |
| --- | --- |
${rows.join('\n')}`;
  const text = paragraphs(head, ...all.map((one) => one.text));
  const anchors = anchorsIn(text);
  const linked = text.replace(/\{@link ([\w./-]+)\}/g, (_, name) => {
    const last = name.split('.').at(-1);
    const found = [name, `${name}()`, last, `${last}()`, name.split('.')[0]];
    const heading = found.find((one) => anchors.has(one));
    return heading === undefined ? `\`${name}\`` : `[\`${name}\`](#${anchors.get(heading)})`;
  });
  return `${linked}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL('docs/api.md', ROOT), page());
}
