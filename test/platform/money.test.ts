import fc from 'fast-check';
import { CURRENCIES, formatMoney, minorUnits, plainMoney } from '../../src/platform/formats/money';

test.each([
  [500, 'USD', '$5.00'],
  [500, 'EUR', '€5.00'],
  [500, 'GBP', '£5.00'],
  [500, 'JPY', '¥500'],
  [500, 'KRW', '₩500'],
  [0, 'USD', '$0.00'],
  [5, 'USD', '$0.05'],
  [0, 'JPY', '¥0'],
  [5, 'KWD', 'KWD 0.005'],
  [1234567, 'KWD', 'KWD 1,234.567'],
  [12345, 'CLF', 'CLF 1.2345'],
  [500, 'CHF', 'CHF 5.00'],
  [500, 'CAD', 'CA$5.00'],
  // Node's tables have no fraction for them, but ISO 4217 has two digits.
  [500, 'HUF', 'HUF 5.00'],
  [500, 'IDR', 'IDR 5.00'],
  [500, 'ZZZ', 'ZZZ 5.00'],
  [123456789, 'USD', '$1,234,567.89'],
  // No digit is lost where a division would round.
  [9007199254740991, 'USD', '$90,071,992,547,409.91'],
  [9007199254740990, 'USD', '$90,071,992,547,409.90'],
  [9007199254740991, 'KWD', 'KWD 9,007,199,254,740.991'],
  [9007199254740991, 'JPY', '¥9,007,199,254,740,991'],
])('formats %p in %s as %s', (amount, currency, text) => {
  // English puts a no-break space between a code and a number.
  expect(formatMoney(amount, currency)).toBe(text.replace(' ', '\u00a0'));
  expect(plainMoney(amount, currency)).toBe(text.replace(/[^\d.]/g, ''));
});

test('lists the currencies of ISO 4217, once and in order', () => {
  const codes = CURRENCIES.filter((code) => /^[A-Z]{3}$/.test(code));
  expect(CURRENCIES).toEqual([...new Set(codes)].toSorted());
  expect(CURRENCIES).toHaveLength(160);
  const withUnit = (unit: number) => CURRENCIES.filter((code) => minorUnits(code) === unit).join(' ');
  expect([1, 1000, 10_000].map(withUnit)).toEqual([
    'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
    'BHD IQD JOD KWD LYD OMR TND',
    'CLF UYW',
  ]);
});

test.each([
  ['USD', 2, '$'],
  ['JPY', 0, '¥'],
  ['KWD', 3, 'KWD\u00a0'],
])('keeps every digit of any amount in %s', (currency, digits, sign) => {
  const amounts = fc.oneof(
    fc.nat(),
    fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    fc.integer({ min: -1000, max: 1000 }).map((near) => 1e13 + near),
  );
  fc.assert(
    fc.property(amounts, (amount) => {
      const text = String(amount).padStart(digits + 1, '0');
      const [whole, rest] = [text.slice(0, text.length - digits), text.slice(text.length - digits)];
      const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
      expect(formatMoney(amount, currency)).toBe(`${sign}${grouped}${digits === 0 ? '' : `.${rest}`}`);
    }),
    { numRuns: 5000 },
  );
});

test('formats like Intl, digit by digit', () => {
  const currencies = ['USD', 'EUR', 'BRL', 'CHF', 'INR', 'XAF', 'TWD', 'QQQ'];
  fc.assert(
    fc.property(fc.constantFrom(...currencies), fc.maxSafeNat(), (currency, amount) => {
      const [digits, text] =
        currency === 'XAF'
          ? [0, String(amount)]
          : [2, `${Math.floor(amount / 100)}.${String(amount).slice(-2)}`];
      fc.pre(digits === 0 || amount >= 100);
      const intl = new Intl.NumberFormat('en-US', {
        style: 'currency',
        currency,
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
      });
      expect(formatMoney(amount, currency)).toBe(intl.format(text as `${number}`));
    }),
    { numRuns: 1000 },
  );
});

describe('formats', () => {
  let made: jest.SpyInstance;
  beforeEach(() => (made = jest.spyOn(Intl, 'NumberFormat')));
  afterEach(() => made.mockRestore());

  test('are created once per currency, up to their limit', () => {
    const currencies = 'ABCDEFGHIJKLMNOP'.split('').map((letter) => `QA${letter}`);
    for (const currency of [...currencies, ...currencies]) formatMoney(1, currency);
    expect(made).toHaveBeenCalledTimes(currencies.length);
  });

  test('are evicted beyond their limit', () => {
    const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
    const currencies = letters.flatMap((a) => letters.map((b) => `R${a}${b}`));
    for (const currency of currencies) formatMoney(1, currency);
    made.mockClear();
    expect(formatMoney(500, currencies[0]!)).toBe('RAA\u00a05.00');
    expect(made).toHaveBeenCalledTimes(1);
  });
});
