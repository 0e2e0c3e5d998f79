import { isDeepStrictEqual } from 'node:util';
import fc, { type Arbitrary } from 'fast-check';
import { formMessage, type Message } from '../../test/support/world/message';
import type { JsonObject } from '../../test/support/world/json';
import { excerpt, Finding } from './oracles';
import type { Received, Target } from './target';
import { problemIn } from './webhook';
import { importMessage, operatorAuthorization, type Tenant } from '../../test/support/world/world';

/** Steps of a checkout and its operator. `sale` is the index among the sales created. */
type Step =
  | { step: 'sell'; games: number[]; buyer: Buyer; currency: string; amount: number; more: More }
  | { step: 'sell bundle'; buyer: Buyer; amount: number; with_key?: boolean }
  | { step: 'change bundle'; games: number[]; extend: boolean }
  | { step: 'claim'; game: number; at_once: number }
  | { step: 'sell again'; sale: number; amount: number }
  | { step: 'refund'; sale: number; keep_keys: boolean }
  | { step: 'import over'; sale: number; what: 'email' | 'game_id' | 'amount' }
  | { step: 'export' }
  | { step: 'erase'; buyer: Buyer };
type Buyer = 'account' | 'address';
interface More {
  reference?: boolean;
  with_key?: boolean;
  donation?: boolean;
}
export interface Sales {
  steps: Step[];
}

const buyer = fc.constantFrom<Buyer>('account', 'address');
const sale = fc.nat({ max: 2 });

export const sales: Arbitrary<Sales> = fc.record({
  steps: fc.array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          step: fc.constant('sell' as const),
          games: fc.uniqueArray(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 3 }),
          buyer,
          currency: fc.constantFrom('USD', 'JPY', 'KWD'),
          amount: fc.constantFrom(0, 1, 2, 500, 100_000_000),
          more: fc.record(
            { reference: fc.constantFrom(true, true, false), with_key: fc.boolean(), donation: fc.boolean() },
            { requiredKeys: [] },
          ),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record(
          {
            step: fc.constant('sell bundle' as const),
            buyer,
            amount: fc.constantFrom(0, 1, 2, 500),
            with_key: fc.boolean(),
          },
          { requiredKeys: ['step', 'buyer', 'amount'] },
        ),
      },
      fc.record({
        step: fc.constant('change bundle' as const),
        games: fc.uniqueArray(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 5 }),
        extend: fc.boolean(),
      }),
      {
        weight: 2,
        arbitrary: fc.record({
          step: fc.constant('claim' as const),
          game: fc.integer({ min: 1, max: 8 }),
          at_once: fc.constantFrom(1, 2, 5),
        }),
      },
      fc.record({ step: fc.constant('sell again' as const), sale, amount: fc.constantFrom(0, 0, 1) }),
      fc.record({ step: fc.constant('refund' as const), sale, keep_keys: fc.boolean() }),
      fc.record({
        step: fc.constant('import over' as const),
        sale,
        what: fc.constantFrom('email', 'game_id', 'amount'),
      }),
      fc.record({ step: fc.constant('export' as const) }),
      fc.record({ step: fc.constant('erase' as const), buyer }),
    ),
    { minLength: 1, maxLength: 12 },
  ),
});

/** Steps at the end, so that even a short campaign runs each of them. */
const LAST: Step[] = [
  { step: 'sell bundle', buyer: 'account', amount: 500 },
  { step: 'claim', game: 1, at_once: 5 },
  { step: 'change bundle', games: [2, 1, 3, 4], extend: true },
  { step: 'claim', game: 4, at_once: 2 },
  { step: 'import over', sale: 0, what: 'email' },
  { step: 'refund', sale: 0, keep_keys: false },
  { step: 'export' },
  { step: 'erase', buyer: 'account' },
  { step: 'erase', buyer: 'address' },
];

interface Sold {
  id: number;
  games: number[];
  currency: string;
  amount: number;
  buyer: Buyer;
  fields: Record<string, string>;
  response: unknown;
  refunded: boolean;
  of_bundle?: true;
  /** Whether it got more games after its message. */
  extended?: true;
}

const EARNED = `
  SELECT g.id, g.purchases_count AS purchases,
    (SELECT coalesce(json_object_agg(currency, amount), '{}') FROM game_earnings e WHERE e.game_id = g.id) AS earnings
  FROM games g WHERE g.id = ANY($1) ORDER BY g.id`;

let buyers = 0;

/** Two buyers unknown to other cases, one with an account, in a store whose sales are known before and after. */
class Checkout {
  private readonly number = ++buyers;
  private readonly user_id = 5_000_000 + this.number;
  private readonly email = {
    account: `buyer${this.number}@checkout.fuzz.example`,
    address: `guest${this.number}@checkout.fuzz.example`,
  };
  private readonly key = `checkout-key-${this.number}`;
  /** The ID of the bundle, its games in order, and its version. */
  private readonly bundle: { id: number; games: number[]; version: number };
  private readonly sold: Sold[] = [];
  private readonly erased = new Set<Buyer>();

