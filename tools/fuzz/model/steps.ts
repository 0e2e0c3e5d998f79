import fc, { type Arbitrary } from 'fast-check';
import type { Encoding } from '../../../test/support/world/message';
import { HOSTILE_HTML } from '../values';

export type Place = Encoding | 'query';

interface Common {
  /** The number of the user, from 1 to 3. */
  user: number;
  place: Place;
  /** Whether the request is sent twice, with an Idempotency-Key. */
  retried: boolean;
  /** The replica to use. */
  replica?: number;
}

export type Write =
  { do: 'add'; game: number } | { do: 'remove'; game: number } | { do: 'order'; ids: number[] };

/** Collections are numbered in order of creation, and games by their number. */
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
    | { do: 'add'; collection: number; game: number; blurb?: string }
    | { do: 'remove'; collection: number; game: number }
    | { do: 'note'; collection: number; game: number; blurb?: string }
    | { do: 'order'; collection: number; ids: number[]; removed?: number[] }
    | { do: 'entries'; collection: number; page?: number; per_page?: number }
    | { do: 'list'; game?: number }
    | { do: 'burst'; collection: number; writes: (Write & { user: number })[] }
  );

export type StepName = Step['do'];
export type Of<D extends StepName> = Step & { do: D };

const user = fc.constantFrom(1, 2, 3);
const game = fc.integer({ min: 1, max: 8 });
// Existing, recent collections are the likely ones; 9 and more don't exist.
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

const write = fc.oneof(
  fc.record({ do: fc.constant('add' as const), game, user }),
  fc.record({ do: fc.constant('remove' as const), game, user }),
  fc.record({ do: fc.constant('order' as const), ids, user }),
);

type Weighted = [weight: number, Arbitrary<object>];

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
];

const common = fc.record({
  user,
  place: fc.constantFrom<Place>('form', 'json', 'query', 'multipart'),
  retried: fc.integer({ min: 0, max: 11 }).map((n) => n === 11),
  replica: fc.constantFrom(0, 1),
});

const step = fc
  .tuple(common, fc.oneof(...kinds.map(([weight, arbitrary]) => ({ arbitrary, weight }))))
  .map(([shared, one]) => ({ ...shared, ...one }) as Step);

export const steps: Arbitrary<Step[]> = fc.array(step, { minLength: 1, maxLength: 40, size: 'max' });
