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
<text x="8" y="18" font-size="14" font-weight="600">ns an ID, in a loop, log scale: shorter is faster</text>
<text x="8" y="33" font-size="10">${caption}</text>
${lines.join('\n')}
${bars.join('\n')}
</svg>
`;
}

const SHARES = ['p50', 'p99', 'p99.9', 'max'];
const COLOURS = { SnowFlake: '#2f81f7', CachedSnowFlake: '#a371f7' };

/** How long calls took at most, of so many in a hundred, a thousand, and all; log scale. */
export function latencyChart(calls, caption) {
  const rows = SHARES.flatMap((share) =>
    Object.keys(COLOURS).map((name) => ({ share, name, ns: calls[name][share] })),
  );
  const most = 10 ** Math.ceil(Math.log10(Math.max(...rows.map(({ ns }) => ns))));
  const x = (ns) => LEFT + ((Math.log10(ns) - 2) / (Math.log10(most) - 2)) * (WIDTH - LEFT - RIGHT);
  const height = TOP + rows.length * ROW + 40;
  const lines = [];
  for (let ns = 100; ns <= most; ns *= 10) {
    lines.push(
      `<line x1="${x(ns)}" x2="${x(ns)}" y1="${TOP - 6}" y2="${height - 36}" stroke="#8884"/>` +
        `<text x="${x(ns)}" y="${height - 20}" text-anchor="middle">${(ns / 1000).toLocaleString('en-US')} us</text>`,
    );
  }
  const bars = rows.map(({ share, name, ns }, i) => {
    const y = TOP + i * ROW;
    const width = Math.max(x(ns) - LEFT, 2);
    return (
      `<text x="${LEFT - 8}" y="${y + 14}" text-anchor="end">${share}, ${name}</text>` +
      `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="18" rx="3" fill="${COLOURS[name]}"/>` +
      `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 14}">${(ns / 1000).toFixed(1)}</text>`
    );
  });
  const empty = calls['nothing, only measured'];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#7d8590">
<text x="8" y="18" font-size="14" font-weight="600">us a call of nextId(), one a turn, 100,000 a second</text>
<text x="8" y="33" font-size="10">with the measuring itself, p50 ${(empty.p50 / 1000).toFixed(1)} to max ${(empty.max / 1000).toFixed(0)} us; ${caption.split(';')[0]}</text>
${lines.join('\n')}
${bars.join('\n')}
</svg>
`;
}

/** Their colours, and how far below the line's end the name stands: two lie close together. */
const CURVES = { rss: ['#2f81f7', 4], heapUsed: ['#a371f7', -1], external: ['#3fb950', 10] };

/** A process's memory over time. */
export function memoryChart(samples, caption) {
  const height = 320;
  const [left, bottom] = [70, height - 40];
  const right = WIDTH - RIGHT;
  const most = Math.ceil(Math.max(...samples.map(({ rss }) => rss)) / 20e6) * 20e6;
  const last = samples.at(-1).seconds;
  const x = (seconds) => (left + (seconds / last) * (right - left)).toFixed(1);
  const y = (bytes) => (bottom - (bytes / most) * (bottom - TOP)).toFixed(1);
  const lines = [];
  for (let bytes = 0; bytes <= most; bytes += 20e6) {
    lines.push(
      `<line x1="${left}" x2="${right}" y1="${y(bytes)}" y2="${y(bytes)}" stroke="#8884"/>` +
        `<text x="${left - 8}" y="${y(bytes)}" dy="4" text-anchor="end">${bytes / 1e6} MB</text>`,
    );
  }
  for (let part = 0; part <= 5; part++) {
    const seconds = (last * part) / 5;
    const minutes = Number((seconds / 60).toFixed(1));
    lines.push(
      `<text x="${x(seconds)}" y="${height - 18}" text-anchor="middle">${minutes} min</text>`,
    );
  }
  const curves = Object.entries(CURVES).map(([name, [colour, below]]) => {
    const points = samples.map((point) => `${x(point.seconds)},${y(point[name])}`).join(' ');
    return (
      `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5"/>` +
      `<text x="${right + 6}" y="${y(samples.at(-1)[name])}" dy="${below}" fill="${colour}">${name}</text>`
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#7d8590">
<text x="8" y="18" font-size="14" font-weight="600">memory of a process that opens, draws and closes without end</text>
<text x="8" y="33" font-size="10">${caption}</text>
${lines.join('\n')}
${curves.join('\n')}
</svg>
`;
}
