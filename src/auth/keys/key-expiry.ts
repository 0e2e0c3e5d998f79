import { isTimestamp } from '../../platform/formats/timestamps';
import { DAY_MS } from '../../platform/formats/durations';

export const MAX_DAYS = 3650;

export const EXPIRY_RULE = `Use “never”, a number of days up to ${MAX_DAYS}, or a future date as YYYY-MM-DD.`;

/** Parses an expiry: `never`, a number of days, or the last day in UTC. Null: never; undefined: invalid. */
export function parseKeyExpiry(text: string, now: number): string | null | undefined {
  if (text === 'never') return null;
  const ends = /^[1-9]\d{0,4}$/.test(text) ? now + Number(text) * DAY_MS : endOfDay(text);
  return ends > now && ends <= now + MAX_DAYS * DAY_MS ? new Date(ends).toISOString() : undefined;
}

/** Returns NaN if the day doesn't exist. */
const endOfDay = (date: string): number =>
  isTimestamp(`${date}T23:59:59Z`) ? Date.parse(`${date}T23:59:59Z`) : NaN;
