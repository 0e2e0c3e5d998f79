// ISO 4217's minor units. ICU's table differs (0 for HUF, IDR and COP) and changes between Node releases, which would change
// the value of stored amounts.
const DIGITS: Record<string, number> = Object.fromEntries([
  ...'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'
    .split(' ')
    .map((code) => [code, 0]),
  ...'BHD IQD JOD KWD LYD OMR TND'.split(' ').map((code) => [code, 3]),
  ...'CLF UYW'.split(' ').map((code) => [code, 4]),
]);

/** The format of a currency's amounts. */
interface Format {
  prefix: string;
  digits: number;
  /** Minor units in one major unit. */
  unit: number;
}

const formats = new Map<string, Format>();
const MAX_FORMATS = 500;

// Cached: Intl takes longer for one amount than the rest of a game's answer.
function formatOf(currency: string): Format {
  let known = formats.get(currency);
  if (!known) {
    const digits = DIGITS[currency] ?? 2;
    const parts = new Intl.NumberFormat('en-US', { style: 'currency', currency }).formatToParts(1);
    const before = parts.slice(
      0,
      parts.findIndex(({ type }) => type === 'integer'),
    );
    known = { prefix: before.map(({ value }) => value).join(''), digits, unit: 10 ** digits };
    if (formats.size === MAX_FORMATS) formats.clear();
    formats.set(currency, known);
  }
  return known;
}

/** An amount of minor units in en-US: 500 in USD is $5.00, in JPY ¥500. */
export function formatMoney(amount: number, currency: string): string {
  const { prefix, digits, unit } = formatOf(currency);
  const minor = amount % unit;
  const whole = grouped((amount - minor) / unit);
  return digits === 0 ? prefix + whole : `${prefix}${whole}.${String(minor).padStart(digits, '0')}`;
}

function grouped(whole: number): string {
  if (whole < 1000) return String(whole);
  return `${grouped(Math.floor(whole / 1000))},${String(whole % 1000).padStart(3, '0')}`;
}
