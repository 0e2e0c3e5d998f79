import { isDeepStrictEqual } from 'node:util';
import { type Ask, type Field, buildMessage } from '../../../test/support/world/message';
import type { Json, JsonObject } from '../../../test/support/world/json';
import { checkDescribed, excerpt, Finding } from '../oracles';
import type { Received, Target } from '../target';
import { embeddedGame, type Tenant } from '../../../test/support/world/world';
import {
  type Collection,
  type Entry,
  type Html,
  Model,
  type Moment,
  type OAuthError,
  second,
  UNSEEN,
} from './model';
import { unsafeMarkup } from './safe-html';
import type { Place } from './steps';

const NOBODYS = 999_999_999;

type Fields = Record<string, Json | undefined>;

interface Call {
  user: number;
  operation: string;
  path?: Record<string, string>;
  fields?: Fields;
  place?: Place;
  replica?: number;
}

/** The result of a request about a collection that its user may access. */
interface About {
  received: Received;
  collection: Collection;
  me: number;
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

/** A tenant's part of the service next to its model: steps use it to send requests and to compare. */
export class Play {
  readonly model: Model;
  /** The time of the last request. */
  moment: Moment = [0, 0];
  /** The Idempotency-Key with which changes are sent twice. */
  retryKey: string | undefined;
  /** The replica to use; a repeated request goes to another one. */
  replica = 0;

  constructor(
    readonly target: Target,
    readonly tenant: Tenant,
  ) {
    this.model = new Model(tenant);
  }

  async call({
    user,
    operation,
    path = {},
    fields = {},
    place = 'form',
    replica = this.replica,
  }: Call): Promise<Received> {
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
    const message = buildMessage(ask, this.tenant.key(user));
    const about = { operation: this.target.operation(operation) };
    const before = Date.now();
    const received = await this.target.send(message, about, replica);
    this.moment = [Math.floor(before / 1000), Math.floor(Date.now() / 1000)];
    checkDescribed(about.operation, received.response, false);
    if (ask.headers.length > 0) {
      const again = await this.target.send(message, about, replica + 1);
      if (
        again.response.body !== received.response.body ||
        again.response.status !== received.response.status
      )
        this.fail(
          operation,
          'returns something else when it is repeated with its Idempotency-Key',
          again,
          received.json,
        );
    }
    return received;
  }

  /** Reads or changes a collection; returns undefined if it was rejected as expected. */
  async about(
    operation: string,
    { user, place, collection: index }: { user: number; place?: Place; collection: number },
    fields: Fields = {},
    more: Record<string, string> = {},
  ): Promise<About | undefined> {
    const id = this.createdId(index);
    const path = { collection_id: String(id), ...more };
    const received = await this.call({ user, operation, path, fields, place });
    const collection = this.model.collections.get(id);
    const me = this.tenant.user(user);
    const rejection = operation.startsWith('GET')
      ? this.model.hides(collection, me)
      : this.model.rejection(collection, me);
    return this.rejected(operation, received, rejection)
      ? undefined
      : { received, collection: collection!, me };
  }

  /** The member of a successful response with this name. */
  given(operation: string, received: Received, name: string, sent: unknown): JsonObject {
    if (received.response.status !== 200) this.fail(operation, 'is rejected', received, sent);
    return (received.json as Record<string, JsonObject>)[name]!;
  }

  /** Changes the replica, like a load balancer between two requests of one browser. */
  changeReplica(): void {
    this.replica = 1 - this.replica;
  }

  fail(operation: string, what: string, { response }: Received, expected: unknown): never {
    const shown = JSON.stringify(expected, (_, value: unknown) => (value === UNSEEN ? 'unseen' : value));
    throw new Finding('model', `${operation} ${what}`, `${excerpt(response)}\nexpected: ${shown}`);
  }

  expect(operation: string, received: Received, status: number, body: unknown): void {
    if (
      received.response.status !== status ||
      !isDeepStrictEqual(received.json, JSON.parse(JSON.stringify(body)))
    )
      this.fail(operation, `differs from the model`, received, { status, body });
  }

  /** Whether the request was rejected as expected. */
  rejected(operation: string, received: Received, rejection: OAuthError | undefined): boolean {
    if (!rejection) return false;
    this.expect(operation, received, rejection[0], { errors: [rejection[1]] });
    return true;
  }

  private time(operation: string, received: Received, given: unknown, moment: Moment): void {
    const at = second(String(given));
    if (!(at >= moment[0] - 1 && at <= moment[1] + 1))
      this.fail(operation, 'has another time', received, moment);
    moment[0] = moment[1] = at;
  }

  private html(
    operation: string,
    received: Received,
    given: Json | undefined,
    expected: Html,
  ): string | null {
    const html = given as string | null;
    const why = html === null ? undefined : unsafeMarkup(html);
    if (why) this.fail(operation, 'returns unsafe HTML', received, why);
    if (expected !== UNSEEN && html !== expected)
      this.fail(operation, 'returns other HTML', received, expected);
    return html;
  }

  compare(
    operation: string,
    received: Received,
    given: JsonObject,
    collection: Collection,
    more: JsonObject = {},
  ): void {
    this.time(operation, received, given.created_at, collection.created_at);
    this.time(operation, received, given.updated_at, collection.updated_at);
    collection.description = this.html(operation, received, given.description, collection.description);
    collection.layout ??= given.layout as 'grid' | 'list';
    if (!String(given.url).startsWith(`https://gamewharf.example/c/${collection.id}/`))
      this.fail(operation, 'has another URL', received, collection.id);
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
      this.fail(operation, 'has another collection', received, expected);
  }

  compareEntry(
    operation: string,
    received: Received,
    given: JsonObject,
    collection: Collection,
    entry: Entry,
  ): void {
    this.time(operation, received, given.created_at, entry.created_at);
    entry.blurb = this.html(operation, received, given.blurb, entry.blurb);
    const expected = {
      collection_id: collection.id,
      game_id: entry.game,
      position: collection.entries.indexOf(entry) + 1,
      blurb: entry.blurb,
      user_id: entry.user_id,
      created_at: given.created_at,
      game: embeddedGame(this.tenant.game(entry.game)!, this.tenant),
    };
    if (!isDeepStrictEqual(given, expected)) this.fail(operation, 'has another entry', received, expected);
  }

  createdId(index: number): number {
    return this.model.made[index] ?? NOBODYS;
  }

  /** The expected result of sanitizing a text, if it is known without sanitizing. */
  stored(html: string): Html {
    return /[<>&]/.test(html) ? UNSEEN : html.trim() || null;
  }
}
