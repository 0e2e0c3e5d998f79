import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../platform/database/database';
import { Game } from '../games/game.entity';
import { Build } from '../wharf/build.entity';
import { newFileKey } from './file-keys';
import { FileStorage } from './storage/file-storage';
import { UnusedFiles } from './unused-files.service';
import { Upload } from './upload.entity';

export interface NewFile {
  game_id: number;
  filename: string;
  size: number;
  content: AsyncIterable<Buffer>;
  traits: Upload['traits'];
  display_name: string | null;
  /** The channel of which the file is a new build. */
  channel_name?: string;
  user_version?: string;
}

@Injectable()
export class FilesService {
  constructor(
    private readonly database: Database,
    private readonly storage: FileStorage,
    private readonly unused: UnusedFiles,
  ) {}

  /**
   * Copies a file into the storage, and then records it. Every file gets its own key, so that stored ones never change.
   */
  async put(file: NewFile, signal: AbortSignal, progress: (bytes: number) => void): Promise<Upload> {
    const file_key = newFileKey(file);
    const md5 = createHash('md5');
    let bytes = 0;
    const measured = async function* () {
      for await (const chunk of file.content) {
        md5.update(chunk);
        progress((bytes += chunk.length));
        yield chunk;
      }
    };
    await this.unused.announce(file_key);
    await this.storage.put(file_key, file.size, Readable.from(measured()), signal);
    const stored = { file_key, size: bytes, md5_hash: md5.digest('hex') };
    try {
      return await this.database.transaction((db) => recordFile(db, file, stored));
    } catch (error) {
      await this.unused.delete([file_key]);
      throw error;
    }
  }

  /** Deletes an upload and its own file. Builds of a channel stay. Returns false if the upload doesn't exist. */
  async remove(id: number): Promise<boolean> {
    const key = await this.database.transaction(async (db) => {
      const upload = await db.findOneBy(Upload, { id });
      if (!upload) return undefined;
      await db.delete(Upload, { id });
      await this.unused.record([upload.file_key], db);
      return upload.file_key;
    });
    if (key) await this.unused.deleteDue([key]);
    return key !== undefined;
  }

  list(game_id: number): Promise<Upload[]> {
    return this.database.transaction((db) =>
      db.find(Upload, { where: { game_id }, order: { position: 'ASC', id: 'ASC' } }),
    );
  }
}

type Stored = Pick<Upload, 'file_key' | 'size' | 'md5_hash'>;

/** Lists a stored file as an upload, or as a new build of its channel. */
export async function recordFile(
  db: EntityManager,
  file: Omit<NewFile, 'content'>,
  stored: Stored,
): Promise<Upload> {
  const { game_id, filename, traits, display_name, channel_name, user_version } = file;
  // Two builds of a new channel must not create two uploads.
  await db.findOneOrFail(Game, { where: { id: game_id }, lock: { mode: 'for_no_key_update' } });
  const shown = { game_id, filename, traits, display_name };
  if (channel_name === undefined) return insertUpload(db, { ...shown, ...stored });
  await db.insert(Build, { game_id, channel_name, user_version, ...stored });
  const upload = await db.findOne(Upload, { where: { game_id, channel_name }, order: { id: 'ASC' } });
  if (!upload) return insertUpload(db, { ...shown, channel_name });
  const changed = { filename, ...(traits.length && { traits }), updated_at: () => 'now()' };
  await db.update(Upload, { id: upload.id }, changed);
  return db.findOneByOrFail(Upload, { id: upload.id });
}

async function insertUpload(db: EntityManager, upload: Partial<Upload>): Promise<Upload> {
  // A new upload is listed after the game's other uploads.
  const last = await db.maximum(Upload, 'position', { game_id: upload.game_id });
  const { identifiers } = await db.insert(Upload, {
    ...upload,
    position: last === null ? 0 : Number(last) + 1,
  });
  return db.findOneByOrFail(Upload, { id: (identifiers[0] as { id: number }).id });
}
