import { MONTHS } from '../layout/parts';

export const UNITS = { day: 'By day', week: 'By week', month: 'By month' } as const;
type Unit = keyof typeof UNITS;

/** `units`: those that give few enough columns; the first is shown unless another one is asked for. */
type Range = { name: string; units: Unit[] } & (
  | { days: number }
  /** From the first of a month on, this month included. */
  | { months: number }
);

export const RANGES: Readonly<Record<string, Range>> = {
  '30d': { name: 'Last 30 days', units: ['day', 'week'], days: 30 },
  '90d': { name: 'Last 90 days', units: ['day', 'week', 'month'], days: 90 },
  '12m': { name: 'Last 12 months', units: ['month', 'week', 'day'], months: 12 },
  '5y': { name: 'Last 5 years', units: ['month', 'week'], months: 60 },
  all: { name: 'All time', units: ['month'], months: 400 },
};

/** Days are those of UTC, as `YYYY-MM-DD`. */
export interface Period {
  /** A name of RANGES. */
  range: string;
  unit: Unit;
  units: Unit[];
  from: string;
  to: string;
  /** What totals are summed from: a time that begins with a month is a few months instead of many days. */
  summed: 'day' | 'month';
}

export function periodOf(range: string | undefined, unit: string | undefined, now: Date): Period {
  const known = range !== undefined && Object.hasOwn(RANGES, range) ? range : '12m';
  const chosen = RANGES[known]!;
  const { units } = chosen;
  const by = units.find((one) => one === unit) ?? units[0]!;
  const to = shifted(now, 0);
  const sorted = (Object.keys(UNITS) as Unit[]).filter((one) => units.includes(one));
  const first = 'months' in chosen ? firstOfMonth(to, 1 - chosen.months) : shifted(to, 1 - chosen.days);
  const summed = 'months' in chosen || by === 'month' ? 'month' : 'day';
  // Months have no whole weeks: the first week then has the days since the first of the month.
  const from = dayOf(summed === 'month' ? startOf(first, 'month') : startOf(first, by));
  return { range: known, unit: by, units: sorted, from, to: dayOf(to), summed };
}

/** The first days of the columns from one day to another. */
export function columnsOf({ unit, to }: Period, from: string): string[] {
  const columns: string[] = [];
  for (let at = startOf(new Date(from), unit); dayOf(at) <= to; at = after(at, unit)) columns.push(dayOf(at));
  return columns;
}

const dayOf = (date: Date) => date.toISOString().slice(0, 10);

const shifted = (date: Date, days: number) =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + days));

const firstOfMonth = (date: Date, months: number) =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1));

/** Weeks begin on Monday, as PostgreSQL's do. */
function startOf(date: Date, unit: Unit): Date {
  if (unit === 'month') return firstOfMonth(date, 0);
  return unit === 'week' ? shifted(date, -((date.getUTCDay() + 6) % 7)) : date;
}

const after = (date: Date, unit: Unit) =>
  unit === 'month' ? firstOfMonth(date, 1) : shifted(date, unit === 'week' ? 7 : 1);

/** A column's name: `12 Mar 2026`, `Week of 9 Mar 2026`, `Mar 2026`. */
export function nameOf(first: string, unit: Unit): string {
  const [year, month, day] = first.split('-');
  const name = `${MONTHS[Number(month) - 1]} ${year}`;
  if (unit === 'month') return name;
  return `${unit === 'week' ? 'Week of ' : ''}${Number(day)} ${name}`;
}

/** For the axis: `12 Mar`, or `12 Mar 2026` and `Mar 2026` where the axis has several years. */
export function shortNameOf(first: string, { unit, range }: Period): string {
  const [year, month, day] = first.split('-');
  const name = MONTHS[Number(month) - 1]!;
  const withYear = unit === 'month' || 'months' in RANGES[range]! ? `${name} ${year}` : name;
  return unit === 'month' ? withYear : `${Number(day)} ${withYear}`;
}
