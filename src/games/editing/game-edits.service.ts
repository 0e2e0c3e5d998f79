import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit, type AuditEvent } from '../../audit/audit';
import { forbidden } from '../../auth/access/errors';
import { IdempotencyService, type RetryKey, type Work } from '../../idempotency/idempotency.service';
import { StoreLinks } from '../../platform/config/store-links';
import { Database } from '../../platform/database/database';
import { violatedConstraint } from '../../platform/database/sqlstates';
import type { Packed } from '../../platform/database/packed-row';
import { bind, statement } from '../../platform/database/statement';
import { badRequest } from '../../platform/errors/api-error';
import type { SuccessResponse } from '../../platform/output/success-response';
import { invalidGame } from '../errors';
import { gameResponse } from '../game.dto';
import { GAME_ROW } from '../game.row';
import { UnusedFiles } from '../../uploads/unused-files.service';
import { slugify } from '../slug';
import { canEdit } from '../visibility';
import { DEPENDENTS, deleteParts, lockBeforeDeletion } from './game-deletion';
import type { CreateGameRequest, EditedGameResponse, UpdateGameRequest } from './game-edits.dto';

export const MAX_GAMES = 10_000;

// Serializes one user's requests to create games, so that they can't exceed MAX_GAMES.
const LOCK_GAME_OWNER = statement(
  'game_owner_lock',
  'SELECT pg_advisory_xact_lock(7305810, hashint8($user_id::bigint))',
  'user $user_id',
);

// A game with a price gets `can_be_bought`. It keeps the trait without a price, because buyers can pay more
// than the minimum price.
const CREATE_GAME = statement<Packed & { developer: boolean; full: boolean }>(
  'game_create',
  `WITH account AS (SELECT u.id, u.developer FROM users u WHERE u.id = $user_id),
   own AS (
     SELECT count(*) >= ${MAX_GAMES} AS full FROM (SELECT FROM games WHERE user_id = $user_id LIMIT ${MAX_GAMES}) counted),
   created AS (
     INSERT INTO games (user_id, title, slug, short_text, cover_url, type, min_price, traits, visibility, published_at)
     SELECT account.id, $title, $slug, $short_text, $cover_url, $type, $min_price, CASE WHEN $min_price::bigint > 0 THEN '{can_be_bought}'::text[] ELSE '{}' END, $visibility,
       CASE WHEN $published::boolean THEN now() END
     FROM account, own WHERE account.developer AND NOT own.full
     RETURNING *)
   SELECT account.developer, own.full, ${GAME_ROW.sql} FROM account CROSS JOIN own LEFT JOIN created g ON true`,
);

// NULL: unchanged. '' clears a text.
const UPDATE_GAME = statement<Packed>(
  'game_update',
  `WITH updated AS (
     UPDATE games g SET
       title = coalesce($title, g.title),
       slug = coalesce($slug, g.slug),
       short_text = nullif(coalesce($short_text, g.short_text), ''),
       cover_url = nullif(coalesce($cover_url, g.cover_url), ''),
       type = coalesce($type, g.type),
       min_price = coalesce($min_price::bigint, g.min_price),
       traits = CASE WHEN $min_price::bigint > 0 AND NOT 'can_be_bought' = ANY (g.traits)
         THEN g.traits || '{can_be_bought}'::text[] ELSE g.traits END,
       visibility = coalesce($visibility, g.visibility),
       published_at = CASE $published::boolean WHEN true THEN coalesce(g.published_at, now()) WHEN false THEN NULL
         ELSE g.published_at END
     WHERE g.id = $game_id AND ${canEdit('g', '$user_id')}
     RETURNING g.*)
   SELECT ${GAME_ROW.sql} FROM updated g`,
  'game $game_id',
);

// The game to delete, in the form that the statements of game deletions expect.
const GAME_TO_DELETE = '(SELECT g.id FROM games g WHERE g.id = $game_id AND g.user_id = $user_id) t';

const LOCK_COLLECTIONS_OF_GAME = statement(
  'game_delete_lock_collections',
  lockBeforeDeletion(GAME_TO_DELETE),
);

const LOCK_GAME = statement<{ owned: boolean }>(
  'game_delete_lock',
  `SELECT g.user_id = $user_id AS owned FROM games g WHERE g.id = $game_id AND ${canEdit('g', '$user_id')} FOR UPDATE OF g`,
  'game $game_id',
);

const COUNT_DEPENDENTS = statement<Record<string, number>>(
  'game_delete_dependents',
  `SELECT ${Object.entries(DEPENDENTS)
    .map(([name, rows]) => `(SELECT count(*) FROM ${rows}) AS "${name}"`)
    .join(', ')}
   FROM ${GAME_TO_DELETE}`,
);

