import { isDeepStrictEqual } from 'node:util';
import { type Ask, type Field, messageOf } from '../ask';
import type { Json, JsonObject } from '../json';
import { checkDescribed, excerpt, Finding } from '../oracles';
import type { Answered, Target } from '../target';
import {
  downloadKeyRecord,
  ndjsonOf,
  operatorAuthorization,
  purchaseRecord,
  type Tenant,
  USERS,
} from '../world';
import { type Collection, type Entry, type Html, Model, type Moment, second, UNSEEN } from './model';
import { danger } from './safe-html';
import type { Place, Step, Write } from './steps';
import { readCollection, reset } from './tenant-rows';

const NOBODYS = 999_999_999;
const WRITES = ['create', 'update', 'resubmit', 'delete', 'add', 'remove', 'note', 'order'];

type Did = Step['do'];
type Of<D extends Did> = Extract<Step, { do: D }>;

interface Call {
  user: number;
  operation: string;
  path?: Record<string, string>;
  fields?: Record<string, Json | undefined>;
  place?: Place;
  key?: string;
}

const EMPTY: Ask = {
  operation: '',
  credential: '',
  scheme: 'Bearer CREDENTIAL',
  path: {},
  fields: [],
  encoding: 'form',
  headers: [],
};

let serial = 0;

/** Plays steps of three users against the service and against the model, and compares. */
export class Sequence {
  readonly model: Model;
  /** Of the request that was sent last. */
  private moment: Moment = [0, 0];
  private retryKey: string | undefined;

  constructor(
    private readonly target: Target,
    private readonly tenant: Tenant,
  ) {
    this.model = new Model(tenant);
  }

  async run(steps: Step[]): Promise<void> {
    await reset(this.target.sql, this.tenant);
    for (const step of steps) await this.step(step);
    await this.lastLook();
  }

