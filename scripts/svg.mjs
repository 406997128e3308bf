// Parts of SVG pictures that are legible on light and dark pages: each has a background of its own, and two sets
// of colours. The text has 13 units or more of WIDTH, so that it can be read on a phone.

export const WIDTH = 600;

/** By class: the colour in light and in dark. A field's is the same in both. */
const FILLS = {
  card: ['#fff', '#0d1117'],
  text: ['#1f2328', '#f0f6fc'],
  quiet: ['#59636e', '#9198a1'],
  red: ['#b3261e', '#ff7b72'],
  blue: ['#0969da', '#58a6ff'],
  purple: ['#8250df', '#bc8cff'],
  green: ['#1a7f37', '#3fb950'],
  other: ['#8c959f', '#6e7681'],
  script: ['#e8eef5', '#16263a'],
  rust: ['#e9f3e8', '#162a18'],
  unused: ['#e3e7ec', '#2a313a'],
  timestamp: ['#4c78a8'],
  datacenter: ['#f58518'],
  worker: ['#e8b04a'],
  'clock-back': ['#b279a2'],
  sequence: ['#54a24b'],
  'on-dark': ['#fff'],
  'on-light': ['#10141a'],
};

const STROKES = {
  rule: ['#d1d9e0', '#3d444d'],
  axis: ['#818b98', '#818b98'],
  limit: ['#d1495b', '#ff7a8c'],
  'blue-line': ['#0969da', '#58a6ff'],
  'purple-line': ['#8250df', '#bc8cff'],
  'green-line': ['#1a7f37', '#3fb950'],
  'script-line': ['#4c78a8', '#4c78a8'],
  'rust-line': ['#54a24b', '#54a24b'],
  // Round the letters, where lines run behind them.
  halo: FILLS.card,
};

function styleOf(classes) {
  const rules = (scheme) =>
    [
      [FILLS, 'fill'],
      [STROKES, 'stroke'],
    ]
      .flatMap(([all, property]) =>
        Object.entries(all)
          .filter(([name, colours]) => classes.has(name) && colours[scheme] !== undefined)
          .map(([name, colours]) => `.${name}{${property}:${colours[scheme]}}`),
      )
      .join('');
  return `<style>${rules(0)}@media(prefers-color-scheme:dark){${rules(1)}}</style>`;
}

const escaped = (content) => content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const short = (value) => (typeof value === 'number' ? Number(value.toFixed(1)) : value);

/** An element, with `className` and attributes. */
export function element(name, { className, ...attributes }, content = '') {
  const all = { class: className, ...attributes };
  const given = Object.entries(all).filter(([, value]) => value !== undefined);
  const text = given.map(([key, value]) => ` ${key}="${short(value)}"`).join('');
  return content === '' ? `<${name}${text}/>` : `<${name}${text}>${content}</${name}>`;
}

export function text(x, y, content, className = 'text', attributes = {}) {
  return element('text', { x, y, className, ...attributes }, escaped(content));
}

/** Attributes of text. */
export const BOLD = { 'font-weight': 600 };
export const MIDDLE = { 'text-anchor': 'middle' };
export const END = { 'text-anchor': 'end' };

export function rect(x, y, width, height, className, attributes = {}) {
  return element('rect', { x, y, width, height, className, ...attributes });
}

export function line(x1, y1, x2, y2, className = 'rule', attributes = {}) {
  return element('line', { x1, y1, x2, y2, className, ...attributes });
}

/** A picture of its parts. The title is what a screen reader says. */
export function picture(title, height, parts) {
  const all = [rect(0, 0, WIDTH, height, 'card', { rx: 8 }), ...parts].flat(Infinity);
  const named = all.flatMap((part) => [...part.matchAll(/ class="([^"]+)"/g)]);
  const classes = new Set(named.flatMap(([, names]) => names.split(' ')));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${short(height)}" width="${WIDTH}" height="${short(height)}" role="img" font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif" font-size="13">
<title>${escaped(title)}</title>
${styleOf(classes)}
${all.join('\n')}
</svg>
`;
}
