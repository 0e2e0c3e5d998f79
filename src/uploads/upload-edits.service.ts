import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../audit/audit';
import { invalidGame } from '../games/errors';
import { gameTraitFor, UPDATE_TRAITS } from '../games/game-traits';
import { canEdit } from '../games/visibility';
import { Database } from '../platform/database/database';
import { longRead, statement } from '../platform/database/statement';
import { UnusedFiles } from './unused-files.service';
import { Upload } from './upload.entity';
import { type FlatUploadRow, type UploadRow, uploadRow, uploadsWith } from './upload.row';
import { invalidUpload } from './uploads.service';

const MAX_LISTED_UPLOADS = 1000;

/** All uploads, or only one. No row: the user can't edit the game. A row of nulls: the game has no uploads. */
const OWN_UPLOADS = longRead<FlatUploadRow | { id: null }>(
  'own_uploads',
  `SELECT f.* FROM games g LEFT JOIN LATERAL (
     ${uploadsWith('f.game_id = g.id AND ($upload_id::bigint IS NULL OR f.id = $upload_id)')} ORDER BY f.position, f.id LIMIT ${MAX_LISTED_UPLOADS}) f ON true
   WHERE g.id = $game_id AND ${canEdit('g', '$user_id')} ORDER BY f.position, f.id`,
  'user $user_id',
);

/** Locks the game before every change of its uploads, so that concurrent changes see each other. */
export const LOCK_EDITED_GAME = statement<{ id: number }>(
  'lock_edited_game',
  `SELECT g.id FROM games g WHERE g.id = $game_id AND ${canEdit('g', '$user_id')} FOR NO KEY UPDATE OF g`,
  'game $game_id',
);

const MOVE = statement(
  'uploads_move',
  `UPDATE uploads f SET position = moved.position FROM unnest($ids::bigint[]) WITH ORDINALITY AS moved (id, position)
   WHERE f.id = moved.id AND f.game_id = $game_id AND f.position <> moved.position`,
);

export type UploadChange = Pick<Upload, 'display_name' | 'traits' | 'hidden'>;

interface Editor {
  request_id: string;
  user_id: number;
}

/** The files of a game, for users who can edit it. */
@Injectable()
export class UploadEditsService {
  constructor(
    private readonly database: Database,
    private readonly unused: UnusedFiles,
    private readonly audit: Audit,
  ) {}

  /** The uploads of a game in their order, including those that players don't see. */
  async list(game_id: number, user_id: number, upload_id?: number): Promise<UploadRow[]> {
    const rows = await this.database.rows(OWN_UPLOADS, { game_id, user_id, upload_id: upload_id ?? null });
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
      await this.database.rows(MOVE, { game_id, ids }, db);
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
    if (file_key !== null) await this.unused.deleteDue([file_key]);
    this.audit.record({ event: 'upload.deleted', ...editor, game_id, upload_id });
  }

  /** Platforms and demos that the game shows, after a change of uploads with these traits. */
  async updateTraits(db: EntityManager, game_id: number, traits: Upload['traits']): Promise<void> {
    const affected = [...new Set(traits.map(gameTraitFor))];
    if (affected.length > 0) await this.database.rows(UPDATE_TRAITS, { game_id, affected }, db);
  }

  private async edit<Result>(
    game_id: number,
    { user_id }: Editor,
    work: (db: EntityManager) => Promise<Result>,
  ): Promise<Result> {
    return this.database.transaction(
      async (db) => {
        if (!(await this.database.row(LOCK_EDITED_GAME, { game_id, user_id }, db))) throw invalidGame();
        return work(db);
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }

  private async find(db: EntityManager, game_id: number, upload_id: number): Promise<Upload> {
    const upload = await db.findOneBy(Upload, { id: upload_id, game_id });
    if (!upload) throw invalidUpload();
    return upload;
  }
}
