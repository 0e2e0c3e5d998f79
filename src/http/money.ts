// ISO 4217's minor units. ICU's own table has other numbers (0 for HUF, IDR and COP) and changes between Node releases,
// and an amount that is stored in minor units must not change its value with them.
const DIGITS: Record<string, number> = Object.fromEntries([
  ...'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'
    .split(' ')
    .map((code) => [code, 0]),
  ...'BHD IQD JOD KWD LYD OMR TND'.split(' ').map((code) => [code, 3]),
  ...'CLF UYW'.split(' ').map((code) => [code, 4]),
]);

const formats = new Map<string, { digits: number; format: Intl.NumberFormat }>();
const MAX_FORMATS = 500;

function formatOf(currency: string) {
  let known = formats.get(currency);
  if (!known) {
    const digits = DIGITS[currency] ?? 2;
    const format = new Intl.NumberFormat('en-US', {
      style: 'currency',
      currency,
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    });
    known = { digits, format };
    if (formats.size === MAX_FORMATS) formats.clear();
    formats.set(currency, known);
  }
  return known;
}

// Up to here the nearest double of amount / 100 is nearer than half a minor unit.
const EXACT = 1e13;

/** Minor units as an American reader writes them: 500 in USD is $5.00, in JPY ¥500. */
export function formatMoney(amount: number, currency: string): string {
  const { digits, format } = formatOf(currency);
  if (amount <= EXACT) return format.format(amount / 10 ** digits);
  const text = String(amount).padStart(digits + 1, '0');
  // As decimal text, which Intl formats digit for digit and in twice the time.
  const decimal = digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
  return format.format(decimal as `${number}`);
}
