import type { JsonObject } from './json';
import type { Message } from './message';

/** Part of every planted secret: no output may contain it. Only letters and digits, so that no encoding hides it. */
export const CANARY = 'c4n4ry';
export const PEPPER = `${CANARY}Pepper0123456789012345678901234`;
export const OPERATOR_TOKEN = `${CANARY}OperatorToken`;
export const UNKNOWN_KEY = `${CANARY}UnknownKey00000000001`;
const MAIL = 'mail.fuzz.example';

/** Users of a tenant by number; the IDs of all its rows are `base` plus a small number. */
export const ALICE = 1;
export const BOB = 2;
export const CAROL = 3;
export const USERS = [ALICE, BOB, CAROL];

export interface Game {
  id: number;
  owner: number;
  admins: number[];
  visibility: 'public' | 'restricted' | 'private';
  published_at: string | null;
  /** Users with a key to it that isn't revoked. */
  holders: number[];
}

/**
 * A store within the store: three users and their data. Tenants share nothing, so that many sequences can run
 * concurrently.
 */
export class Tenant {
  readonly base: number;
  readonly games: Game[];

  constructor(readonly number: number) {
    this.base = 1000 + number * 100;
    const game = (n: number, owner: number, more: Partial<Game>): Game => ({
      id: this.base + n,
      owner: this.base + owner,
      admins: [],
      visibility: 'public',
      published_at: '2024-05-06T07:08:09Z',
      holders: [],
      ...more,
    });
    const [alice, bob, carol] = USERS.map((user) => this.base + user) as [number, number, number];
    this.games = [
      game(1, ALICE, {}),
      game(2, ALICE, { published_at: null }),
      game(3, ALICE, { visibility: 'private', admins: [bob] }),
      game(4, ALICE, { visibility: 'restricted', holders: [carol] }),
      game(5, BOB, {}),
      game(6, BOB, { visibility: 'restricted', holders: [alice] }),
      game(7, CAROL, { visibility: 'private' }),
      game(8, CAROL, { admins: [alice] }),
    ];
  }

  user(n: number): number {
    return this.base + n;
  }

  username(n: number): string {
    return `fuzz${this.number}${'abc'[n - 1]}`;
  }

  email(n: number, which = 0): string {
    return `${this.username(n)}.${which}@${MAIL}`;
  }

  key(n: number): string {
    return `fuzz-key-${CANARY}${this.number}User${n}x0123456789`;
  }

  scopedKey(scope: string): string {
    return `fuzz-key-${CANARY}Scoped${this.number}${scope.replaceAll(':', 'x')}x0123456789`;
  }

  get revokedKey(): string {
    return `fuzz-key-${CANARY}Revoked${this.number}x0123456789`;
  }

  get password(): string {
    return `${CANARY}Password${this.number}`;
  }

  get clientId(): string {
    return `fuzz-application-${this.number}`;
  }

  downloadKey(n: number): string {
    return `download-key-${this.number}-${n}`;
  }

  game(id: number): Game | undefined {
    return this.games.find((game) => game.id === id);
  }
}

/** Tenants before this one are reserved for special cases; later ones belong to one lane each. */
export const FIRST_LANE = 9;
/** The user of the floods, and the control clients, one per replica. */
export const ATTACKER = new Tenant(5);
export const CONTROL_CLIENTS = [6, 7, 8].map((number) => new Tenant(number));

export const SCOPED = [
  'profile:me',
  'profile',
  'game:view',
  'game:view:purchases',
  'collection:view',
  'collection',
];

export const canEdit = (game: Game, user: number) => game.owner === user || game.admins.includes(user);
export const canView = (game: Game, user: number) =>
  canEdit(game, user) ||
  (game.visibility === 'public' && game.published_at !== null) ||
  (game.visibility === 'restricted' && game.holders.includes(user));

/** The redirect URI of the apps of all tenants. */
export const CALLBACK = 'https://application.fuzz.example/callback';

const CREATED = '2024-01-02T03:04:05Z';
const at = (n: number) => `2024-02-03T04:05:${String(n).padStart(2, '0')}Z`;

/** Details of a game that don't affect its visibility. */
export const gameDetails = (game: Game, { base }: Tenant) => {
  const n = game.id - base;
  return {
    slug: `game-${n}`,
    title: `Game ${n} of <${base}>`,
    short_text: n % 2 ? `"Quoted" & short ${n}` : null,
    game_type: n % 3 ? 'default' : 'html',
    classification: n % 2 ? 'game' : 'tool',
    traits: n % 2 ? ['p_windows', 'can_be_bought'] : ['p_linux', 'p_osx', 'p_android'],
    min_price: n * 100,
    views_count: n * 7,
    downloads_count: n * 3,
    cover_url: n % 2 ? `https://img.fuzz.example/${n}.png` : null,
    created_at: at(n),
  };
};

