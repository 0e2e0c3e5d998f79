import type { MockRecord } from '../../client/mock';

export const PURCHASES = 38;

/** 100 records, together with the mock's own developer and key. */
export const SEED: MockRecord[] = [
  ...Array.from({ length: 20 }, (_, n) => ({ type: 'user', id: n + 2, username: `player-${n}` })),
  ...Array.from({ length: 40 }, (_, n) => ({
    type: 'game',
    id: n + 1,
    user_id: 1,
    slug: `game-${n}`,
    title: `Game ${n}`,
    min_price: 499,
  })),
  ...Array.from({ length: PURCHASES }, (_, n) => ({
    type: 'purchase',
    id: n + 1,
    game_id: n + 1,
    email: 'player@example.com',
    source: 'card',
    currency: 'USD',
    amount: 499,
  })),
];
