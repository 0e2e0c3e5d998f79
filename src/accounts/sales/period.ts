export const RANGES = {
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
  '12m': 'Last 12 months',
  '5y': 'Last 5 years',
  all: 'All time',
} as const;
type Range = keyof typeof RANGES;

export const UNITS = { day: 'By day', week: 'By week', month: 'By month' } as const;
type Unit = keyof typeof UNITS;

/** The units in which a range has few enough columns; the first is what is shown unless another one is asked for. */
const UNITS_OF: Record<Range, Unit[]> = {
  '30d': ['day', 'week'],
  '90d': ['day', 'week', 'month'],
  '12m': ['month', 'week', 'day'],
  '5y': ['month', 'week'],
  all: ['month'],
};
/** Those that begin with the first of a month. */
const WHOLE_MONTHS: Range[] = ['12m', '5y', 'all'];
const MAX_MONTHS = 400;

/** Days are those of UTC, as `YYYY-MM-DD`. */
export interface Period {
  range: Range;
  unit: Unit;
  units: Unit[];
  from: string;
  to: string;
  /** What totals are summed from: a time that begins with a month is a few months instead of many days. */
  summed: 'day' | 'month';
}

export function periodOf(range: string | undefined, unit: string | undefined, now = new Date()): Period {
  const known = range !== undefined && range in RANGES ? (range as Range) : '12m';
  const units = UNITS_OF[known];
  const by = units.find((one) => one === unit) ?? units[0]!;
  const to = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()));
  const sorted = (Object.keys(UNITS) as Unit[]).filter((one) => units.includes(one));
  const first = firstOf(known, to);
  const summed = WHOLE_MONTHS.includes(known) || by === 'month' ? 'month' : 'day';
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

const shifted = (date: Date, months: number, days: number) =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, date.getUTCDate() + days));

const firstOfMonth = (date: Date, months: number) =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1));

function firstOf(range: Range, to: Date): Date {
  switch (range) {
    case '30d':
      return shifted(to, 0, -29);
    case '90d':
      return shifted(to, 0, -89);
    case '12m':
      return firstOfMonth(to, -11);
    case '5y':
      return firstOfMonth(to, -59);
    case 'all':
      return firstOfMonth(to, 1 - MAX_MONTHS);
  }
}

/** Weeks begin on Monday, as PostgreSQL's do. */
function startOf(date: Date, unit: Unit): Date {
  if (unit === 'month') return firstOfMonth(date, 0);
  return unit === 'week' ? shifted(date, 0, -((date.getUTCDay() + 6) % 7)) : date;
}

const after = (date: Date, unit: Unit) =>
  unit === 'month' ? firstOfMonth(date, 1) : shifted(date, 0, unit === 'week' ? 7 : 1);

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

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
  const withYear = unit === 'month' || WHOLE_MONTHS.includes(range) ? `${name} ${year}` : name;
  return unit === 'month' ? withYear : `${Number(day)} ${withYear}`;
}
