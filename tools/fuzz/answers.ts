import type { Json, JsonObject } from './json';
import {
  addressesOf,
  BUILDS,
  canEdit,
  detailsOf,
  type DownloadKey,
  downloadKeysOf,
  type Game,
  type Purchase,
  purchasesOf,
  type Tenant,
  USERS,
} from './world';

const HOST = 'gamewharf.example';

const SIGNS: Record<string, [sign: string, digits: number]> = {
  USD: ['$', 2],
  EUR: ['€', 2],
  JPY: ['¥', 0],
  KWD: ['KWD\u00a0', 3],
};

export function priceOf(amount: number, currency: string): string {
  const [sign, digits] = SIGNS[currency]!;
  const text = String(amount).padStart(digits + 1, '0');
  const whole = text.slice(0, text.length - digits).replace(/\B(?=(\d{3})+$)/g, ',');
  return `${sign}${whole}${digits > 0 ? `.${text.slice(-digits)}` : ''}`;
}

const purchaseAnswer = (
  { id, games, bundle, email, currency, amount, created_at }: Purchase,
  game_id: number,
  legacy: boolean,
): JsonObject => ({
  id,
  donation: false,
  email,
  created_at: legacy ? legacyTime(created_at) : created_at,
  source: 'card',
  currency,
  price: priceOf(amount, currency),
  sale_rate: 0,
  ...(legacy ? {} : { quantity: 1, status: 'complete', purchase_type: bundle ? 'bundle' : 'game' }),
  game_id: bundle ? games : game_id,
});

/** What the service should answer about rows that only an import changes: written from the specification alone. */
export class Answers {
  constructor(
    private readonly tenant: Tenant,
    private readonly bought: Purchase[] = purchasesOf(tenant),
    private readonly keys: DownloadKey[] = downloadKeysOf(tenant),
  ) {}

  user(id: number): JsonObject {
    const n = id - this.tenant.base;
    const username = this.tenant.username(n);
    return {
      id,
      username,
      display_name: n === 2 ? username : `<b>${username}</b>`,
      gamer: true,
      developer: n !== 3,
      press_user: false,
      url: `https://${username}.${HOST}`,
      cover_url: null,
    };
  }

  private gameUrl(game: Game): string {
    return `https://${this.tenant.username(game.owner - this.tenant.base)}.${HOST}/${detailsOf(game, this.tenant).slug}`;
  }

  /** As an entry of a collection embeds it. */
  embedded(game: Game): JsonObject {
    const { title, short_text, cover_url, game_type, classification, traits, min_price, created_at } =
      detailsOf(game, this.tenant);
    return {
      id: game.id,
      title,
      short_text,
      url: this.gameUrl(game),
      cover_url,
      type: game_type,
      classification,
      traits,
      min_price,
      published_at: game.published_at,
      created_at,
    };
  }

  private sums(game: Game): { purchases_count: number; earnings: Json } {
    const bought = this.bought.filter(
      ({ games, status }) => status === 'complete' && games.includes(game.id),
    );
    const amounts = new Map<string, number>();
    for (const { games, currency, amount } of bought) {
      const share =
        Math.floor(amount / games.length) + (games.indexOf(game.id) < amount % games.length ? 1 : 0);
      amounts.set(currency, (amounts.get(currency) ?? 0) + share);
    }
    const earnings = [...amounts]
      .filter(([, amount]) => amount > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([currency, amount]) => ({ currency, amount_formatted: priceOf(amount, currency), amount }));
    return { purchases_count: bought.length, earnings };
  }

  games(user: number, legacy = false): JsonObject {
    const games = this.tenant.games
      .filter((game) => canEdit(game, user))
      .sort((a, b) => b.id - a.id)
      .map((game): JsonObject => {
        const { traits, classification, created_at, published_at, ...rest } = this.embedded(game);
        const { views_count, downloads_count } = detailsOf(game, this.tenant);
        const common = {
          ...rest,
          published: published_at !== null,
          views_count,
          downloads_count,
          ...this.sums(game),
        };
        if (!legacy) return { ...common, traits, classification, created_at, published_at };
        const has = (trait: string) => (traits as string[]).includes(trait);
        return {
          ...common,
          p_android: has('p_android'),
          p_linux: has('p_linux'),
          p_osx: has('p_osx'),
          p_windows: has('p_windows'),
          created_at: legacyTime(created_at as string),
          published_at: published_at && legacyTime(published_at as string),
        };
      });
    return { games };
  }

  private accountOf(email: string): number | undefined {
    return USERS.map((n) => this.tenant.user(n)).find((user) =>
      this.verified(user).includes(email.toLowerCase()),
    );
  }

  private verified(user: number | undefined): string[] {
    const n = user === undefined ? 0 : user - this.tenant.base;
    return USERS.includes(n)
      ? addressesOf(this.tenant, n)
          .filter(({ verified }) => verified)
          .map(({ email }) => email)
      : [];
  }

