// ISO 4217's minor units. ICU's table differs (0 for HUF, IDR and COP) and changes between Node releases,
// which would change the value of stored amounts.
const DIGITS: Record<string, number> = Object.fromEntries([
  ...'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'
    .split(' ')
    .map((code) => [code, 0]),
  ...'BHD IQD JOD KWD LYD OMR TND'.split(' ').map((code) => [code, 3]),
  ...'CLF UYW'.split(' ').map((code) => [code, 4]),
]);

/** ISO 4217's codes of currencies for payments. */
export const CURRENCIES: readonly string[] = (
  'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLF CLP CNY ' +
  'COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD ' +
  'IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK ' +
  'MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS ' +
  'SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYI UYU UYW UZS VED VES VND VUV WST XAF XCD XCG XOF ' +
  'XPF YER ZAR ZMW ZWG'
).split(' ');

/** Minor units in one major unit: 100 cents. */
export const minorUnits = (currency: string) => findFormat(currency).unit;

/** The format of a currency's amounts. */
interface Format {
  prefix: string;
  digits: number;
  /** Minor units in one major unit. */
  unit: number;
}

const formats = new Map<string, Format>();
const MAX_FORMATS = 500;

// Cached: Intl takes longer for one amount than the rest of a game's response.
function findFormat(currency: string): Format {
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

/** Minor units: 499 for `4.99` dollars. Undefined for other texts, and for fractions that the currency lacks. */
export function parseMoney(text: string, currency: string): number | undefined {
  const { digits, unit } = findFormat(currency);
  const [, whole, fraction = ''] = /^(\d{1,12})(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined || fraction.length > digits) return undefined;
  const amount = Number(whole) * unit + Number(fraction.padEnd(digits, '0'));
  return Number.isSafeInteger(amount) ? amount : undefined;
}

/** An amount of minor units in en-US: 500 in USD is $5.00, in JPY ¥500. */
export function formatMoney(amount: number, currency: string): string {
  const { prefix, digits, unit } = findFormat(currency);
  const minor = amount % unit;
  const whole = grouped((amount - minor) / unit);
  return digits === 0 ? prefix + whole : `${prefix}${whole}.${String(minor).padStart(digits, '0')}`;
}

/** An amount of minor units as a plain number: 500 in USD is 5.00, in JPY 500. */
export function plainMoney(amount: number, currency: string): string {
  const { digits, unit } = findFormat(currency);
  const minor = amount % unit;
  const whole = (amount - minor) / unit;
  return digits === 0 ? String(whole) : `${whole}.${String(minor).padStart(digits, '0')}`;
}

function grouped(whole: number): string {
  if (whole < 1000) return String(whole);
  return `${grouped(Math.floor(whole / 1000))},${String(whole % 1000).padStart(3, '0')}`;
}
