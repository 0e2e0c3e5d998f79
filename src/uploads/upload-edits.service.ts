import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../audit/audit';
import { invalidGame } from '../games/errors';
import { gameTraitFor, UPDATE_TRAITS } from '../games/game-traits';
import { canEdit } from '../games/visibility';
import { Database } from '../platform/database/database';
import { bind, longRead, statement } from '../platform/database/statement';
import { KEY_OF_PUT } from './file-keys';
import { FileStorage } from './storage/file-storage';
import { Upload } from './upload.entity';
import { type FlatUploadRow, type UploadRow, uploadRow, uploadsWith } from './upload.row';
import { invalidUpload } from './uploads.service';

export const MAX_LISTED = 1000;

/** All uploads, or only $3. No row: the user can't edit the game. A row of nulls: the game has no uploads. */
export const OWN_UPLOADS = longRead<FlatUploadRow | { id: null }>(
  'own_uploads',
  `SELECT f.* FROM games g LEFT JOIN LATERAL (
     ${uploadsWith('f.game_id = g.id AND ($3::bigint IS NULL OR f.id = $3)')} ORDER BY f.position, f.id LIMIT ${MAX_LISTED}) f ON true
   WHERE g.id = $1 AND ${canEdit('g', '$2')} ORDER BY f.position, f.id`,
  'user $2',
);

/** Locks the game before every change of its uploads, so that two of them see each other's. */
export const LOCK_GAME = statement<{ id: number }>(
  'uploads_lock_game',
  `SELECT g.id FROM games g WHERE g.id = $1 AND ${canEdit('g', '$2')} FOR NO KEY UPDATE OF g`,
  'game $1',
);

const MOVE = statement(
  'uploads_move',
  `UPDATE uploads f SET position = moved.position FROM unnest($2::bigint[]) WITH ORDINALITY AS moved (id, position)
   WHERE f.id = moved.id AND f.game_id = $1 AND f.position <> moved.position`,
);

/** Whether a stored file of the game $1 with the key $2 may be deleted: this service stored it, and nothing else has it. */
const IS_UNUSED = statement<{ unused: boolean }>(
  'file_is_unused',
  `SELECT $2 ~ '${KEY_OF_PUT}' AND starts_with($2, $1 || '/')
     AND NOT EXISTS (SELECT FROM uploads WHERE game_id = $1::bigint AND file_key = $2)
     AND NOT EXISTS (SELECT FROM builds WHERE game_id = $1::bigint AND file_key = $2) AS unused`,
);

/** Keys of the stored files of the game $1. */
const KEYS_OF_GAME = statement<{ file_key: string }>(
  'file_keys_of_game',
  `SELECT file_key FROM (
     SELECT file_key FROM uploads WHERE game_id = $1::bigint
     UNION SELECT file_key FROM builds WHERE game_id = $1::bigint
     UNION SELECT f.file_key FROM builds b JOIN build_files f ON f.build_id = b.id WHERE b.game_id = $1::bigint) stored
   WHERE (file_key ~ '${KEY_OF_PUT}' OR starts_with(file_key, $1 || '/builds/')) AND starts_with(file_key, $1 || '/')`,
);

export type UploadChange = Pick<Upload, 'display_name' | 'traits' | 'hidden'>;

interface Editor {
  request_id: string;
  user_id: number;
}

