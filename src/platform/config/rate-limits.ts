/** `count` requests per period, which may be sent at once; the limit refills evenly. */
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

// A user's limit is this multiple of a credential's limit.
const CREDENTIALS_PER_USER = 3;

type LimitName = keyof typeof DEFAULTS | 'user';
export type RateLimits = Readonly<Record<LimitName, RateLimit>>;

const SETTING = /^([a-z-]+)=(\d{1,7})\/(\d{1,5})s$/;

/** Parses RATE_LIMIT; null: off, undefined: invalid. */
export function parseRateLimits(text: string): RateLimits | null | undefined {
  if (text.toLowerCase() === 'off') return null;
  const configured: Partial<Record<LimitName, RateLimit>> = {};
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue;
    const [, name = '', count, seconds] = SETTING.exec(part) ?? [];
    if (!isLimitName(name) || Number(count) < 1 || Number(seconds) < 1) return undefined;
    configured[name] = { count: Number(count), period_ms: Number(seconds) * 1000 };
  }
  const limits = { ...DEFAULTS, ...configured };
  const user = { ...limits.credential, count: limits.credential.count * CREDENTIALS_PER_USER };
  return { user, ...limits };
}

const isLimitName = (name: string): name is LimitName => name === 'user' || Object.hasOwn(DEFAULTS, name);