  constructor(
    private readonly target: Target,
    private readonly tenant: Tenant,
  ) {
    this.bundle = { id: this.user_id, games: [3, 1, 2].map((n) => tenant.base + n), version: 1 };
  }

  async run(steps: Step[]): Promise<void> {
    const before = await this.figures();
    await this.openAccount();
    for (const step of [...steps, ...LAST]) await this.play(step);
    const after = await this.figures();
    for (const { games, currency, amount } of this.sold.filter(({ refunded }) => !refunded))
      games.forEach((game, place) => {
        const figures = before.get(game)!;
        figures.purchases++;
        const share = Math.floor(amount / games.length) + Number(place < amount % games.length);
        const earned = (figures.earnings[currency] ?? 0) + share;
        if (earned > 0) figures.earnings[currency] = earned;
      });
    if (!isDeepStrictEqual(before, after))
      throw new Finding('model', 'games have other earnings', JSON.stringify([[...before], [...after]]));
    await this.ask('GET /operator/metrics', '/operator/metrics', undefined, 200);
    for (const sold of this.sold) await this.checkWebhook(sold);
  }

  private async checkWebhook(sold: Sold): Promise<void> {
    const { webhook } = this.target;
    if (!webhook) return;
    const { id, games, currency, amount, fields, response, refunded } = sold;
    if (sold.extended) return;
    const messages = await webhook.takeMessages(id, refunded ? 2 : 1);
    const { created_at } = (response as { purchase: JsonObject }).purchase;
    const reference = fields.reference ?? null;
    const data = { id, game_ids: games, amount, currency, source: 'store', created_at, reference };
    const problem = problemIn(messages, data as JsonObject, refunded, this.gone.has(sold));
    if (problem)
      throw new Finding('model', 'a webhook got another message', `${problem}; ${JSON.stringify(data)}`);
  }

  private async play(step: Step): Promise<void> {
    switch (step.step) {
      case 'sell':
        return this.sell(step);
      case 'sell bundle':
        return this.sellBundle(step);
      case 'change bundle':
        return this.changeBundle(step);
      case 'claim':
        return this.claim(step);
      case 'sell again': {
        const sold = this.sold[step.sale];
        // The email address of an erased sale is someone else's now, and the keys of a refunded one are revoked.
        if (!sold?.fields.reference || sold.refunded || this.gone.has(sold)) return;
        const fields = { ...sold.fields, amount: String(sold.amount + step.amount) };
        const again = await this.post('/operator/purchases', fields, step.amount ? 409 : 200);
        if (step.amount === 0) this.equal('the sale of a reference', again.json, sold.response);
        return;
      }
      case 'refund': {
        const sold = this.sold[step.sale];
        const name = 'POST /operator/purchases/{purchase_id}/refund';
        const path = `/operator/purchases/${sold?.id ?? 9_000_000_000}/refund`;
        const fields = { keep_keys: String(step.keep_keys) };
        const { json } = await this.ask(name, path, fields, sold ? 200 : 404);
        if (!sold) return;
        sold.refunded = true;
        const { purchase } = json as { purchase: JsonObject };
        this.equal('a refund', [purchase.id, purchase.status], [sold.id, 'refunded']);
        return;
      }
      case 'import over':
        return this.importOver(this.sold[step.sale], step.what);
      case 'export':
        return this.export();
      case 'erase':
        return this.erase(step.buyer);
    }
  }

  /**
   * A source system that keeps counting reaches the ID of a sale. It may correct the sale, but not turn it into another
   * one.
   */
  private async importOver(sold: Sold | undefined, what: 'email' | 'game_id' | 'amount'): Promise<void> {
    if (!sold || this.gone.has(sold)) return;
    const { id, games, buyer, amount } = sold;
    const other = this.tenant.games.map((game) => game.id).find((game) => !games.includes(game));
    const fields = {
      email: { email: 'another@checkout.fuzz.example' },
      game_id: { game_id: other },
      amount: { email: this.email[buyer], amount },
    }[what];
    const record = JSON.stringify({ type: 'purchase', id, ...fields });
    const operation = this.target.operation('POST /operator/import');
    const { response } = await this.target.send(importMessage(record), { operation });
    if (response.status !== (what === 'amount' ? 200 : 400))
      throw new Finding('model', `an import over a sale: ${what}`, excerpt(response));
  }

