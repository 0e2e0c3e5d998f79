/** One in this many users is a developer, starting with the first. */
export const USERS_PER_DEVELOPER = 10;

/** The defaults and help texts of the options of `demo`. */
export const DEMO_NUMBERS = {
  seed: [1, 'seed of the generator; a different number produces a different store'],
  users: [24, 'accounts; every tenth is a developer'],
  games: [18, 'games'],
  purchases: [80, 'purchases'],
  download_keys: [40, 'download keys'],
  recent_sales: [0, 'sales of the last 18 months, each with a download key'],
  collections: [6, 'collections'],
  collection_size: [7, 'games in each collection'],
  builds: [90, 'builds'],
} as const;

export interface DemoOptions extends Record<keyof typeof DEMO_NUMBERS, number> {
  /** The key of the first developer. */
  api_key?: string;
  /** URL of the service that serves the covers. */
  url?: string;
  /** The time before which everything happened, in milliseconds since 1970; a fixed one by default, for examples. */
  now?: number;
  /** The password of the first three users. */
  password?: string;
}

export const SMALL_STORE = Object.fromEntries(
  Object.entries(DEMO_NUMBERS).map(([name, [number]]) => [name, number]),
) as Record<keyof typeof DEMO_NUMBERS, number>;
