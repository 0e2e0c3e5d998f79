/** Prices of the games with recent sales: the guides sell the first one, and need players who don't own it. */
export const PRICES = { 1: 499, 2: 1499 } as const;
/** The second game launched this many days ago. */
export const LAUNCHED_BEFORE = 150;

const RATES: Record<string, number> = { USD: 1, EUR: 1, GBP: 0.85, JPY: 1.5 };

/** The price in minor units of another currency. */
export const fromCents = (cents: number, currency: string) => Math.round(cents * RATES[currency]!);