/** The files of a game, for users who can edit it. */
@Injectable()
export class UploadEditsService {
  private readonly log = new Logger('Files');
  private deleting: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly database: Database,
    private readonly storage: FileStorage,
    private readonly audit: Audit,
  ) {}

  /** All of them, also those that players don't see, in their order. */
  async list(game_id: number, user_id: number, upload_id?: number): Promise<UploadRow[]> {
    const rows = await this.database.rows(OWN_UPLOADS, [game_id, user_id, upload_id ?? null]);
    if (rows.length === 0) throw invalidGame();
    return rows.flatMap((row) => (row.id === null ? [] : uploadRow(row)));
  }

  async one(game_id: number, upload_id: number, user_id: number): Promise<UploadRow> {
    const [upload] = await this.list(game_id, user_id, upload_id);
    if (!upload) throw invalidUpload();
    return upload;
  }

  async update(game_id: number, upload_id: number, change: UploadChange, editor: Editor): Promise<void> {
    await this.edit(game_id, editor, async (db) => {
      const upload = await this.find(db, game_id, upload_id);
      await db.update(Upload, { id: upload_id, game_id }, { ...change, updated_at: () => 'now()' });
      await this.updateTraits(db, game_id, [...upload.traits, ...change.traits]);
    });
    this.audit.record({ event: 'upload.updated', ...editor, game_id, upload_id });
  }

  /** Moves the upload before the previous one or after the next one. */
  async move(game_id: number, upload_id: number, by: -1 | 1, editor: Editor): Promise<void> {
    await this.edit(game_id, editor, async (db) => {
      const uploads = await db.find(Upload, {
        select: { id: true },
        where: { game_id },
        order: { position: 'ASC', id: 'ASC' },
      });
      const ids = uploads.map(({ id }) => id);
      const at = ids.indexOf(upload_id);
      if (at < 0) throw invalidUpload();
      const to = Math.min(Math.max(at + by, 0), ids.length - 1);
      ids.splice(to, 0, ...ids.splice(at, 1));
      await this.database.execute([bind(MOVE, [game_id, ids])], db);
    });
    this.audit.record({ event: 'upload.updated', ...editor, game_id, upload_id });
  }

  /** Deletes the upload and its own file. Builds of a channel stay. */
  async delete(game_id: number, upload_id: number, editor: Editor): Promise<void> {
    const file_key = await this.edit(game_id, editor, async (db) => {
      const upload = await this.find(db, game_id, upload_id);
      await db.delete(Upload, { id: upload_id, game_id });
      await this.updateTraits(db, game_id, upload.traits);
      return upload.file_key;
    });
    if (file_key !== null) await this.deleteUnused(game_id, file_key);
    this.audit.record({ event: 'upload.deleted', ...editor, game_id, upload_id });
  }

  /** Deletes a stored file of the game that no record has any more. */
  async deleteUnused(game_id: number, file_key: string): Promise<void> {
    const found = await this.database.row(IS_UNUSED, [String(game_id), file_key]);
    if (found?.unused) await this.storage.delete(file_key);
  }

  /** The keys of all files that this service stored for the game. */
  async storedKeys(game_id: number, db: EntityManager): Promise<string[]> {
    const getRows = await this.database.execute([bind(KEYS_OF_GAME, [String(game_id)])], db);
    return getRows(KEYS_OF_GAME).map(({ file_key }) => file_key);
  }

  /** Deletes the stored files of a deleted game, after the response. What fails is logged. */
  deleteFiles(keys: readonly string[]): void {
    const deleted = (async () => {
      for (const key of keys) await this.storage.delete(key);
    })();
    this.deleting = Promise.all([this.deleting, deleted]).catch((error: Error) =>
      this.log.warn(`Files of a deleted game could not be deleted: ${error.message}`),
    );
  }

  /** Waits until files of deleted games are deleted. */
  async settled(): Promise<void> {
    await this.deleting;
  }

  /** Platforms and demos that the game shows, after a change of uploads with these traits. */
  async updateTraits(db: EntityManager, game_id: number, traits: Upload['traits']): Promise<void> {
    const affected = [...new Set(traits.map(gameTraitFor))];
    if (affected.length > 0) await this.database.execute([bind(UPDATE_TRAITS, [game_id, affected])], db);
  }

  private async edit<Result>(
    game_id: number,
    { user_id }: Editor,
    work: (db: EntityManager) => Promise<Result>,
  ): Promise<Result> {
    return this.database.transaction(async (db) => {
      const locked = await this.database.execute([bind(LOCK_GAME, [game_id, user_id])], db);
      if (locked(LOCK_GAME).length === 0) throw invalidGame();
      return work(db);
    });
  }

  private async find(db: EntityManager, game_id: number, upload_id: number): Promise<Upload> {
    const upload = await db.findOneBy(Upload, { id: upload_id, game_id });
    if (!upload) throw invalidUpload();
    return upload;
  }
}
