import { DAY_MS } from './durations';

/** Days are those of UTC, as `YYYY-MM-DD`. */
export interface Dates {
  from: string;
  to: string;
}

export const formatDay = (date: Date) => date.toISOString().slice(0, 10);

/** Whether a text is a day that exists, such as 2024-02-29. */
export const isDay = (text = ''): text is string =>
  /^(19|2\d)\d\d-\d\d-\d\d$/.test(text) &&
  !Number.isNaN(Date.parse(text)) &&
  formatDay(new Date(text)) === text;

export const addDays = (day: string, days: number) => formatDay(new Date(Date.parse(day) + days * DAY_MS));

export const dayAfter = (day: string) => addDays(day, 1);

export const daysIn = ({ from, to }: Dates) => (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
