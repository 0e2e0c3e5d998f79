import { ratio, type Results } from './report';

const ROW = 44;
const LEFT = 210;
const WIDTH = 900;
const TOP = 78;
const COLOURS = { floor: '#2f6f9f', stock: '#c9843b' } as const;

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Ours as a multiple of the hand-written floor and of the ordinary Nest way, endpoint by endpoint. */
export function chartOf(results: Results): string {
  const rows = results.endpoints.map((result) => ({
    name: result.endpoint,
    floor: ratio(result, 'floor', 'rate')?.median ?? 0,
    stock: ratio(result, 'stock', 'rate')?.median ?? 0,
  }));
  const most = Math.max(1, ...rows.flatMap(({ floor, stock }) => [floor, stock]));
  const x = (value: number) => LEFT + (value / most) * (WIDTH - LEFT - 70);
  const height = TOP + rows.length * ROW + 30;
  const bars = rows.flatMap(({ name, floor, stock }, i) => {
    const y = TOP + i * ROW;
    const bar = (value: number, offset: number, colour: string) =>
      value === 0
        ? ''
        : `<rect x="${LEFT}" y="${y + offset}" width="${(x(value) - LEFT).toFixed(1)}" height="14" rx="2" fill="${colour}"/>` +
          `<text x="${(x(value) + 6).toFixed(1)}" y="${y + offset + 11}" class="v">${value.toFixed(2)}x</text>`;
    return [
      `<text x="${LEFT - 10}" y="${y + 20}" text-anchor="end">${escaped(name)}</text>`,
      bar(floor, 2, COLOURS.floor),
      bar(stock, 18, COLOURS.stock),
    ];
  });
  const line = x(1).toFixed(1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13">`,
    '<style>text{fill:#24292f}.v{font-size:12px}.t{font-size:17px;font-weight:600}rect.b{fill:#fff}' +
      '@media (prefers-color-scheme:dark){text{fill:#e6edf3}rect.b{fill:#0d1117}}</style>',
    `<rect class="b" width="${WIDTH}" height="${height}"/>`,
    `<text x="16" y="28" class="t">Requests a second, Gamewharf compared</text>`,
    `<rect x="16" y="42" width="12" height="12" fill="${COLOURS.floor}"/><text x="34" y="53">to hand-written node:http and pg</text>`,
    `<rect x="280" y="42" width="12" height="12" fill="${COLOURS.stock}"/><text x="298" y="53">to NestJS as it is usually written</text>`,
    `<text x="${WIDTH - 16}" y="53" text-anchor="end">${escaped(results.machine.processor ?? '')}, Node ${process.versions.node}</text>`,
    ...bars,
    `<line x1="${line}" x2="${line}" y1="${TOP - 6}" y2="${height - 22}" stroke="#888" stroke-dasharray="3 3"/>`,
    `<text x="${line}" y="${height - 8}" text-anchor="middle" class="v">1x: as fast</text>`,
    '</svg>',
    '',
  ].join('\n');
}