  private async sell({ games, buyer, currency, amount, more }: Extract<Step, { step: 'sell' }>) {
    const ids = games.map((n) => this.tenant.base + n).sort((a, b) => a - b);
    const { reference, with_key, donation } = more;
    const fields: Record<string, string> = {
      game_id: ids.length > 1 ? JSON.stringify(ids) : String(ids[0]),
      ...(buyer === 'account' ? { user_id: String(this.user_id) } : { email: this.email.address }),
      currency,
      amount: String(amount),
      ...(reference && { reference: `checkout-${this.number}-${this.sold.length}` }),
      ...(with_key !== undefined && { with_key: String(with_key) }),
      ...(donation !== undefined && { donation: String(donation) }),
    };
    // An erased account has no email address.
    const rejected = buyer === 'account' && this.erased.has('account');
    if (rejected) return void (await this.post('/operator/purchases', fields, [400, 404]));
    const { json: response } = await this.post('/operator/purchases', fields, 200);
    const { purchase, download_keys } = response as { purchase: JsonObject; download_keys: JsonObject[] };
    this.equal(
      'a sale',
      [
        purchase.email,
        purchase.status,
        purchase.reference,
        purchase.currency,
        download_keys.map(({ game_id }) => game_id),
      ],
      [this.email[buyer], 'complete', fields.reference ?? null, currency, (with_key ?? !donation) ? ids : []],
    );
    const id = Number(purchase.id);
    this.sold.push({ id, games: ids, currency, amount, buyer, fields, response, refunded: false });
    this.erased.delete(buyer);
  }

  private async sellBundle({ buyer, amount, with_key }: Extract<Step, { step: 'sell bundle' }>) {
    const fields: Record<string, string> = {
      bundle_id: String(this.bundle.id),
      ...(buyer === 'account' ? { user_id: String(this.user_id) } : { email: this.email.address }),
      currency: 'USD',
      amount: String(amount),
      reference: `checkout-${this.number}-${this.sold.length}`,
      ...(with_key !== undefined && { with_key: String(with_key) }),
    };
    if (buyer === 'account' && this.erased.has('account'))
      return void (await this.post('/operator/purchases', fields, [400, 404]));
    const { json: response } = await this.post('/operator/purchases', fields, 200);
    const { purchase, download_keys } = response as { purchase: JsonObject; download_keys: JsonObject[] };
    const games = this.bundle.games.toSorted((a, b) => a - b);
    this.equal(
      'a sale of a bundle',
      [purchase.purchase_type, purchase.game_id, download_keys.map(({ game_id }) => game_id)],
      ['bundle', games, with_key ? games : []],
    );
    const id = Number(purchase.id);
    this.sold.push({
      id,
      games,
      currency: 'USD',
      amount,
      buyer,
      fields,
      response,
      refunded: false,
      of_bundle: true,
    });
    this.erased.delete(buyer);
  }

  private async changeBundle({ games, extend }: Extract<Step, { step: 'change bundle' }>): Promise<void> {
    const game_ids = games.map((n) => this.tenant.base + n);
    await this.import({ type: 'bundle', id: this.bundle.id, game_ids, extend });
    if (!isDeepStrictEqual(game_ids, this.bundle.games)) this.bundle.version++;
    this.bundle.games = game_ids;
    if (!extend) return;
    for (const one of this.sold.filter(({ of_bundle, refunded }) => of_bundle && !refunded)) {
      const all = [...new Set([...one.games, ...game_ids])].sort((a, b) => a - b);
      if (all.length > one.games.length) one.extended = true;
      one.games = all;
    }
  }

  /** Claims a game several times at once, after reading what a launcher reads. */
  private async claim({ game, at_once }: Extract<Step, { step: 'claim' }>): Promise<void> {
    if (this.erased.has('account')) return;
    const game_id = this.tenant.base + game;
    const { id, games, version } = this.bundle;
    const own = this.sold.filter((one) => one.buyer === 'account' && !one.refunded && !this.gone.has(one));
    const isOwned = own.some(({ of_bundle }) => of_bundle);
    const { json: owned } = await this.asPlayer('GET /profile/owned-bundles', '/profile/owned-bundles', 200);
    const bundles = (owned as { bundle_keys: { bundle: JsonObject }[] }).bundle_keys;
    this.equal(
      'the list of bundles',
      bundles.map(({ bundle }) => [bundle.id, bundle.version, bundle.games_count]),
      isOwned ? [[id, version, games.length]] : [],
    );
    const path = `/bundles/${id}/bundle-games`;
    const { json: listed } = await this.asPlayer(
      'GET /bundles/{bundle_id}/bundle-games',
      path,
      isOwned ? 200 : 404,
    );
    if (isOwned)
      this.equal(
        'the games of a bundle',
        (listed as { bundle_games: JsonObject[] }).bundle_games.map((one) => one.game_id),
        games,
      );
    const isClaimable = games.includes(game_id) && own.some((one) => one.games.includes(game_id));
    // A key that a refund left to the player is returned, too.
    const expected = !isOwned ? 404 : isClaimable ? 200 : games.includes(game_id) ? [200, 404] : 404;
    const claims = await Promise.all(
      Array.from({ length: at_once }, () =>
        this.asPlayer('POST /bundles/{bundle_id}/claim-game', `/bundles/${id}/claim-game`, expected, {
          game_id: String(game_id),
        }),
      ),
    );
    const ids = claims.map(({ json }) => (json as { download_key?: JsonObject }).download_key?.id);
    this.equal('the number of keys of concurrent claims', new Set(ids).size, 1);
  }