const DELETE_GAME = [
  ...deleteParts(GAME_TO_DELETE),
  'DELETE FROM games WHERE id = $game_id AND user_id = $user_id',
].map((text, i) => statement(`game_delete_${i + 1}`, text));

export interface Editor {
  request_id: string;
  user_id: number;
}

/** Creates, changes and deletes games for their developers, over the API and on pages. */
@Injectable()
export class GameEditsService {
  constructor(
    private readonly database: Database,
    private readonly idempotency: IdempotencyService,
    private readonly audit: Audit,
    private readonly unused: UnusedFiles,
    private readonly links: StoreLinks,
  ) {}

  async create(request: CreateGameRequest, editor: Editor, key?: RetryKey): Promise<EditedGameResponse> {
    const { title, slug = slugify(title), type = 'default', min_price = 0, visibility = 'private' } = request;
    const { short_text, cover_url, published = false } = request;
    if (slug === '') throw badRequest('slug is required, as the title has no Latin letters or digits');
    const { user_id } = editor;
    const game = { user_id, title, slug, short_text, cover_url, type, min_price, visibility, published };
    const created = await this.once(key, request, async (manager) => {
      const getRows = await this.database.execute(
        [bind(LOCK_GAME_OWNER, { user_id }), bind(CREATE_GAME, game)],
        manager,
      );
      const [row] = getRows(CREATE_GAME);
      if (!row?.developer) throw forbidden('developer account required');
      if (row.full) throw badRequest('too many games');
      return { game: gameResponse(GAME_ROW.read(row), this.links) };
    });
    this.record(created, 'game.created', editor, created.response.game.id);
    return created.response;
  }

  async update(request: UpdateGameRequest, editor: Editor, key?: RetryKey): Promise<EditedGameResponse> {
    const { game_id, title, slug, short_text, cover_url, type, min_price, visibility, published } = request;
    const cleared = (text: string | null | undefined) => (text === null ? '' : text);
    const values = {
      game_id,
      user_id: editor.user_id,
      title,
      slug,
      short_text: cleared(short_text),
      cover_url: cleared(cover_url),
      type,
      min_price,
      visibility,
      published,
    };
    const updated = await this.once(key, request, async (manager) => {
      const row = await this.database.row(UPDATE_GAME, values, manager);
      if (!row) throw invalidGame();
      return { game: gameResponse(GAME_ROW.read(row), this.links) };
    });
    const fields = Object.entries(request).flatMap(([name, value]) =>
      name === 'game_id' || value === undefined ? [] : name,
    );
    this.record(updated, 'game.updated', editor, game_id, { fields });
    return updated.response;
  }

  /** Only the owner can delete a game, and only one without purchases and keys. */
  async delete({ game_id }: { game_id: number }, editor: Editor, key?: RetryKey): Promise<SuccessResponse> {
    const remove = async (manager: EntityManager): Promise<SuccessResponse> => {
      const ids = { game_id, user_id: editor.user_id };
      // Collections are locked before games, in the order in which other writes lock them.
      const getRows = await this.database.execute(
        [bind(LOCK_COLLECTIONS_OF_GAME, ids), bind(LOCK_GAME, ids)],
        manager,
      );
      const [game] = getRows(LOCK_GAME);
      if (!game) throw invalidGame();
      if (!game.owned) throw forbidden("you can't delete this game");
      const counted = await this.database.row(COUNT_DEPENDENTS, ids, manager);
      const dependents = describeDependents(counted!);
      if (dependents !== '') throw badRequest(`the game has ${dependents}: make it private instead`);
      await this.database.execute(
        DELETE_GAME.map((one) => bind(one, ids)),
        manager,
      );
      return { success: true };
    };
    const deleted = await this.once(key, { game_id }, (manager) =>
      this.database.transaction(remove, { manager, concurrencyKey: `user ${editor.user_id}` }),
    );
    this.unused.wake();
    this.record(deleted, 'game.deleted', editor, game_id);
    return deleted.response;
  }

  private async once<Response extends object>(
    key: RetryKey | undefined,
    request: object,
    work: Work<Response>,
  ): Promise<{ response: Response; isRepeated: boolean }> {
    try {
      return await this.idempotency.run(key, request, work);
    } catch (error) {
      const constraint = violatedConstraint(error);
      throw constraint === 'games_slug_key' ? badRequest('slug is taken by another game') : error;
    }
  }

  private record(
    { isRepeated }: { isRepeated: boolean },
    event: AuditEvent['event'],
    editor: Editor,
    game_id: number,
    details: Partial<AuditEvent> = {},
  ): void {
    if (!isRepeated) this.audit.record({ event, ...editor, game_id, ...details });
  }
}

/** `2 purchases and 1 download key`; empty if there are none. */
const describeDependents = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}${count === 1 ? '' : 's'}`)
    .join(' and ');
