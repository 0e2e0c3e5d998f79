import { baseCollections, canView, COLLECTION_CREATED, type Tenant } from '../../../test/support/world/world';

/** Unix times between which something happened. */
export type Moment = [earliest: number, latest: number];

/** Sanitized HTML that no response has contained yet. */
export const UNSEEN = Symbol('unseen');
export type Html = string | null | typeof UNSEEN;

export interface Entry {
  game: number;
  blurb: Html;
  user_id: number;
  created_at: Moment;
}

export interface Collection {
  id: number;
  user_id: number;
  title: string;
  private: boolean;
  description: Html;
  layout: 'grid' | 'list' | undefined;
  created_at: Moment;
  updated_at: Moment;
  /** The number of its last write among all writes. */
  touched: number;
  admins: number[];
  shown_by: Set<number>;
  entries: Entry[];
}

export type OAuthError = [status: number, text: string];

export const second = (time: string) => Date.parse(time) / 1000;

/** The expected contents of a tenant's part of the store after the requests so far. */
export class Model {
  readonly collections = new Map<number, Collection>();
  /** IDs in the order of creation, including deleted ones. */
  readonly made: number[] = [];
  private writes = 0;

  constructor(readonly tenant: Tenant) {
    const created: Moment = [second(COLLECTION_CREATED), second(COLLECTION_CREATED)];
    for (const { games, ...base } of baseCollections(tenant))
      this.put({
        ...base,
        title: `Base ${base.id}`,
        description: null,
        layout: 'grid',
        created_at: created,
        updated_at: created,
        touched: 0,
        shown_by: new Set(),
        entries: games.map((game) => ({ game, blurb: null, user_id: base.user_id, created_at: created })),
      });
  }

  put(collection: Collection): void {
    this.collections.set(collection.id, collection);
    this.made.push(collection.id);
  }

  touch(collection: Collection, at: Moment): void {
    collection.updated_at = at;
    collection.touched = ++this.writes;
  }

  get nextTouch(): number {
    return ++this.writes;
  }

  canEdit({ user_id, admins }: Collection, user: number): boolean {
    return user_id === user || admins.includes(user);
  }

  canSee(collection: Collection, user: number): boolean {
    return !collection.private || this.canEdit(collection, user);
  }

  canViewGame(id: number, user: number): boolean {
    const game = this.tenant.game(id);
    return game !== undefined && canView(game, user);
  }

  /** The error if the user may not read the collection. */
  hides(collection: Collection | undefined, user: number): OAuthError | undefined {
    return collection && this.canSee(collection, user) ? undefined : [404, 'invalid collection'];
  }

  /** The error if the user may not change the collection. */
  rejection(collection: Collection | undefined, user: number): OAuthError | undefined {
    return (
      this.hides(collection, user) ??
      (this.canEdit(collection!, user) ? undefined : [403, "you can't edit this collection"])
    );
  }

  /** Collections that the user can edit, last updated first; within the same write by descending ID. */
  editableBy(user: number): Collection[] {
    return [...this.collections.values()]
      .filter((collection) => this.canEdit(collection, user))
      .sort((a, b) => b.touched - a.touched || b.id - a.id);
  }
}