  private asPlayer(
    name: string,
    path: string,
    status: number | number[],
    fields?: Record<string, string>,
  ): Promise<Received> {
    return this.ask(name, path, fields, status, `Bearer ${this.key}`);
  }

  private async import(...records: object[]): Promise<void> {
    const operation = this.target.operation('POST /operator/import');
    const text = records.map((record) => JSON.stringify(record)).join('\n');
    const { response } = await this.target.send(importMessage(text), { operation });
    if (response.status !== 200) throw new Finding('model', 'a valid import fails', excerpt(response));
  }

  private async export(): Promise<void> {
    const path = `/operator/users/${this.user_id}/export`;
    const { response } = await this.ask('POST /operator/users/{user_id}/export', path, {}, 200);
    const found = response.body
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as JsonObject)
      .filter(({ type }) => type === 'purchase');
    const own = this.erased.has('account') ? [] : this.sold.filter(({ buyer }) => buyer === 'account');
    const ids = (list: { id?: unknown }[]) => list.map(({ id }) => Number(id)).sort((a, b) => a - b);
    this.equal('an export', ids(found), ids(own));
  }

  private async erase(buyer: Buyer): Promise<void> {
    const path = buyer === 'account' ? `/operator/users/${this.user_id}/erase` : '/operator/people/erase';
    const name = path.replace(String(this.user_id), '{user_id}');
    const fields: Record<string, string> = buyer === 'account' ? {} : { email: this.email.address };
    const { json } = await this.ask(`POST ${name}`, path, fields, 200);
    const { erased } = json as { erased: Record<string, number> };
    const again = this.erased.has(buyer);
    const purchases = again
      ? 0
      : this.sold.filter((one) => one.buyer === buyer && !this.gone.has(one)).length;
    this.equal('erased purchases', erased.purchases ?? 0, purchases);
    if (again && Object.values(erased).some((rows) => rows > 0))
      throw new Finding('model', 'a buyer is erased twice', JSON.stringify(erased));
    for (const one of this.sold) if (one.buyer === buyer) this.gone.add(one);
    this.erased.add(buyer);
    const { rows } = await this.target.sql.query(
      'SELECT id FROM purchases WHERE lower_ascii(email) = $1 UNION ALL SELECT id FROM download_keys WHERE purchase_email = $1',
      [this.email[buyer]],
    );
    this.equal('data of an erased buyer', rows, []);
  }

  private readonly gone = new Set<Sold>();

  private async openAccount(): Promise<void> {
    const { user_id: id, number } = this;
    const emails = [{ email: this.email.account, verified: true }];
    const { games: game_ids } = this.bundle;
    await this.import(
      { type: 'user', id, username: `checkout${number}`, emails },
      { type: 'api_key', key: this.key, user_id: id },
      { type: 'bundle', id, user_id: id, slug: `bundle-${number}`, title: 'A bundle', game_ids },
    );
  }

  private async figures() {
    const ids = this.tenant.games.map(({ id }) => id);
    const { rows } = await this.target.sql.query<{
      id: string;
      purchases: string;
      earnings: Record<string, number>;
    }>(EARNED, [ids]);
    return new Map(
      rows.map(({ id, purchases, earnings }) => [Number(id), { purchases: Number(purchases), earnings }]),
    );
  }

  private post(path: string, fields: Record<string, string>, status: number | number[]) {
    return this.ask(`POST ${path}`, path, fields, status);
  }

  private async ask(
    name: string,
    path: string,
    fields: Record<string, string> | undefined,
    status: number | number[],
    authorization = operatorAuthorization,
  ): Promise<Received> {
    const headers: Message['headers'] = [['Authorization', authorization]];
    const message = fields ? formMessage(path, fields, headers) : { method: 'GET', path, headers };
    const received = await this.target.send(message, { operation: this.target.operation(name) });
    if (![status].flat().includes(received.response.status))
      throw new Finding('model', `${name} does not return ${String(status)}`, excerpt(received.response));
    return received;
  }

  private equal(what: string, found: unknown, expected: unknown): void {
    if (!isDeepStrictEqual(found, expected))
      throw new Finding('model', `${what} is another`, JSON.stringify({ found, expected }));
  }
}

export const runSales = (target: Target, { steps }: Sales, tenant: Tenant) =>
  new Checkout(target, tenant).run(steps);
