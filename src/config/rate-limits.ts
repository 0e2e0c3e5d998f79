/** So many in so long: all of them at once, or spread; what is spent comes back evenly over the period. */
export interface RateLimit {
  readonly count: number;
  readonly period_ms: number;
}

const DEFAULTS = {
  credential: { count: 600, period_ms: 10_000 },
  address: { count: 600, period_ms: 10_000 },
  misses: { count: 150, period_ms: 10_000 },
  'sign-in': { count: 10, period_ms: 60_000 },
};

// All credentials of a user together have as much as so many of them.
const CREDENTIALS_OF_A_USER = 3;

export type LimitName = keyof typeof DEFAULTS | 'user';
export type RateLimits = Readonly<Record<LimitName, RateLimit>>;

const ONE = /^([a-z-]+)=(\d{1,7})\/(\d{1,5})s$/;

/** What `RATE_LIMIT` says: null when it is off, undefined when it is not understood. */
export function rateLimitsOf(text: string): RateLimits | null | undefined {
  if (text.toLowerCase() === 'off') return null;
  const given: Partial<Record<LimitName, RateLimit>> = {};
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue;
    const [, name = '', count, seconds] = ONE.exec(part) ?? [];
    if (!isLimitName(name) || Number(count) < 1 || Number(seconds) < 1) return undefined;
    given[name] = { count: Number(count), period_ms: Number(seconds) * 1000 };
  }
  const limits = { ...DEFAULTS, ...given };
  const user = { ...limits.credential, count: limits.credential.count * CREDENTIALS_OF_A_USER };
  return { user, ...limits };
}

export const isLimitName = (name: string): name is LimitName =>
  name === 'user' || Object.hasOwn(DEFAULTS, name);