/** A game as an entry of a collection embeds it, written from the specification only. */
export function embeddedGame(game: Game, tenant: Tenant): JsonObject {
  const { slug, game_type: type, created_at, ...details } = gameDetails(game, tenant);
  const { title, short_text, cover_url, classification, traits, min_price } = details;
  const url = `https://${tenant.username(game.owner - tenant.base)}.gamewharf.example/${slug}`;
  const { id, published_at } = game;
  return {
    id,
    title,
    short_text,
    url,
    cover_url,
    type,
    classification,
    traits,
    min_price,
    published_at,
    created_at,
  };
}

export interface Purchase {
  id: number;
  games: number[];
  bundle: boolean;
  email: string;
  user_id?: number;
  currency: string;
  amount: number;
  status: string;
  created_at: string;
}

/** Amounts in currencies with 0, 2 and 3 digits. */
function tenantPurchases(tenant: Tenant): Purchase[] {
  const id = (n: number) => tenant.base + n;
  return [
    { email: `bob@elsewhere.example`, user_id: id(BOB), games: [1], currency: 'USD', amount: 500 },
    { email: tenant.email(CAROL), games: [1, 5], bundle: true, currency: 'JPY', amount: 501 },
    { email: tenant.email(BOB), games: [1], currency: 'USD', amount: 700, status: 'pending' },
    { email: tenant.email(BOB, 1), games: [1], currency: 'EUR', amount: 123456 },
    { email: `nobody@${MAIL}`, games: [1], currency: 'KWD', amount: 1500 },
    { email: `nobody@${MAIL}`, games: [8], currency: 'USD', amount: 100, status: 'refunded' },
    { email: tenant.email(ALICE), games: [5], currency: 'USD', amount: 0 },
  ].map((purchase, index) => ({
    bundle: false,
    status: 'complete',
    ...purchase,
    id: id(index + 1),
    games: purchase.games.map(id),
    created_at: at(index + 1),
  }));
}

export interface DownloadKey {
  id: number;
  key: string;
  game_id: number;
  purchase_id?: number;
  email?: string;
  user_id?: number;
  revoked: boolean;
  created_at: string;
}

export function tenantDownloadKeys(tenant: Tenant): DownloadKey[] {
  const id = (n: number) => tenant.base + n;
  const keys: (Partial<DownloadKey> & { game_id: number })[] = [
    { game_id: id(1), user_id: id(BOB) },
    { game_id: id(1), email: tenant.email(CAROL) },
    { game_id: id(1), user_id: id(CAROL), revoked: true },
    { game_id: id(4), user_id: id(CAROL) },
    { game_id: id(6), email: tenant.email(ALICE) },
    { game_id: id(1), email: `nobody@${MAIL}` },
    { game_id: id(5), email: tenant.email(BOB), user_id: id(ALICE) },
    { game_id: id(1), email: tenant.email(BOB, 1) },
    { game_id: id(1), purchase_id: id(1) },
    { game_id: id(5), purchase_id: id(2), email: `nobody@${MAIL}` },
    { game_id: id(5), purchase_id: id(5) },
    { game_id: id(8), purchase_id: id(6), user_id: id(CAROL) },
  ];
  return keys.map((key, index) => ({
    revoked: false,
    ...key,
    id: id(index + 1),
    key: tenant.downloadKey(index + 1),
    created_at: at(index + 1),
  }));
}

/** Games that no other request expects, for requests that change and delete games. */
export const spareGames = (tenant: Tenant) =>
  USERS.map((user, index) => ({ id: tenant.base + 91 + index, owner: tenant.user(user) }));

/** Unclaimed keys, for requests that revoke them. */
export const spareKeys = (tenant: Tenant) =>
  [81, 82, 83, 84, 85, 86, 87, 88, 89].map((n) => ({
    type: 'download_key',
    id: tenant.base + n,
    key: tenant.downloadKey(n),
    game_id: tenant.base + 1,
  }));

/** The email addresses of a user. The last one is unverified, so it belongs to no account. */
export const userEmails = (tenant: Tenant, user: number) => [
  { email: tenant.email(user), verified: true },
  { email: tenant.email(user, 1), verified: true },
  { email: tenant.email(user, 2), verified: false },
];

export interface Build {
  game: number;
  channel_name: string;
  user_version?: string;
  state: string;
}

