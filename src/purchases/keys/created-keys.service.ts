import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../../audit/audit';
import type { Actor } from '../../operator/tokens/actor';
import { OperatorEvents } from '../../operator/tokens/operator-events';
import { forbidden } from '../../auth/access/errors';
import { EDITED_GAMES_PAGE } from '../../games/edited-games';
import { invalidGame } from '../../games/errors';
import type { Game } from '../../games/game.entity';
import { canEdit } from '../../games/visibility';
import { Database } from '../../platform/database/database';
import { bind, longRead, read, statement } from '../../platform/database/statement';
import { apiError, badRequest } from '../../platform/errors/api-error';
import { type Cursor, NEWEST_CURSOR } from '../../platform/input/cursor';
import { KeyPages } from '../../platform/server/key-pages';
import { IdempotencyService, type RetryKey, type Work } from '../../idempotency/idempotency.service';
import type { SuccessResponse } from '../../platform/output/success-response';
import {
  type CreatedDownloadKeysResponse,
  createdKeyResponse,
  type CreateDownloadKeysRequest,
  type RevokeDownloadKeyRequest,
} from './download-key.dto';
import type { CreatedKeyRow } from './download-key.row';
import { newDownloadKey } from './new-download-key';

export const MAX_UNCLAIMED = 10_000;
export const MAX_COUNTED_KEYS = 1000;
const TOO_MANY = `a game can have at most ${MAX_UNCLAIMED} unclaimed download keys`;
/**
 * Fields of a response that are not stored for retries: a label may identify a person, and an erasure deletes it only
 * from the key.
 */
const UNSTORED_FIELDS = ['label'];

/** The game, if the user can edit it. */
export const GAME_OF_KEYS = `SELECT g.id, g.title FROM games g WHERE g.id = $game_id AND ${canEdit('g', '$user_id')}`;

/** Checked before a retry, because its stored response contains the texts of keys. */
const EDITED_GAME = read('created_keys_game', GAME_OF_KEYS);

// A separate statement, so that the next one counts the keys that were committed while this one waited.
const LOCK_GAME_OF_KEYS = statement(
  'created_keys_lock',
  `${GAME_OF_KEYS} FOR NO KEY UPDATE OF g`,
  'game $game_id',
);

/** No row: the user can't edit the game. A row of nulls: too many keys. */
const CREATE_KEYS = statement<CreatedKeyRow | { id: null }>(
  'created_keys_create',
  `WITH game AS (${GAME_OF_KEYS}),
   unclaimed AS (
     SELECT count(*) AS count FROM (
       SELECT FROM download_keys
       WHERE game_id = $game_id AND purchase_id IS NULL AND email IS NULL AND user_id IS NULL AND revoked_at IS NULL
       LIMIT ${MAX_UNCLAIMED}) counted),
   created AS (
     INSERT INTO download_keys (key, game_id, label)
     SELECT k.key, game.id, $label FROM game, unclaimed, unnest($keys::text[]) AS k (key)
     WHERE unclaimed.count + cardinality($keys::text[]) <= ${MAX_UNCLAIMED}
     RETURNING id, game_id, key, label, created_at, downloads)
   SELECT created.* FROM game LEFT JOIN created ON true ORDER BY created.id`,
);

/** No row: the user can't edit the game. A row of nulls: no such key. `revoked` is false for a key of a purchase. */
const REVOKE_CREATED_KEYS = statement<{ id: number | null; revoked: boolean }>(
  'created_keys_revoke',
  `WITH game AS (${GAME_OF_KEYS}),
   found AS (
     SELECT dk.id, dk.purchase_id FROM download_keys dk JOIN game ON game.id = dk.game_id
     WHERE dk.id = $download_key_id AND dk.revoked_at IS NULL FOR UPDATE OF dk),
   revoked AS (
     UPDATE download_keys dk SET revoked_at = now() FROM found
     WHERE dk.id = found.id AND found.purchase_id IS NULL RETURNING dk.id)
   SELECT found.id, revoked.id IS NOT NULL AS revoked
   FROM game LEFT JOIN found ON true LEFT JOIN revoked ON true`,
);

const CREATE_FREE_KEY = statement(
  'create_free_key',
  'INSERT INTO download_keys (key, game_id, email, user_id) VALUES ($key, $game_id, $email, $user_id)',
);

export interface GameWithKeys extends Pick<Game, 'id' | 'created_at' | 'title'> {
  /** Keys without a purchase, at most one more than MAX_COUNTED_KEYS. */
  created: number;
  /** Created keys that any player can redeem, at most one more than MAX_COUNTED_KEYS. */
  unclaimed: number;
}

