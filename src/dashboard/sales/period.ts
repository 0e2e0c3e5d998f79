import { MONTHS } from '../layout/components';
import { addDays, type Dates, dayAfter, daysIn, formatDay, isDay } from '../../platform/formats/days';
import type { ReportPeriod, Unit } from '../../purchases/sales/sales-report.service';

export const UNIT_NAMES: Readonly<Record<Unit, string>> = { day: 'Day', week: 'Week', month: 'Month' };

/** A range of months begins on the first of a month and ends with the current one. */
export const RANGES: Readonly<Record<string, { name: string; days?: number; months?: number }>> = {
  today: { name: 'Today', days: 1 },
  '7d': { name: 'Last 7 days', days: 7 },
  '30d': { name: 'Last 30 days', days: 30 },
  '90d': { name: 'Last 90 days', days: 90 },
  '12m': { name: 'Last 12 months', months: 12 },
  '5y': { name: 'Last 5 years', months: 60 },
  all: { name: 'All time', months: 400 },
  custom: { name: 'Custom dates' },
};

const DAYS_IN: Record<Unit, number> = { day: 1, week: 7, month: 31 };
const MAX_COLUMNS = 400;
/** Longer periods are shown by month unless the URL says otherwise. */
const SHORT = 92;
const MAX_CUSTOM_DAYS = 5 * 366;

/** All time begins with the month of the first sale, and has no previous period. */
export interface Period extends ReportPeriod {
  range: string;
  units: Unit[];
  /** The reason why the dates in the URL can't be shown. The period is then the default one. */
  problem?: string;
}

type PeriodQuery = Partial<Record<'range' | 'from' | 'to' | 'by', string>>;

/** An unknown range is replaced by the default one. */
export function parsePeriod(
  { range, from, to, by }: PeriodQuery,
  now: Date,
  defaultRange: '30d' | 'all' = '30d',
): Period {
  const today = formatDay(now);
  if (range !== 'custom')
    return period(range !== undefined && Object.hasOwn(RANGES, range) ? range : defaultRange, by, today);
  const dates = { from: from ?? '', to: to && to < today ? to : today };
  const problem = findProblem(dates);
  return problem === undefined
    ? complete('custom', by, today, dates)
    : { ...period(defaultRange, by, today), range: 'custom', problem };
}

function findProblem({ from, to }: Dates): string | undefined {
  if (!isDay(from) || !isDay(to)) return 'Enter a date such as 2026-01-31.';
  if (from > to) return 'The first day must not be after the last day, or in the future.';
  return daysIn({ from, to }) > MAX_CUSTOM_DAYS ? 'Choose a period of at most five years.' : undefined;
}

function period(range: string, by: string | undefined, today: string): Period {
  const { days = 0, months } = RANGES[range]!;
  const from = months === undefined ? addDays(today, 1 - days) : firstOfMonth(today, 1 - months);
  return complete(range, by, today, { from, to: today });
}

function complete(range: string, by: string | undefined, today: string, dates: Dates): Period {
  const { from, to } = dates;
  const days = daysIn(dates);
  const units = (Object.keys(UNIT_NAMES) as Unit[]).filter(
    (unit) => days / DAYS_IN[unit] <= MAX_COLUMNS && (unit === 'day' || days > DAYS_IN[unit]),
  );
  const unit = units.find((one) => one === by) ?? (days > SHORT ? 'month' : 'day');
  const isWholeMonths = from.endsWith('-01') && (to === today || dayAfter(to).endsWith('-01'));
  return {
    range,
    unit,
    units,
    ...dates,
    summed: isWholeMonths ? 'month' : 'day',
    ...(range !== 'all' && { previous: { from: addDays(from, -days), to: addDays(from, -1) } }),
  };
}

/** The first days of the columns. The first one may begin before the first day. */
export function listChartColumns({ unit, from, to }: Period): string[] {
  const columns: string[] = [];
  for (let at = findStart(from, unit); at <= to; at = after(at, unit)) columns.push(at);
  return columns;
}

function firstOfMonth(day: string, months: number): string {
  const date = new Date(day);
  return formatDay(new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1)));
}

/** Weeks begin on Monday, as PostgreSQL's do. */
function findStart(day: string, unit: Unit): string {
  if (unit === 'month') return firstOfMonth(day, 0);
  return unit === 'week' ? addDays(day, -((new Date(day).getUTCDay() + 6) % 7)) : day;
}

const after = (day: string, unit: Unit) =>
  unit === 'month' ? firstOfMonth(day, 1) : addDays(day, DAYS_IN[unit]);

/** `12 Mar 2026`; for a week `Week of 9 Mar 2026`, for a month `Mar 2026`. */
export function formatColumn(first: string, unit: Unit): string {
  const [year, month, day] = first.split('-');
  const name = `${MONTHS[Number(month) - 1]} ${year}`;
  if (unit === 'month') return name;
  return `${unit === 'week' ? 'Week of ' : ''}${Number(day)} ${name}`;
}

/** Labels of the axis: `12 Mar`, or with several years `12 Mar 2026` and `Mar 2026`. */
export function formatShortColumn(first: string, { unit, from, to }: Period): string {
  const name = formatColumn(first, unit).replace('Week of ', '');
  return unit === 'month' || from.slice(0, 4) !== to.slice(0, 4) ? name : name.slice(0, -5);
}
