import { formatMoney, minorUnits } from '../../platform/formats/money';
import { html, type Html } from '../layout/html';
import { formatCount } from '../layout/components';

/** The values of one day, week or month. */
export interface Bar {
  name: string;
  short: string;
  purchases: number;
  amount: number;
  /** The revenue of the previous period, if there is one. */
  before?: number;
}

const REVENUE = { top: 34, height: 170 };
const SALES = { top: 248, height: 70 };
const HEIGHT = 344;
const LABELS = 5;
const LETTER = 7.4;

/** The vertical axis of one row of bars. */
interface Scale {
  /** The values of its lines, from 0 to the largest value or above. */
  ticks: number[];
  toY: (value: number) => number;
}

/** A step is 1, 2 or 5 times a power of ten, so that about three steps reach the largest value. */
function chooseScale(values: number[], { top, height }: typeof REVENUE, smallestStep: number): Scale {
  const largest = Math.max(...values);
  const third = Math.max(largest / 3, smallestStep);
  const power = 10 ** Math.floor(Math.log10(third));
  const step = Math.max([1, 2, 5, 10].find((factor) => factor * power >= third)! * power, smallestStep);
  const count = Math.max(1, Math.ceil(largest / step));
  const ticks = Array.from({ length: count + 1 }, (_, i) => i * step);
  return { ticks, toY: (value) => top + height - (value / (count * step)) * height };
}

/**
 * Two rows of bars over the same period: the revenue, with a line of the previous period, and the number of sales.
 * Horizontal positions are percentages, so that text keeps its size on a phone. The title of a column is its tooltip; a
 * script replaces it with one that follows the pointer and the focus.
 */
export function chart(columns: Bar[], currency: string, label: string, previous?: string): Html {
  const revenue = chooseScale(
    columns.flatMap(({ amount, before = 0 }) => [amount, before]),
    REVENUE,
    minorUnits(currency),
  );
  const sales = chooseScale(
    columns.map(({ purchases }) => purchases),
    SALES,
    1,
  );
  const money = (amount: number) => formatMoney(amount, currency).replace(/\.0+$/, '');
  const ticks = [
    ...revenue.ticks.map((value) => [revenue.toY(value), money(value)] as const),
    ...sales.ticks.map((value) => [sales.toY(value), formatCount(value)] as const),
  ];
  const width = Math.ceil(Math.max(...ticks.map(([, text]) => text.length)) * LETTER) + 10;
  return html`<div class="chart">
    <svg width="${width}" height="${HEIGHT}" aria-hidden="true">
      ${ticks.map(([y, text]) => html`<text x="${width - 8}" y="${y + 4}" text-anchor="end">${text}</text>`)}
    </svg>
    <div class="plot">
      <svg width="100%" height="${HEIGHT}" role="group" aria-label="${label}">
        ${ticks.map(([y]) => html`<line x1="0" x2="100%" y1="${y}" y2="${y}" />`)}
        <text x="0" y="14" class="head">Revenue</text>
        ${previous !== undefined && legend(previous)}
        <text x="0" y="${SALES.top - 10}" class="head">Sales</text>
        ${columns.map((column, i) => bars(column, i, columns.length, currency, revenue, sales))}
        ${previous !== undefined && drawLine(columns, revenue)} ${labels(columns)}
      </svg>
      <p class="tip" aria-hidden="true" hidden></p>
    </div>
  </div>`;
}

const legend = (previous: string): Html =>
  html`<text class="before" x="100%" y="14" text-anchor="end">- - - ${previous}</text>`;

/** A line from the middle of each column to that of the next. */
const drawLine = (columns: Bar[], { toY }: Scale): Html[] => {
  const columnCenter = (i: number) => percent((i + 0.5) / columns.length);
  const y = ({ before = 0 }: Bar) => toY(before).toFixed(1);
  return columns
    .slice(1)
    .map(
      (column, i) =>
        html`<line
          class="before"
          x1="${columnCenter(i)}"
          x2="${columnCenter(i + 1)}"
          y1="${y(columns[i]!)}"
          y2="${y(column)}"
        />`,
    );
};

const percent = (share: number) => `${Number((share * 100).toFixed(3))}%`;

function bars(
  { name, amount, purchases, before }: Bar,
  i: number,
  count: number,
  currency: string,
  revenue: Scale,
  sales: Scale,
): Html {
  const gap = count > 100 ? 0 : 0.15;
  const [x, width] = [percent((i + gap) / count), percent((1 - 2 * gap) / count)];
  const words =
    `${name}: ${formatMoney(amount, currency)}, ${formatSales(purchases)}` +
    (!before ? '' : `; before: ${formatMoney(before, currency)}`);
  const bar = (kind: string, value: number, { toY }: Scale) => {
    // The minimum height keeps a bar visible.
    const height = Math.max(toY(0) - toY(value), 1.5);
    return (
      value > 0 &&
      html`<rect
        class="${kind}"
        x="${x}"
        width="${width}"
        y="${(toY(0) - height).toFixed(1)}"
        height="${height.toFixed(1)}"
      />`
    );
  };
  return html`<g class="column" tabindex="0" role="img" aria-label="${words}">
    <title>${words}</title>
    <rect
      class="hit"
      x="${percent(i / count)}"
      width="${percent(1 / count)}"
      y="22"
      height="${HEIGHT - 44}"
    />
    ${bar('revenue', amount, revenue)}${bar('count', purchases, sales)}
  </g>`;
}

/** Evenly spaced, and away from both ends, so that no label is cut off. */
function labels(columns: Bar[]): Html[] {
  const step = Math.ceil(columns.length / LABELS);
  const first = Math.floor(((columns.length - 1) % step) / 2);
  const labeled = columns.map((column, i) => ({ ...column, i })).filter(({ i }) => i % step === first);
  // Only every second label fits on a phone: of five, the second and the fourth, which are the farthest from both ends.
  const wide = labeled.length > 3 ? 0 : 1;
  return labeled.map(
    ({ short, i }, n) =>
      html`<text${n % 2 === wide && html` class="wide"`} x="${percent((i + 0.5) / columns.length)}" y="${HEIGHT - 6}" text-anchor="middle">
      ${short}
    </text>`,
  );
}

/** A bar whose length is the value's share of the largest one. The value is next to it. */
export const shareBar = (value: number, largest: number): Html =>
  html`<svg class="share" width="100%" height="6" aria-hidden="true">
    <rect width="${percent(largest > 0 ? value / largest : 0)}" height="6" rx="3" />
  </svg>`;

export const formatSales = (count: number): string =>
  count === 1 ? '1 sale' : `${formatCount(count)} sales`;
