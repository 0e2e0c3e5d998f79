import fc, { type Arbitrary } from 'fast-check';
import type { Encoding } from '../ask';
import { HOSTILE_HTML } from '../values';

export type Place = Encoding | 'query';

interface Common {
  /** 1 to 3. */
  user: number;
  place: Place;
  /** Sent twice, with an Idempotency-Key. */
  retried: boolean;
  /** Which replica is asked. */
  replica?: number;
}

export type Write =
  { do: 'add'; game: number } | { do: 'remove'; game: number } | { do: 'order'; ids: number[] };

export type WrongAsking = 'client' | 'address' | 'scope' | 'response' | 'challenge' | 'method';
export type WrongProof = 'client' | 'stranger' | 'verifier' | 'no verifier' | 'address';

/** Collections, keys and tokens are named by the place that they have among those made so far; games by their number. */
export type Step = Common &
  (
    | {
        do: 'create';
        title?: string;
        private?: boolean;
        description?: string;
        layout?: 'grid' | 'list';
        game?: number;
        blurb?: string;
      }
    | {
        do: 'update';
        collection: number;
        title?: string;
        private?: boolean;
        description?: string;
        layout?: 'grid' | 'list';
        on_profile?: boolean;
      }
    | { do: 'resubmit' | 'delete' | 'read'; collection: number }
    | { do: 'show'; collection: number; on: boolean }
    | { do: 'add'; collection: number; game: number; blurb?: string }
    | { do: 'remove'; collection: number; game: number }
    | { do: 'note'; collection: number; game: number; blurb?: string }
    | { do: 'order'; collection: number; ids: number[]; removed?: number[] }
    | { do: 'entries'; collection: number; page?: number; per_page?: number }
    | { do: 'list'; game?: number }
    | { do: 'burst'; collection: number; writes: (Write & { user: number })[] }
    | { do: 'make key' | 'profile' | 'games' }
    | { do: 'revoke key' | 'use key'; key: number }
    | { do: 'make token'; key: number; game: number }
    | { do: 'use token' | 'use access'; token: number }
    | {
        do: 'ask access';
        scope: string;
        state: string;
        decision: 'allow' | 'deny' | 'forged';
        wrong?: WrongAsking;
      }
    | { do: 'exchange'; code: number; wrong?: WrongProof }
    | { do: 'refresh'; token: number; scope?: string; wrong?: 'client' }
    | { do: 'revoke access'; of: number }
    | { do: 'settle' }
    | { do: 'sell'; game: number; buyer: number; amount: number; currency: 'USD' | 'JPY' | 'KWD' }
    | { do: 'give key'; game: number; to: number; revoked: boolean }
    | {
        do: 'look up';
        game: number;
        buyer: number;
        by: 'email' | 'user_id';
        what: 'purchases' | 'download_keys';
      }
  );

export type Did = Step['do'];
export type Of<D extends Did> = Step & { do: D };

const user = fc.constantFrom(1, 2, 3);
const game = fc.integer({ min: 1, max: 8 });
// Those that are there and were just made are the likely ones; 9 and more are none.
const collection = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 4 }), weight: 9 },
  fc.integer({ min: 5, max: 12 }),
);
const some = <T>(arbitrary: Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const title = fc.oneof(
  fc.constantFrom('', '  ', ' Trimmed ', 'T'.repeat(60), '😀'.repeat(60), "Quote ' and <b>", 'ß ﬀ İ'),
  fc.string({ unit: 'grapheme', maxLength: 8 }).filter((text) => !text.includes('\0')),
);
const html = fc.oneof(
  fc.constantFrom('', ' ', ' plain ', 'two\nlines'),
  fc.string({ unit: 'grapheme-ascii', maxLength: 30 }),
  fc.constantFrom(...HOSTILE_HTML),
);
const layout = fc.constantFrom('grid' as const, 'list' as const);
const ids = fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { maxLength: 6 });
const index = fc.nat({ max: 5 });
const recent = fc.oneof({ arbitrary: fc.nat({ max: 1 }), weight: 3 }, index);

const write = fc.oneof(
  fc.record({ do: fc.constant('add' as const), game, user }),
  fc.record({ do: fc.constant('remove' as const), game, user }),
  fc.record({ do: fc.constant('order' as const), ids, user }),
);

type Weighted = [weight: number, Arbitrary<object>];

const seldom = <T extends string>(...all: T[]) =>
  fc.option(fc.constantFrom(...all), { nil: undefined, freq: 4 });

