import { DAY_MS } from '../../platform/formats/durations';

/** Days from the oldest record to the day on which the store is generated. */
export const STORE_DAYS = 1000;
/** The time of the examples in the documentation. */
export const EXAMPLE_TIME = Date.UTC(2026, 2, 1);

/** Times of a store that is generated at `now`, by day. Day STORE_DAYS is the current one, of which only the start is used. */
export const createCalendar = (now: number) => {
  const start = Math.floor(now / DAY_MS) * DAY_MS - STORE_DAYS * DAY_MS;
  return (day: number, seconds = 0) =>
    new Date(start + day * DAY_MS + seconds * 1000).toISOString().replace('.000', '');
};

export type Calendar = ReturnType<typeof createCalendar>;
