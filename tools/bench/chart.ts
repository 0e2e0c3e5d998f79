import { ratio, type Results } from './report';

const ROW = 44;
const LEFT = 210;
const WIDTH = 900;
const TOP = 78;
const SLOWEST = 0.5;
const COLOURS = { floor: '#2f6f9f', stock: '#c9843b' } as const;

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Ours as a multiple of the hand-written floor and of the ordinary Nest way, endpoint by endpoint. */
export function chartOf(results: Results): string {
  const rows = results.endpoints.map((result) => ({
    name: result.endpoint,
    floor: ratio(result, 'floor', 'rate')?.median ?? 0,
    stock: ratio(result, 'stock', 'rate')?.median ?? 0,
  }));
  // Every step to the right is twice as fast: a factor of a hundred beside one of 1.1 would hide it.
  const most = Math.max(2, ...rows.flatMap(({ floor, stock }) => [floor, stock]));
  const steps = (value: number) => Math.log2(Math.max(value, SLOWEST) / SLOWEST);
  const x = (value: number) => LEFT + (steps(value) / steps(most)) * (WIDTH - LEFT - 70);
  const height = TOP + rows.length * ROW + 30;
  const bars = rows.flatMap(({ name, floor, stock }, i) => {
    const y = TOP + i * ROW;
    const bar = (value: number, offset: number, colour: string) =>
      value === 0
        ? ''
        : `<rect x="${Math.min(x(1), x(value)).toFixed(1)}" y="${y + offset}" width="${Math.abs(x(value) - x(1)).toFixed(1)}" height="14" rx="2" fill="${colour}"/>` +
          `<text x="${(Math.max(x(1), x(value)) + 6).toFixed(1)}" y="${y + offset + 11}" class="v">${value.toFixed(2)}x</text>`;
    return [
      `<text x="${LEFT - 10}" y="${y + 20}" text-anchor="end">${escaped(name)}</text>`,
      bar(floor, 2, COLOURS.floor),
      bar(stock, 18, COLOURS.stock),
    ];
  });
  const marks = [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512].filter((mark) => mark <= most);
  const lines = marks.flatMap((mark) => [
    `<line x1="${x(mark).toFixed(1)}" x2="${x(mark).toFixed(1)}" y1="${TOP - 6}" y2="${height - 22}" stroke="#888" ${mark === 1 ? '' : 'stroke-opacity="0.3" '}stroke-dasharray="3 3"/>`,
    `<text x="${x(mark).toFixed(1)}" y="${height - 8}" text-anchor="middle" class="v">${mark}x</text>`,
  ]);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13">`,
    '<style>text{fill:#24292f}.v{font-size:12px}.t{font-size:17px;font-weight:600}rect.b{fill:#fff}' +
      '@media (prefers-color-scheme:dark){text{fill:#e6edf3}rect.b{fill:#0d1117}}</style>',
    `<rect class="b" width="${WIDTH}" height="${height}"/>`,
    `<text x="16" y="28" class="t">Requests a second, Gamewharf compared</text>`,
    `<rect x="16" y="42" width="12" height="12" fill="${COLOURS.floor}"/><text x="34" y="53">to hand-written node:http and pg</text>`,
    `<rect x="280" y="42" width="12" height="12" fill="${COLOURS.stock}"/><text x="298" y="53">to NestJS as it is usually written</text>`,
    `<text x="${WIDTH - 16}" y="53" text-anchor="end">${escaped(results.machine.processor ?? '')}, Node ${process.versions.node}</text>`,
    ...lines,
    ...bars,
    '</svg>',
    '',
  ].join('\n');
}