const accessKinds: Weighted[] = [
  [
    6,
    fc.record({
      do: fc.constant('ask access'),
      scope: fc.constantFrom(
        'profile:me',
        'profile',
        'collection:view profile:me',
        'collection',
        'profile:me profile:me',
      ),
      state: fc.constantFrom('plain', 's t&a=te', '"><script>x</script>', 'é😀'),
      decision: fc.constantFrom('allow', 'allow', 'allow', 'allow', 'deny', 'forged'),
      wrong: seldom('client', 'address', 'scope', 'response', 'challenge', 'method'),
    }),
  ],
  [
    6,
    fc.record({
      do: fc.constant('exchange'),
      code: recent,
      wrong: seldom('client', 'stranger', 'verifier', 'no verifier', 'address'),
    }),
  ],
  [
    5,
    fc.record({
      do: fc.constant('refresh'),
      token: recent,
      scope: seldom('profile:me', 'profile', 'collection:view', 'profile:me collection:view'),
      wrong: seldom('client'),
    }),
  ],
  [6, fc.record({ do: fc.constant('use access'), token: recent })],
  [2, fc.record({ do: fc.constant('revoke access'), of: fc.constantFrom(1, 2) })],
  [1, fc.record({ do: fc.constant('settle') })],
];

const kinds: Weighted[] = [
  [
    12,
    fc.record({
      do: fc.constant('create'),
      title: some(title),
      private: some(fc.boolean()),
      description: some(html),
      layout: some(layout),
      game: some(game),
      blurb: some(html),
    }),
  ],
  [
    10,
    fc.record({
      do: fc.constant('update'),
      collection,
      title: some(title.map((text) => text.trim() || 'Title')),
      private: some(fc.boolean()),
      description: some(html),
      layout: some(layout),
      on_profile: some(fc.boolean()),
    }),
  ],
  [4, fc.record({ do: fc.constantFrom('resubmit', 'delete'), collection })],
  [8, fc.record({ do: fc.constant('read'), collection })],
  [1, fc.record({ do: fc.constant('show'), collection, on: fc.boolean() })],
  [24, fc.record({ do: fc.constant('add'), collection, game, blurb: some(html) })],
  [8, fc.record({ do: fc.constant('remove'), collection, game })],
  [6, fc.record({ do: fc.constant('note'), collection, game, blurb: some(html) })],
  [12, fc.record({ do: fc.constant('order'), collection, ids, removed: some(ids) })],
  [
    12,
    fc.record({
      do: fc.constant('entries'),
      collection,
      page: some(fc.integer({ min: 1, max: 4 })),
      per_page: some(fc.integer({ min: 1, max: 5 })),
    }),
  ],
  [6, fc.record({ do: fc.constant('list'), game: some(game) })],
  [
    3,
    fc.record({
      do: fc.constant('burst'),
      collection,
      writes: fc.array(write, { minLength: 2, maxLength: 6 }),
    }),
  ],
  [3, fc.record({ do: fc.constant('make key') })],
  [4, fc.record({ do: fc.constantFrom('profile', 'games') })],
  [3, fc.record({ do: fc.constant('revoke key'), key: index })],
  [3, fc.record({ do: fc.constant('use key'), key: index })],
  [3, fc.record({ do: fc.constant('make token'), key: index, game })],
  [3, fc.record({ do: fc.constant('use token'), token: index })],
  [
    0.4,
    fc.record({
      do: fc.constant('sell'),
      game: fc.constantFrom(1, 3, 5),
      buyer: user,
      amount: fc.constantFrom(0, 1, 99, 1000, 123456789),
      currency: fc.constantFrom('USD', 'JPY', 'KWD'),
    }),
  ],
  [
    0.4,
    fc.record({ do: fc.constant('give key'), game: fc.constantFrom(1, 5), to: user, revoked: fc.boolean() }),
  ],
  [
    6,
    fc.record({
      do: fc.constant('look up'),
      game,
      buyer: user,
      by: fc.constantFrom('email', 'user_id'),
      what: fc.constantFrom('purchases', 'download_keys'),
    }),
  ],
];

const common = fc.record({
  user,
  place: fc.constantFrom<Place>('form', 'json', 'query', 'multipart'),
  retried: fc.integer({ min: 0, max: 11 }).map((n) => n === 11),
  replica: fc.constantFrom(0, 1),
});

const oneOfAll = (weighted: Weighted[]): Arbitrary<object> =>
  fc.oneof(...weighted.map(([weight, arbitrary]) => ({ arbitrary, weight: weight * 5 })));

const stepsOf = (own: Arbitrary<object>): Arbitrary<Step[]> => {
  const step = fc.tuple(common, own).map(([shared, one]) => ({ ...shared, ...one }) as Step);
  return fc.array(step, { minLength: 1, maxLength: 40, size: 'max' });
};

const anyKind = oneOfAll(kinds);

/** Of everything; and mostly of access that is given and taken back, because its steps need one another. */
export const steps: Arbitrary<Step[]> = fc.oneof(
  { arbitrary: stepsOf(anyKind), weight: 4 },
  { arbitrary: stepsOf(oneOfAll([[4, anyKind], ...accessKinds])), weight: 1 },
);