  private async step(step: Step): Promise<void> {
    this.retryKey =
      step.retried && WRITES.includes(step.do) ? `retry-${process.pid}-${++serial}-${Date.now()}` : undefined;
    const name = step.do.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase());
    const perform = (this as unknown as Record<string, (step: Step) => Promise<void>>)[name]!;
    await perform.call(this, step);
  }

  // Asking and comparing

  private async call({
    user,
    operation,
    path = {},
    fields = {},
    place = 'form',
    key,
  }: Call): Promise<Answered> {
    const given = Object.entries(fields).filter((field): field is [string, Json] => field[1] !== undefined);
    const inQuery = operation.startsWith('GET') || place === 'query';
    const ask: Ask = {
      ...EMPTY,
      operation,
      path,
      fields: given.map(([name, value]): Field => ({ name, value, place: inQuery ? 'query' : 'body' })),
      encoding: place === 'query' ? 'form' : place,
      headers: this.retryKey && operation.startsWith('POST') ? [['Idempotency-Key', this.retryKey]] : [],
    };
    const message = messageOf(ask, key ?? this.tenant.key(user));
    const about = {
      operation: this.target.operation(operation),
      makesCredential: operation === 'POST /credentials/subkey',
    };
    const before = Date.now();
    const answered = await this.target.send(message, about);
    this.moment = [Math.floor(before / 1000), Math.floor(Date.now() / 1000)];
    checkDescribed(about.operation, answered.answer, false);
    if (ask.headers.length > 0) {
      const again = await this.target.send(message, about);
      if (again.answer.body !== answered.answer.body || again.answer.status !== answered.answer.status)
        this.fail(
          operation,
          'is answered otherwise when it is repeated with its Idempotency-Key',
          again,
          answered.json,
        );
    }
    return answered;
  }

  private fail(operation: string, what: string, { answer }: Answered, expected: unknown): never {
    const shown = JSON.stringify(expected, (_, value: unknown) => (value === UNSEEN ? 'unseen' : value));
    throw new Finding('model', `${operation} ${what}`, `${excerpt(answer)}\nexpected: ${shown}`);
  }

  private expect(operation: string, answered: Answered, status: number, body: unknown): void {
    if (
      answered.answer.status !== status ||
      !isDeepStrictEqual(answered.json, JSON.parse(JSON.stringify(body)))
    )
      this.fail(operation, `is not what the model says`, answered, { status, body });
  }

  /** Whether it was refused, as it had to be. */
  private refused(operation: string, answered: Answered, refusal: [number, string] | undefined): boolean {
    if (!refusal) return false;
    this.expect(operation, answered, refusal[0], { errors: [refusal[1]] });
    return true;
  }

  private time(operation: string, answered: Answered, given: unknown, moment: Moment): void {
    const at = second(String(given));
    if (!(at >= moment[0] - 1 && at <= moment[1] + 1))
      this.fail(operation, 'tells another time', answered, moment);
    moment[0] = moment[1] = at;
  }

  private html(
    operation: string,
    answered: Answered,
    given: Json | undefined,
    expected: Html,
  ): string | null {
    const html = given as string | null;
    const why = html === null ? undefined : danger(html);
    if (why) this.fail(operation, 'answers HTML that is not safe', answered, why);
    if (expected !== UNSEEN && html !== expected)
      this.fail(operation, 'answers other HTML', answered, expected);
    return html;
  }

  private compare(
    operation: string,
    answered: Answered,
    given: JsonObject,
    collection: Collection,
    more: JsonObject = {},
  ): void {
    this.time(operation, answered, given.created_at, collection.created_at);
    this.time(operation, answered, given.updated_at, collection.updated_at);
    collection.description = this.html(operation, answered, given.description, collection.description);
    collection.layout ??= given.layout as 'grid' | 'list';
    if (!String(given.url).startsWith(`https://gamewharf.example/c/${collection.id}/`))
      this.fail(operation, 'has another url', answered, collection.id);
    const expected = {
      id: collection.id,
      title: collection.title,
      url: given.url,
      user_id: collection.user_id,
      games_count: collection.entries.length,
      private: collection.private,
      description: collection.description,
      layout: collection.layout,
      created_at: given.created_at,
      updated_at: given.updated_at,
      ...more,
    };
    if (!isDeepStrictEqual(given, expected))
      this.fail(operation, 'has another collection', answered, expected);
  }

  private compareEntry(
    operation: string,
    answered: Answered,
    given: JsonObject,
    collection: Collection,
    entry: Entry,
  ): void {
    this.time(operation, answered, given.created_at, entry.created_at);
    entry.blurb = this.html(operation, answered, given.blurb, entry.blurb);
    const expected = {
      collection_id: collection.id,
      game_id: entry.game,
      position: collection.entries.indexOf(entry) + 1,
      blurb: entry.blurb,
      user_id: entry.user_id,
      created_at: given.created_at,
      game: this.model.answers.embedded(this.tenant.game(entry.game)!),
    };
    if (!isDeepStrictEqual(given, expected)) this.fail(operation, 'has another entry', answered, expected);
  }

  private idOf(index: number): number {
    return this.model.made[index] ?? NOBODYS;
  }

  /** What a text for HTML becomes, where that can be told without cleaning it. */
  private stored(html: string): Html {
    return /[<>&]/.test(html) ? UNSEEN : html.trim() || null;
  }

  // Collections

  async create({ user, place, game, blurb, ...step }: Of<'create'>): Promise<void> {
    const operation = 'POST /collections';
    const game_id = game === undefined ? undefined : this.tenant.base + game;
    const { title, description, layout } = step;
    const fields = { title, private: step.private, description, layout, game_id, blurb };
    const answered = await this.call({ user, operation, fields, place });
    const owner = this.tenant.user(user);
    if (game_id !== undefined && !this.model.canViewGame(game_id, owner)) {
      this.refused(operation, answered, [404, 'invalid game']);
      return;
    }
    if (answered.answer.status !== 200) this.fail(operation, 'is refused', answered, fields);
    const given = (answered.json as { collection: JsonObject }).collection;
    const note = game_id === undefined || blurb === undefined ? null : this.stored(blurb);
    const collection: Collection = {
      id: given.id as number,
      user_id: owner,
      title: title?.trim() || `${this.tenant.username(user)}'s Collection`,
      private: step.private ?? false,
      description: description === undefined ? null : this.stored(description),
      layout: layout ?? (note === UNSEEN ? undefined : note === null ? 'grid' : 'list'),
      created_at: [...this.moment],
      updated_at: [...this.moment],
      touched: this.model.nextTouch,
      admins: [],
      shown_by: new Set(),
      entries: [],
    };
    if (game_id !== undefined)
      collection.entries.push({ game: game_id, blurb: note, user_id: owner, created_at: [...this.moment] });
    if (this.model.collections.has(collection.id))
      this.fail(operation, 'gives an id twice', answered, collection.id);
    this.compare(operation, answered, given, collection);
    this.model.put(collection);
  }

  async update({ user, place, collection: index, ...step }: Of<'update'>): Promise<void> {
    const operation = 'POST /collections/{collection_id}';
    const id = this.idOf(index);
    const { title, description, layout, on_profile } = step;
    const fields = { title, private: step.private, description, layout, on_profile };
    const answered = await this.call({ user, operation, path: { collection_id: String(id) }, fields, place });
    const collection = this.model.collections.get(id);
    const me = this.tenant.user(user);
    if (this.refused(operation, answered, this.model.refusal(collection, me))) return;
    if (!collection) return;
    if (title !== undefined) collection.title = title.trim();
    if (step.private !== undefined) collection.private = step.private;
    if (description !== undefined) collection.description = this.stored(description);
    if (layout !== undefined) collection.layout = layout;
    if (on_profile !== undefined) this.showsOn(collection, me, on_profile);
    if (Object.values(fields).some((value) => value !== undefined))
      this.model.touch(collection, [...this.moment]);
    if (answered.answer.status !== 200) this.fail(operation, 'is refused', answered, fields);
    this.compare(operation, answered, (answered.json as { collection: JsonObject }).collection, collection);
  }

  private showsOn(collection: Collection, user: number, on: boolean): void {
    if (on) collection.shown_by.add(user);
    else collection.shown_by.delete(user);
  }

  /** What is stored is stored again as it is. */
  async resubmit({ collection: index, place }: Of<'resubmit'>): Promise<void> {
    const collection = this.model.collections.get(this.idOf(index));
    if (!collection || typeof collection.description !== 'string') return;
    const operation = 'POST /collections/{collection_id}';
    const { description } = collection;
    const user = collection.user_id - this.tenant.base;
    const path = { collection_id: String(collection.id) };
    const answered = await this.call({ user, operation, path, fields: { description }, place });
    this.model.touch(collection, [...this.moment]);
    if (answered.answer.status !== 200) this.fail(operation, 'refuses what it stored', answered, description);
    this.compare(operation, answered, (answered.json as { collection: JsonObject }).collection, collection);
  }

  async delete({ user, place, collection: index }: Of<'delete'>): Promise<void> {
    const operation = 'POST /collections/{collection_id}/delete';
    const id = this.idOf(index);
    const answered = await this.call({ user, operation, path: { collection_id: String(id) }, place });
    if (
      this.refused(
        operation,
        answered,
        this.model.refusal(this.model.collections.get(id), this.tenant.user(user)),
      )
    )
      return;
    this.expect(operation, answered, 200, { success: true });
    this.model.collections.delete(id);
  }

  async read({ user, collection: index }: { user: number; collection: number }): Promise<void> {
    const operation = 'GET /collections/{collection_id}';
    const id = this.idOf(index);
    const answered = await this.call({ user, operation, path: { collection_id: String(id) } });
    const collection = this.model.collections.get(id);
    if (!collection || !this.model.canSee(collection, this.tenant.user(user))) {
      this.refused(operation, answered, [404, 'invalid collection']);
      return;
    }
    if (answered.answer.status !== 200) this.fail(operation, 'is refused', answered, id);
    this.compare(operation, answered, (answered.json as { collection: JsonObject }).collection, collection);
  }

  async add({ user, place, collection: index, game, blurb }: Of<'add'>): Promise<void> {
    const operation = 'POST /collections/{collection_id}/add-game';
    const id = this.idOf(index);
    const game_id = this.tenant.base + game;
    const path = { collection_id: String(id) };
    const answered = await this.call({ user, operation, path, fields: { game_id, blurb }, place });
    const collection = this.model.collections.get(id);
    const me = this.tenant.user(user);
    if (this.refused(operation, answered, this.model.refusal(collection, me)) || !collection) return;
    if (!this.model.canViewGame(game_id, me)) {
      this.refused(operation, answered, [404, 'invalid game']);
      return;
    }
    let entry = collection.entries.find((one) => one.game === game_id);
    if (!entry) {
      const note = blurb === undefined ? null : this.stored(blurb);
      entry = { game: game_id, blurb: note, user_id: me, created_at: [...this.moment] };
      collection.entries.push(entry);
      this.model.touch(collection, [...this.moment]);
    }
    if (answered.answer.status !== 200) this.fail(operation, 'is refused', answered, game_id);
    const given = (answered.json as { collection_game: JsonObject }).collection_game;
    this.compareEntry(operation, answered, given, collection, entry);
  }

  async remove({ user, place, collection: index, game }: Of<'remove'>): Promise<void> {
    const operation = 'POST /collections/{collection_id}/remove-game';
    const id = this.idOf(index);
    const game_id = this.tenant.base + game;
    const answered = await this.call({
      user,
      operation,
      path: { collection_id: String(id) },
      fields: { game_id },
      place,
    });
    const collection = this.model.collections.get(id);
    if (
      this.refused(operation, answered, this.model.refusal(collection, this.tenant.user(user))) ||
      !collection
    )
      return;
    const at = collection.entries.findIndex((entry) => entry.game === game_id);
    if (at >= 0) {
      collection.entries.splice(at, 1);
      this.model.touch(collection, [...this.moment]);
    }
    this.expect(operation, answered, 200, { success: true, removed: at >= 0 });
  }

  async note({ user, place, collection: index, game, blurb }: Of<'note'>): Promise<void> {
    const operation = 'POST /collections/{collection_id}/collection-games/{game_id}';
    const id = this.idOf(index);
    const game_id = this.tenant.base + game;
    const path = { collection_id: String(id), game_id: String(game_id) };
    const answered = await this.call({ user, operation, path, fields: { blurb }, place });
    const collection = this.model.collections.get(id);
    const me = this.tenant.user(user);
    if (this.refused(operation, answered, this.model.refusal(collection, me)) || !collection) return;
    const entry = collection.entries.find((one) => one.game === game_id);
    if (!entry || !this.model.canViewGame(game_id, me)) {
      this.refused(operation, answered, [404, 'game is not in the collection']);
      return;
    }
    if (blurb !== undefined) {
      entry.blurb = this.stored(blurb);
      this.model.touch(collection, [...this.moment]);
    }
    if (answered.answer.status !== 200) this.fail(operation, 'is refused', answered, blurb);
    const given = (answered.json as { collection_game: JsonObject }).collection_game;
    this.compareEntry(operation, answered, given, collection, entry);
  }

  async order({ user, place, collection: index, ids, removed }: Of<'order'>): Promise<void> {
    const operation = 'POST /collections/{collection_id}/order';
    const id = this.idOf(index);
    const games = ids.map((n) => this.tenant.base + n);
    const gone = removed?.map((n) => this.tenant.base + n);
    const fields = { game_ids: games, remove_game_ids: gone };
    const answered = await this.call({ user, operation, path: { collection_id: String(id) }, fields, place });
    const collection = this.model.collections.get(id);
    if (
      this.refused(operation, answered, this.model.refusal(collection, this.tenant.user(user))) ||
      !collection
    )
      return;
    this.expect(operation, answered, 200, { success: true });
    const left = collection.entries.filter(({ game }) => !gone?.includes(game));
    const first = games.flatMap((game) => left.filter((entry) => entry.game === game));
    if (left.length < collection.entries.length || first.length > 0)
      this.model.touch(collection, [...this.moment]);
    collection.entries = [...first, ...left.filter((entry) => !first.includes(entry))];
  }

  async entries({
    user,
    collection: index,
    page,
    per_page,
  }: Partial<Of<'entries'>> & { user: number; collection: number }): Promise<void> {
    const operation = 'GET /collections/{collection_id}/collection-games';
    const id = this.idOf(index);
    const path = { collection_id: String(id) };
    const answered = await this.call({ user, operation, path, fields: { page, per_page } });
    const collection = this.model.collections.get(id);
    const me = this.tenant.user(user);
    if (!collection || !this.model.canSee(collection, me)) {
      this.refused(operation, answered, [404, 'invalid collection']);
      return;
    }
    const { collection_games, ...rest } = answered.json as { collection_games: JsonObject[] };
    const [at, size] = [page ?? 1, per_page ?? 100];
    const shown = collection.entries
      .filter(({ game }) => this.model.canViewGame(game, me))
      .slice((at - 1) * size, at * size);
    if (!isDeepStrictEqual(rest, { page: at, per_page: size }) || collection_games.length !== shown.length)
      this.fail(operation, 'has another page', answered, shown);
    shown.forEach((entry, i) =>
      this.compareEntry(operation, answered, collection_games[i]!, collection, entry),
    );
  }

  async list({ user, game }: { user: number; game?: number }): Promise<void> {
    const operation = 'GET /profile/collections';
    const game_id = game === undefined ? undefined : this.tenant.base + game;
    const answered = await this.call({ user, operation, fields: { game_id } });
    const expected = this.model.editableBy(this.tenant.user(user));
    const { collections } = answered.json as { collections: JsonObject[] };
    if (
      !isDeepStrictEqual(
        collections.map(({ id }) => id),
        expected.map(({ id }) => id),
      )
    )
      this.fail(
        operation,
        'lists others, or in another order',
        answered,
        expected.map(({ id }) => id),
      );
    expected.forEach((collection, i) =>
      this.compare(
        operation,
        answered,
        collections[i]!,
        collection,
        game_id === undefined ? {} : { has_game: collection.entries.some((entry) => entry.game === game_id) },
      ),
    );
  }

  /** Writes at the same time: which comes first is the service's business, but what is left must be a collection. */
  async burst({ collection: index, writes }: Of<'burst'>): Promise<void> {
    const collection = this.model.collections.get(this.idOf(index));
    if (!collection) return;
    const before = await readCollection(this.target.sql, collection.id);
    const started = Math.floor(Date.now() / 1000);
    await Promise.all(writes.map((write) => this.writeOf(collection.id, write)));
    const after = await readCollection(this.target.sql, collection.id);
    const games = new Set(after.entries.map(({ game_id }) => game_id));
    if (games.size !== after.entries.length || after.games_count !== games.size)
      throw new Finding('invariant', 'a burst of writes left a wrong count', JSON.stringify(after));
    const now: Moment = [started, Math.floor(Date.now() / 1000)];
    if (after.updated_at !== before.updated_at) this.model.touch(collection, now);
    collection.entries = after.entries.map(({ game_id, blurb, user_id }) => {
      const known = collection.entries.find((entry) => entry.game === game_id && entry.user_id === user_id);
      return { game: game_id, blurb, user_id, created_at: [known?.created_at[0] ?? started, now[1]] };
    });
  }

  private async writeOf(id: number, { user, ...write }: Write & { user: number }): Promise<void> {
    const path = { collection_id: String(id) };
    if (write.do === 'order') {
      const fields = { game_ids: write.ids.map((n) => this.tenant.base + n) };
      await this.call({ user, operation: 'POST /collections/{collection_id}/order', path, fields });
      return;
    }
    const operation = `POST /collections/{collection_id}/${write.do}-game`;
    await this.call({ user, operation, path, fields: { game_id: this.tenant.base + write.game } });
  }

  /** In the account pages. */
  async show({ user, collection: index, on }: Of<'show'>): Promise<void> {
    if (user === 3) return;
    const id = this.idOf(index);
    const session = await this.target.session(this.tenant, user);
    const { answer } = await session.post(`/user/settings/collections/${id}/on-profile`, {
      on: on ? 'yes' : 'no',
    });
    const collection = this.model.collections.get(id);
    const me = this.tenant.user(user);
    const allowed = collection !== undefined && this.model.canEdit(collection, me);
    if (answer.status !== (allowed ? 303 : 404))
      throw new Finding('model', 'on-profile is not what the model says', excerpt(answer));
    if (allowed) this.showsOn(collection, me, on);
  }

  // Credentials

  async makeKey({ user }: { user: number }): Promise<void> {
    if (user === 3) return;
    const path = '/user/settings/api-keys';
    const session = await this.target.session(this.tenant, user);
    const { answer } = await session.post(path, { label: 'fuzz <label>' });
    const { body } = (await session.get(path, true)).answer;
    const key = /gw_[0-9A-Za-z]{38}/.exec(body)?.[0];
    const id = Math.max(...[...body.matchAll(/api-keys\/(\d+)\/revoke/g)].map(([, one]) => Number(one)));
    if (answer.status !== 303 || !key) throw new Finding('model', 'a key is not made', excerpt(answer));
    if (body.includes('<label>')) throw new Finding('page', 'a label is not escaped', body.slice(0, 600));
    // Shown once: a second look is checked for credentials like any other page.
    await session.get(path);
    this.model.keys.push({ id, key, user, revoked: false });
  }

  async revokeKey({ user, key: index }: Of<'revoke key'>): Promise<void> {
    const key = this.model.keys[index];
    if (user === 3 || !key) return;
    const session = await this.target.session(this.tenant, user);
    const { answer } = await session.post(`/user/settings/api-keys/${key.id}/revoke`, {});
    const own = key.user === user && !key.revoked;
    if (answer.status !== (own ? 303 : 404))
      throw new Finding('model', 'revoking a key is not what the model says', excerpt(answer));
    key.revoked ||= own;
  }

  async useKey({ key: index }: { key: number }): Promise<void> {
    const key = this.model.keys[index];
    if (!key) return;
    const operation = 'GET /profile';
    const answered = await this.call({ user: key.user, operation, key: key.key });
    if (key.revoked) this.refused(operation, answered, [401, 'invalid key']);
    else this.expect(operation, answered, 200, { user: this.model.answers.user(this.tenant.user(key.user)) });
  }

  async makeToken({ user: given, place, key: index, game }: Of<'make token'>): Promise<void> {
    const operation = 'POST /credentials/subkey';
    const key = this.model.keys[index];
    const user = key?.user ?? given;
    const game_id = this.tenant.base + game;
    const answered = await this.call({
      user,
      operation,
      fields: { game_id, scope: 'profile:me' },
      place,
      key: key?.key,
    });
    if (key?.revoked) {
      this.refused(operation, answered, [401, 'invalid key']);
      return;
    }
    if (!this.model.canViewGame(game_id, this.tenant.user(user))) {
      this.refused(operation, answered, [404, 'invalid game']);
      return;
    }
    if (answered.answer.status !== 200) this.fail(operation, 'is refused', answered, game_id);
    this.model.tokens.push({ jwt: (answered.json as { key: string }).key, key, user });
  }

  async useToken({ token: index }: { token: number }): Promise<void> {
    const token = this.model.tokens[index];
    if (!token) return;
    const operation = 'GET /profile';
    const answered = await this.call({ user: token.user, operation, key: token.jwt });
    if (token.key?.revoked) this.refused(operation, answered, [401, 'invalid token']);
    else
      this.expect(operation, answered, 200, { user: this.model.answers.user(this.tenant.user(token.user)) });
  }

  // What is looked up

  async profile({ user }: { user: number }): Promise<void> {
    const operation = 'GET /profile';
    this.expect(operation, await this.call({ user, operation }), 200, {
      user: this.model.answers.user(this.tenant.user(user)),
    });
  }

  async games({ user }: { user: number }): Promise<void> {
    const operation = 'GET /profile/games';
    this.expect(
      operation,
      await this.call({ user, operation }),
      200,
      this.model.answers.games(this.tenant.user(user)),
    );
  }

  async sell({ game, buyer, amount, currency }: Of<'sell'>): Promise<void> {
    const purchase = {
      id: this.tenant.base + 50 + this.model.purchases.length,
      games: [this.tenant.base + game],
      bundle: false,
      email: this.tenant.email(buyer),
      user_id: this.tenant.user(buyer),
      currency,
      amount,
      status: 'complete',
      created_at: '2024-03-04T05:06:07Z',
    };
    if (this.model.purchases.length >= 30) return;
    await this.import(purchaseRecord(purchase), 'purchases');
    this.model.purchases.push(purchase);
  }

  async giveKey({ game, to, revoked }: Of<'give key'>): Promise<void> {
    const n = 50 + this.model.downloadKeys.length;
    if (this.model.downloadKeys.length >= 30) return;
    const key = {
      id: this.tenant.base + n,
      key: this.tenant.downloadKey(n),
      game_id: this.tenant.base + game,
      user_id: this.tenant.user(to),
      revoked,
      created_at: '2024-03-04T05:06:07Z',
    };
    await this.import(downloadKeyRecord(key), 'download_keys');
    this.model.downloadKeys.push(key);
  }

  private async import(record: JsonObject, table: string): Promise<void> {
    const name = 'POST /operator/import';
    const headers: [string, string][] = [
      ['Authorization', operatorAuthorization],
      ['Content-Type', 'application/x-ndjson'],
    ];
    const message = {
      method: 'POST',
      path: '/operator/import',
      headers,
      body: Buffer.from(ndjsonOf([record])),
    };
    const answered = await this.target.send(message, { operation: this.target.operation(name) });
    this.expect(name, answered, 200, {
      summary: [`${table} 1 new, 0 changed, 0 unchanged`],
      types: { [table]: { new: 1, changed: 0, unchanged: 0 } },
    });
  }

  async lookUp({ user, game, buyer, by, what }: Of<'look up'>): Promise<void> {
    const operation = `GET /games/{game_id}/${what}`;
    const game_id = this.tenant.base + game;
    const selector =
      by === 'email' ? { email: this.tenant.email(buyer) } : { user_id: this.tenant.user(buyer) };
    const answered = await this.call({
      user,
      operation,
      path: { game_id: String(game_id) },
      fields: selector,
    });
    const me = this.tenant.user(user);
    const expected =
      what === 'purchases'
        ? (this.model.answers.purchases(game_id, me, selector) ?? 'invalid game')
        : this.model.answers.downloadKey(game_id, me, selector);
    if (typeof expected === 'string') this.refused(operation, answered, [404, expected]);
    else this.expect(operation, answered, 200, expected);
  }

  /** All that is there is read once more by everyone, and the rows that no answer shows are compared. */
  private async lastLook(): Promise<void> {
    this.retryKey = undefined;
    for (const index of this.model.made.keys()) {
      const collection = this.model.collections.get(this.idOf(index));
      const user = collection ? collection.user_id - this.tenant.base : 1;
      await this.read({ user, collection: index });
      await this.entries({ user, collection: index });
    }
    for (const user of USERS) await this.list({ user });
    const { rows } = await this.target.sql.query<{ collection_id: number; user_id: number }>(
      'SELECT collection_id, user_id FROM profile_collections WHERE user_id = ANY($1) ORDER BY 1, 2',
      [USERS.map((n) => this.tenant.user(n))],
    );
    const shown = [...this.model.collections.values()].flatMap(({ id, shown_by }) =>
      [...shown_by].map((user_id) => ({ collection_id: id, user_id })),
    );
    shown.sort((a, b) => a.collection_id - b.collection_id || a.user_id - b.user_id);
    if (!isDeepStrictEqual(rows, shown))
      throw new Finding('model', 'other collections are on profiles', JSON.stringify({ rows, shown }));
  }
}
