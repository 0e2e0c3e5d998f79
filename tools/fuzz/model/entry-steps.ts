import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../../test/support/world/json';
import { Finding } from '../oracles';
import { type Moment, UNSEEN } from './model';
import type { Play } from './play';
import type { Of, Write } from './steps';
import { readCollection } from './tenant-rows';

export async function addGame(play: Play, step: Of<'add'>): Promise<void> {
  const operation = 'POST /collections/{collection_id}/add-game';
  const { blurb } = step;
  const game_id = play.tenant.base + step.game;
  const about = await play.about(operation, step, { game_id, blurb });
  if (!about) return;
  const { received, collection, me } = about;
  if (!play.model.canViewGame(game_id, me)) {
    play.rejected(operation, received, [404, 'invalid game']);
    return;
  }
  let entry = collection.entries.find((one) => one.game === game_id);
  if (!entry) {
    const note = blurb === undefined ? null : play.stored(blurb);
    entry = { game: game_id, blurb: note, user_id: me, created_at: [...play.moment] };
    collection.entries.push(entry);
    play.model.touch(collection, [...play.moment]);
  }
  const given = play.given(operation, received, 'collection_game', game_id);
  play.compareEntry(operation, received, given, collection, entry);
}

export async function removeGame(play: Play, step: Of<'remove'>): Promise<void> {
  const operation = 'POST /collections/{collection_id}/remove-game';
  const game_id = play.tenant.base + step.game;
  const about = await play.about(operation, step, { game_id });
  if (!about) return;
  const { received, collection } = about;
  const at = collection.entries.findIndex((entry) => entry.game === game_id);
  if (at >= 0) {
    collection.entries.splice(at, 1);
    play.model.touch(collection, [...play.moment]);
  }
  play.expect(operation, received, 200, { success: true, removed: at >= 0 });
}

export async function note(play: Play, step: Of<'note'>): Promise<void> {
  const operation = 'POST /collections/{collection_id}/collection-games/{game_id}';
  const { blurb } = step;
  const game_id = play.tenant.base + step.game;
  await seeBlurbs(play, play.createdId(step.collection));
  const about = await play.about(operation, step, { blurb }, { game_id: String(game_id) });
  if (!about) return;
  const { received, collection, me } = about;
  const entry = collection.entries.find((one) => one.game === game_id);
  if (!entry || !play.model.canViewGame(game_id, me)) {
    play.rejected(operation, received, [404, 'game is not in the collection']);
    return;
  }
  const given = play.given(operation, received, 'collection_game', blurb);
  if (blurb !== undefined) {
    if (given.blurb !== entry.blurb) play.model.touch(collection, [...play.moment]);
    entry.blurb = play.stored(blurb);
  }
  play.compareEntry(operation, received, given, collection, entry);
}

/** Reads sanitized HTML that no response has contained yet. */
async function seeBlurbs(play: Play, id: number): Promise<void> {
  const unseen = play.model.collections.get(id)?.entries.filter(({ blurb }) => blurb === UNSEEN) ?? [];
  if (unseen.length === 0) return;
  const { entries } = await readCollection(play.target.sql, id);
  for (const entry of unseen)
    entry.blurb = entries.find(({ game_id }) => game_id === entry.game)?.blurb ?? null;
}

export async function order(play: Play, step: Of<'order'>): Promise<void> {
  const operation = 'POST /collections/{collection_id}/order';
  const games = step.ids.map((n) => play.tenant.base + n);
  const gone = step.removed?.map((n) => play.tenant.base + n);
  const about = await play.about(operation, step, { game_ids: games, remove_game_ids: gone });
  if (!about) return;
  const { received, collection } = about;
  play.expect(operation, received, 200, { success: true });
  const left = collection.entries.filter(({ game }) => !gone?.includes(game));
  const first = games.flatMap((game) => left.filter((entry) => entry.game === game));
  const ordered = [...first, ...left.filter((entry) => !first.includes(entry))];
  if (left.length < collection.entries.length || ordered.some((entry, i) => entry !== left[i]))
    play.model.touch(collection, [...play.moment]);
  collection.entries = ordered;
}

export async function entries(
  play: Play,
  step: Partial<Of<'entries'>> & { user: number; collection: number },
): Promise<void> {
  const operation = 'GET /collections/{collection_id}/collection-games';
  const { page, per_page } = step;
  const about = await play.about(operation, step, { page, per_page });
  if (!about) return;
  const { received, collection, me } = about;
  const { collection_games, ...rest } = received.json as { collection_games: JsonObject[] };
  const [at, size] = [page ?? 1, per_page ?? 100];
  const shown = collection.entries
    .filter(({ game }) => play.model.canViewGame(game, me))
    .slice((at - 1) * size, at * size);
  if (!isDeepStrictEqual(rest, { page: at, per_page: size }) || collection_games.length !== shown.length)
    play.fail(operation, 'has another page', received, shown);
  shown.forEach((entry, i) =>
    play.compareEntry(operation, received, collection_games[i]!, collection, entry),
  );
}

/** Concurrent writes: the service decides their order, but the result must be a valid collection. */
export async function burst(play: Play, { collection: index, writes }: Of<'burst'>): Promise<void> {
  const collection = play.model.collections.get(play.createdId(index));
  if (!collection) return;
  const before = await readCollection(play.target.sql, collection.id);
  const started = Math.floor(Date.now() / 1000);
  // Waits for all of them, even if one was interrupted: none may overlap with the next case.
  const written = await Promise.allSettled(
    writes.map((write, i) => sendWrite(play, collection.id, write, i)),
  );
  for (const one of written) if (one.status === 'rejected') throw one.reason;
  const after = await readCollection(play.target.sql, collection.id);
  const games = new Set(after.entries.map(({ game_id }) => game_id));
  if (games.size !== after.entries.length || after.games_count !== games.size)
    throw new Finding('invariant', 'a burst of writes left a wrong count', JSON.stringify(after));
  const now: Moment = [started, Math.floor(Date.now() / 1000)];
  if (after.updated_at !== before.updated_at) play.model.touch(collection, now);
  collection.entries = after.entries.map(({ game_id, blurb, user_id }) => {
    const known = collection.entries.find((entry) => entry.game === game_id && entry.user_id === user_id);
    return { game: game_id, blurb, user_id, created_at: [known?.created_at[0] ?? started, now[1]] };
  });
}

async function sendWrite(
  play: Play,
  id: number,
  { user, ...write }: Write & { user: number },
  replica: number,
): Promise<void> {
  const path = { collection_id: String(id) };
  if (write.do === 'order') {
    const fields = { game_ids: write.ids.map((n) => play.tenant.base + n) };
    await play.call({ user, operation: 'POST /collections/{collection_id}/order', path, fields, replica });
    return;
  }
  const operation = `POST /collections/{collection_id}/${write.do}-game`;
  await play.call({ user, operation, path, fields: { game_id: play.tenant.base + write.game }, replica });
}
