// Draws ns an ID as an SVG bar chart on a log scale.

const WIDTH = 720;
const LEFT = 210;
const RIGHT = 70;
const ROW = 26;
const TOP = 44;

export function chart(nsByName, caption) {
  const rows = Object.entries(nsByName).sort(([, a], [, b]) => a - b);
  const most = 10 ** Math.ceil(Math.log10(rows.at(-1)[1]));
  const x = (ns) => LEFT + ((Math.log10(ns) - 1) / (Math.log10(most) - 1)) * (WIDTH - LEFT - RIGHT);
  const height = TOP + rows.length * ROW + 40;
  const ticks = [];
  for (let ns = 10; ns <= most; ns *= 10) ticks.push(ns);
  const lines = ticks.map(
    (ns) =>
      `<line x1="${x(ns)}" x2="${x(ns)}" y1="${TOP - 6}" y2="${height - 36}" stroke="#8884"/>` +
      `<text x="${x(ns)}" y="${height - 20}" text-anchor="middle">${ns.toLocaleString('en-US')} ns</text>`,
  );
  const bars = rows.map(([name, ns], i) => {
    const y = TOP + i * ROW;
    const colour = name.startsWith('snowdrift') ? '#2f81f7' : '#8b949e';
    return (
      `<text x="${LEFT - 8}" y="${y + 14}" text-anchor="end">${name}</text>` +
      `<rect x="${LEFT}" y="${y}" width="${Math.max(x(ns) - LEFT, 2).toFixed(1)}" height="18" rx="3" fill="${colour}"/>` +
      `<text x="${(Math.max(x(ns), LEFT) + 6).toFixed(1)}" y="${y + 14}">${ns.toFixed(0)}</text>`
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#7d8590">
<text x="${LEFT}" y="18" font-size="14" font-weight="600">ns an ID, in a loop, log scale: shorter is faster</text>
<text x="${LEFT}" y="33" font-size="10">${caption}</text>
${lines.join('\n')}
${bars.join('\n')}
</svg>
`;
}