export const BUILDS: Build[] = [
  { game: 1, channel_name: 'windows', user_version: '1.0.0', state: 'completed' },
  { game: 1, channel_name: 'windows', user_version: '1.1.0', state: 'completed' },
  { game: 1, channel_name: 'windows', user_version: '1.2.0', state: 'failed' },
  { game: 1, channel_name: 'linux', state: 'completed' },
  { game: 2, channel_name: 'windows', user_version: '2.0.0', state: 'completed' },
  { game: 3, channel_name: 'windows', user_version: '3.0.0', state: 'completed' },
  { game: 5, channel_name: 'osx', user_version: '5.0.0', state: 'started' },
];

/** Uploads of the first game. */
const UPLOADS = [
  { filename: 'soundtrack.zip', external_url: 'https://files.fuzz.example/soundtrack.zip' },
  { filename: 'game.zip', channel_name: 'windows' },
];

interface BaseCollection {
  id: number;
  user_id: number;
  admins: number[];
  private: boolean;
  games: number[];
}

/** Collections that exist before a sequence begins: only they have admins, because no request creates admins. */
export const baseCollections = (tenant: Tenant): BaseCollection[] => [
  {
    id: tenant.base + 1,
    user_id: tenant.user(ALICE),
    admins: [tenant.user(BOB)],
    private: false,
    games: [1, 5].map((n) => tenant.base + n),
  },
  {
    id: tenant.base + 2,
    user_id: tenant.user(BOB),
    admins: [tenant.user(ALICE)],
    private: true,
    games: [7, 8, 3].map((n) => tenant.base + n),
  },
];

export const COLLECTION_CREATED = CREATED;

const purchaseRecord = ({ games, bundle, ...purchase }: Purchase): JsonObject => ({
  type: 'purchase',
  ...purchase,
  game_id: bundle ? games : games[0]!,
  source: 'card',
});

const downloadKeyRecord = ({ revoked, ...key }: DownloadKey): JsonObject => ({
  type: 'download_key',
  ...key,
  revoked_at: revoked ? CREATED : null,
});

/** The rows of a tenant, as an operator imports them. */
export function tenantRecords(tenant: Tenant): JsonObject[] {
  const { base } = tenant;
  return [
    ...USERS.map((n) => ({
      type: 'user',
      id: tenant.user(n),
      username: tenant.username(n),
      display_name: n === BOB ? null : `<b>${tenant.username(n)}</b>`,
      developer: n !== CAROL,
      password: n === CAROL ? null : tenant.password,
      emails: userEmails(tenant, n),
      created_at: CREATED,
    })),
    ...tenant.games.map((game) => ({
      type: 'game',
      id: game.id,
      user_id: game.owner,
      visibility: game.visibility,
      published_at: game.published_at,
      admins: game.admins,
      ...gameDetails(game, tenant),
    })),
    ...tenantPurchases(tenant).map(purchaseRecord),
    ...tenantDownloadKeys(tenant).map(downloadKeyRecord),
    ...spareKeys(tenant),
    ...BUILDS.map(({ game, ...build }, index) => ({
      type: 'build',
      ...build,
      id: base + index + 1,
      game_id: base + game,
      ...(build.state === 'completed' && { file: { url: 'https://files.fuzz.example/build.zip', size: 42 } }),
      created_at: CREATED,
    })),
    ...UPLOADS.map((upload, index) => ({
      type: 'upload',
      ...upload,
      id: base + index + 1,
      game_id: base + 1,
      created_at: CREATED,
    })),
    ...USERS.map((n) => ({ type: 'api_key', key: tenant.key(n), user_id: tenant.user(n) })),
    ...SCOPED.map((scope) => ({
      type: 'api_key',
      key: tenant.scopedKey(scope),
      user_id: tenant.user(ALICE),
      scopes: [scope],
    })),
    { type: 'api_key', key: tenant.revokedKey, user_id: tenant.user(ALICE), revoked_at: CREATED },
    {
      type: 'oauth_application',
      client_id: tenant.clientId,
      user_id: tenant.user(ALICE),
      name: `Application ${tenant.number}`,
      redirect_uris: [CALLBACK],
      scopes: ['profile', 'collection'],
      implicit_allowed: true,
    },
    ...baseCollections(tenant).map(({ games, ...collection }) => ({
      type: 'collection',
      ...collection,
      title: `Base ${collection.id}`,
      games: games.map((game_id) => ({ game_id, created_at: CREATED })),
      created_at: CREATED,
      updated_at: CREATED,
    })),
  ];
}

export const toNdjsonText = (records: JsonObject[]) =>
  records.map((record) => JSON.stringify(record)).join('\n');

export const operatorAuthorization = `Bearer ${OPERATOR_TOKEN}`;

export const importMessage = (text: string): Message => ({
  method: 'POST',
  path: '/operator/import',
  headers: [
    ['Authorization', operatorAuthorization],
    ['Content-Type', 'application/x-ndjson'],
  ],
  body: Buffer.from(text),
});
