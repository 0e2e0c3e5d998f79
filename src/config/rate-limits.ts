/** So many in so long: all of them at once, or spread; what is spent comes back evenly over the period. */
export interface RateLimit {
  readonly count: number;
  readonly period_ms: number;
}

export type RateLimits = Readonly<Record<keyof typeof DEFAULTS, RateLimit>>;

const DEFAULTS = {
  credential: { count: 600, period_ms: 10_000 },
  address: { count: 600, period_ms: 10_000 },
  misses: { count: 150, period_ms: 10_000 },
  'sign-in': { count: 10, period_ms: 60_000 },
};

const ONE = /^([a-z-]+)=(\d{1,7})\/(\d{1,5})s$/;

/** What `RATE_LIMIT` says: null when it is off, undefined when it is not understood. */
export function rateLimitsOf(text: string): RateLimits | null | undefined {
  if (text.toLowerCase() === 'off') return null;
  const limits: Record<string, RateLimit> = { ...DEFAULTS };
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue;
    const [, name = '', count, seconds] = ONE.exec(part) ?? [];
    if (!Object.hasOwn(DEFAULTS, name) || Number(count) < 1 || Number(seconds) < 1) return undefined;
    limits[name] = { count: Number(count), period_ms: Number(seconds) * 1000 };
  }
  return limits as RateLimits;
}
