import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../../test/support/world/json';
import { type Collection, UNSEEN } from './model';
import type { Play } from './play';
import type { Of } from './steps';

export async function create(play: Play, { user, place, game, blurb, ...step }: Of<'create'>): Promise<void> {
  const operation = 'POST /collections';
  const game_id = game === undefined ? undefined : play.tenant.base + game;
  const { title, description, layout } = step;
  const fields = { title, private: step.private, description, layout, game_id, blurb };
  const received = await play.call({ user, operation, fields, place });
  const owner = play.tenant.user(user);
  if (game_id !== undefined && !play.model.canViewGame(game_id, owner)) {
    play.rejected(operation, received, [404, 'invalid game']);
    return;
  }
  const given = play.given(operation, received, 'collection', fields);
  const note = game_id === undefined || blurb === undefined ? null : play.stored(blurb);
  const collection: Collection = {
    id: given.id as number,
    user_id: owner,
    title: title?.trim() || `${play.tenant.username(user)}'s Collection`,
    private: step.private ?? false,
    description: description === undefined ? null : play.stored(description),
    layout: layout ?? (note === UNSEEN ? undefined : note === null ? 'grid' : 'list'),
    created_at: [...play.moment],
    updated_at: [...play.moment],
    touched: play.model.nextTouch,
    admins: [],
    shown_by: new Set(),
    entries: [],
  };
  if (game_id !== undefined)
    collection.entries.push({ game: game_id, blurb: note, user_id: owner, created_at: [...play.moment] });
  if (play.model.collections.has(collection.id))
    play.fail(operation, 'returns an ID twice', received, collection.id);
  play.compare(operation, received, given, collection);
  play.model.put(collection);
}

const UPDATE = 'POST /collections/{collection_id}';

export async function update(play: Play, step: Of<'update'>): Promise<void> {
  const { title, description, layout, on_profile } = step;
  const fields = { title, private: step.private, description, layout, on_profile };
  const about = await play.about(UPDATE, step, fields);
  if (!about) return;
  const { received, collection, me } = about;
  const given = play.given(UPDATE, received, 'collection', fields);
  const before = pickState(collection);
  if (title !== undefined) collection.title = title.trim();
  if (step.private !== undefined) collection.private = step.private;
  if (description !== undefined) collection.description = play.stored(description);
  if (layout !== undefined) collection.layout = layout;
  if (on_profile !== undefined) showsOn(collection, me, on_profile);
  // The sanitized HTML is taken from the response, and the rest is compared below.
  const after = { ...pickState(collection), description: given.description };
  if (!isDeepStrictEqual(before, after)) play.model.touch(collection, [...play.moment]);
  play.compare(UPDATE, received, given, collection);
}

const pickState = ({ title, private: hidden, description, layout }: Collection) => ({
  title,
  hidden,
  description,
  layout,
});

function showsOn(collection: Collection, user: number, on: boolean): void {
  if (on) collection.shown_by.add(user);
  else collection.shown_by.delete(user);
}

/** Sends the stored value again, which must change nothing. */
export async function resubmit(play: Play, step: Of<'resubmit'>): Promise<void> {
  const stored = play.model.collections.get(play.createdId(step.collection));
  if (!stored || typeof stored.description !== 'string') return;
  const fields = { description: stored.description };
  const about = await play.about(UPDATE, { ...step, user: stored.user_id - play.tenant.base }, fields);
  if (!about) return;
  const { received, collection } = about;
  play.compare(UPDATE, received, play.given(UPDATE, received, 'collection', fields), collection);
}

export async function deleteCollection(play: Play, step: Of<'delete'>): Promise<void> {
  const operation = 'POST /collections/{collection_id}/delete';
  const about = await play.about(operation, step);
  if (!about) return;
  play.expect(operation, about.received, 200, { success: true });
  play.model.collections.delete(about.collection.id);
}

export async function read(play: Play, step: { user: number; collection: number }): Promise<void> {
  const operation = 'GET /collections/{collection_id}';
  const about = await play.about(operation, step);
  if (!about) return;
  const { received, collection } = about;
  play.compare(operation, received, play.given(operation, received, 'collection', step), collection);
}

export async function list(play: Play, { user, game }: { user: number; game?: number }): Promise<void> {
  const operation = 'GET /profile/collections';
  const game_id = game === undefined ? undefined : play.tenant.base + game;
  const received = await play.call({ user, operation, fields: { game_id } });
  const expected = play.model.editableBy(play.tenant.user(user));
  const { collections } = received.json as { collections: JsonObject[] };
  if (
    !isDeepStrictEqual(
      collections.map(({ id }) => id),
      expected.map(({ id }) => id),
    )
  )
    play.fail(
      operation,
      'lists others, or in another order',
      received,
      expected.map(({ id }) => id),
    );
  expected.forEach((collection, i) =>
    play.compare(
      operation,
      received,
      collections[i]!,
      collection,
      game_id === undefined ? {} : { has_game: collection.entries.some((entry) => entry.game === game_id) },
    ),
  );
}