  /** undefined: the caller may not edit the game, or there is none. */
  purchases(
    game_id: number,
    asks: number,
    by: { email?: string; user_id?: number },
    legacy = false,
  ): JsonObject | undefined {
    const game = this.tenant.game(game_id);
    if (!game || !canEdit(game, asks)) return undefined;
    const account = by.user_id ?? this.accountOf(by.email!);
    const addresses = [
      ...this.verified(account),
      ...(by.email === undefined ? [] : [by.email.toLowerCase()]),
    ];
    const purchases = this.bought
      .filter(({ games, status }) => status === 'complete' && games.includes(game_id))
      .filter(
        ({ email, user_id }) =>
          addresses.includes(email.toLowerCase()) || (account !== undefined && user_id === account),
      )
      .sort((a, b) => b.id - a.id)
      .map((purchase) => purchaseAnswer(purchase, game_id, legacy));
    return { purchases };
  }

  /** undefined: the caller may not edit the game, or there is none. */
  sales(
    game_id: number,
    asks: number,
    { since = '', page, per_page }: { since?: string; page: number; per_page: number },
  ): JsonObject | undefined {
    const game = this.tenant.game(game_id);
    if (!game || !canEdit(game, asks)) return undefined;
    const sales = this.bought
      .filter(({ games, status }) => ['complete', 'refunded'].includes(status) && games.includes(game_id))
      .filter(({ created_at }) => since === '' || Date.parse(created_at) >= Date.parse(since))
      .sort((a, b) => b.id - a.id)
      .slice((page - 1) * per_page, page * per_page)
      .map((purchase) => {
        const key = this.keys.findLast((one) => one.game_id === game_id && this.purchaseOf(one) === purchase);
        const buyer = purchase.user_id ?? this.accountOf(purchase.email);
        return {
          ...purchaseAnswer(purchase, game_id, false),
          amount: purchase.amount,
          status: purchase.status,
          user: buyer === undefined ? null : this.user(buyer),
          download_key: key
            ? {
                id: key.id,
                created_at: key.created_at,
                downloads: 0,
                revoked: key.revoked,
                claimed_by: key.user_id === undefined ? null : this.user(key.user_id),
              }
            : null,
        };
      });
    return { page, per_page, sales };
  }

  owns(game: Game, user: number): boolean {
    const { purchases } = this.purchases(game.id, game.owner, { user_id: user })!;
    const hasKey = this.keys.some(
      (key) => key.game_id === game.id && !key.revoked && this.ownerOf(key) === user,
    );
    return canEdit(game, user) || hasKey || (purchases as Json[]).length > 0;
  }

  private purchaseOf({ purchase_id }: DownloadKey): Purchase | undefined {
    return this.bought.find(({ id }) => id === purchase_id);
  }

  private ownerOf(key: DownloadKey): number | undefined {
    const purchase = this.purchaseOf(key);
    return (
      key.user_id ??
      purchase?.user_id ??
      (key.email === undefined ? undefined : this.accountOf(key.email)) ??
      (purchase && this.accountOf(purchase.email))
    );
  }

  /** An answer, or the text of the 404. */
  downloadKey(
    game_id: number,
    asks: number,
    by: { download_key?: string; email?: string; user_id?: number },
    legacy = false,
  ): JsonObject | string {
    const game = this.tenant.game(game_id);
    if (!game || !canEdit(game, asks)) return 'invalid game';
    const live = this.keys.filter((key) => key.game_id === game_id && !key.revoked);
    const ofAccount = (account: number | undefined) =>
      live.filter((key) => account !== undefined && this.ownerOf(key) === account);
    const has = (address: string | undefined) => address?.toLowerCase() === by.email!.toLowerCase();
    const found =
      by.download_key !== undefined
        ? live.filter(({ key }) => key === by.download_key)
        : by.user_id !== undefined
          ? ofAccount(by.user_id)
          : [
              ...live.filter((key) => has(key.email) || has(this.purchaseOf(key)?.email)),
              ...ofAccount(this.accountOf(by.email!)),
            ];
    const newest = found.sort((a, b) => b.id - a.id)[0];
    if (!newest) return by.download_key !== undefined ? 'invalid download key' : 'no download key found';
    const { id, key, created_at } = newest;
    const owner = this.ownerOf(newest);
    return {
      download_key: {
        id,
        created_at: legacy ? legacyTime(created_at) : created_at,
        downloads: 0,
        key,
        game_id,
        ...(owner === undefined ? {} : { owner: this.user(owner) }),
      },
    };
  }

  latest({
    channel_name,
    game_id,
    target,
  }: {
    channel_name: string;
    game_id?: number;
    target?: string;
  }): JsonObject | string {
    const game = this.tenant.games.find((one) =>
      target === undefined
        ? one.id === game_id
        : target ===
            `${this.tenant.username(one.owner - this.tenant.base)}/${detailsOf(one, this.tenant).slug}` ||
          target ===
            `${this.tenant.username(one.owner - this.tenant.base).toUpperCase()}/${detailsOf(one, this.tenant).slug}`,
    );
    if (!game || game.visibility === 'private') return 'invalid game';
    const newest = BUILDS.findLast(
      (build) =>
        this.tenant.base + build.game === game.id &&
        build.channel_name === channel_name &&
        build.state === 'completed',
    );
    if (!newest) return 'invalid channel';
    return newest.user_version === undefined ? {} : { latest: newest.user_version };
  }
}

const legacyTime = (time: string) => time.replace('T', ' ').replace('Z', '');