const KEYS_OF_GAME = 'FROM download_keys WHERE game_id = g.id AND purchase_id IS NULL';

const KEYS_PAGE = longRead<GameWithKeys>(
  'games_with_keys_page',
  `SELECT g.id, g.created_at, g.title,
     (SELECT count(*) FROM (SELECT ${KEYS_OF_GAME} LIMIT ${MAX_COUNTED_KEYS + 1}) counted) AS created,
     (SELECT count(*) FROM (SELECT ${KEYS_OF_GAME} AND email IS NULL AND user_id IS NULL AND revoked_at IS NULL
                            LIMIT ${MAX_COUNTED_KEYS + 1}) counted) AS unclaimed
   FROM ${EDITED_GAMES_PAGE} ORDER BY g.created_at DESC, g.id DESC`,
  'user $user_id',
);

export interface Seller {
  request_id: string;
  user_id: number;
}

/** Download keys without a purchase: sellers create and revoke them, and operators create some. */
@Injectable()
export class CreatedKeysService {
  constructor(
    private readonly database: Database,
    private readonly idempotency: IdempotencyService,
    private readonly audit: Audit,
    private readonly events: OperatorEvents,
    private readonly pages: KeyPages,
  ) {}

  /** A page of the games that the user can edit, newest first, and one more if there is a next page. */
  games(user_id: number, { at, id }: Cursor = NEWEST_CURSOR): Promise<GameWithKeys[]> {
    return this.database.rows(KEYS_PAGE, { user_id, at, id });
  }

  async create(
    request: CreateDownloadKeysRequest,
    actor: Seller,
    retry?: RetryKey,
  ): Promise<CreatedDownloadKeysResponse> {
    const { game_id, count, label = null } = request;
    const keys = Array.from({ length: count }, newDownloadKey);
    const { user_id } = actor;
    const create = async (manager?: EntityManager) => {
      const getRows = await this.database.execute(
        [bind(LOCK_GAME_OF_KEYS, { game_id, user_id }), bind(CREATE_KEYS, { game_id, user_id, keys, label })],
        manager,
      );
      const rows = getRows(CREATE_KEYS);
      if (rows.length === 0) throw invalidGame();
      if (rows[0]!.id === null) throw badRequest(TOO_MANY);
      return { download_keys: (rows as CreatedKeyRow[]).map((row) => createdKeyResponse(row, this.pages)) };
    };
    const { download_keys } = await this.once('download_key.created', request, count, actor, retry, create);
    const labeled = download_keys.map(({ id, game_id, key, ...more }) =>
      Object.assign({ id, game_id, key, label }, more),
    );
    return { download_keys: labeled };
  }

  /** Creates a free key for a buyer, on behalf of an operator. Returns the text of the key. */
  async createFree(
    game_id: number,
    { email = null, user_id = null }: { email?: string | null; user_id?: number | null },
    by: Actor,
  ): Promise<string> {
    const key = newDownloadKey();
    await this.database.rows(CREATE_FREE_KEY, { key, game_id, email, user_id });
    this.events.record('download_key.created', by, { counts: { games: 1, keys: 1 } });
    return key;
  }

  async revoke(request: RevokeDownloadKeyRequest, actor: Seller, retry?: RetryKey): Promise<SuccessResponse> {
    const { game_id, download_key_id } = request;
    return this.once('download_key.revoked', request, 1, actor, retry, async (manager) => {
      const values = { game_id, user_id: actor.user_id, download_key_id };
      const row = await this.database.row(REVOKE_CREATED_KEYS, values, manager);
      if (!row) throw invalidGame();
      if (row.id === null) throw apiError(404, 'invalid download key');
      if (!row.revoked) throw forbidden("you can't revoke a purchased download key");
      return { success: true };
    });
  }

  private async once<Response extends object>(
    event: 'download_key.created' | 'download_key.revoked',
    request: { game_id: number },
    count: number,
    actor: Seller,
    retry: RetryKey | undefined,
    work: Work<Response>,
  ): Promise<Response> {
    const { game_id } = request;
    if (retry && !(await this.database.row(EDITED_GAME, { game_id, user_id: actor.user_id })))
      throw invalidGame();
    const { response, isRepeated } = await this.idempotency.run(retry, request, work, UNSTORED_FIELDS);
    if (!isRepeated) this.audit.record({ event, ...actor, game_id, count });
    return response;
  }
}
