import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { longRead } from '../platform/database/statement';
import { RECORD_SIGNATURE } from '../wharf/build-files';
import { BuildFileError } from '../wharf/pwr/build-file-error';
import { signZip } from '../wharf/zip/zip-signature';
import { BuildFolders } from './build-folders';
import { newFileKey } from './file-keys';
import { FileStorage } from './storage/file-storage';
import { FolderStorage } from './storage/folder-storage';
import { UnusedFiles } from './unused-files.service';

/** A build with a zip archive in the storage, without a signature. */
interface UnsignedBuild {
  id: number;
  game_id: number;
  channel_name: string;
  file_key: string;
  size: number;
}

interface Channel {
  game_id: number;
  channel_name: string;
}

const BUILDS_PER_SLICE = 100;

const UNSIGNED = `SELECT b.id, b.game_id, b.channel_name, b.file_key, b.size FROM builds b
  WHERE b.state = 'completed' AND b.file_key ILIKE '%.zip'
    AND NOT EXISTS (SELECT FROM build_files o WHERE o.build_id = b.id AND o.type = 'signature')`;

/** Builds after `$after`; `$game_id`: only those of one game. */
const UNSIGNED_SLICE = longRead<UnsignedBuild>(
  'unsigned_builds',
  `${UNSIGNED} AND b.id > $after AND ($game_id::bigint IS NULL OR b.game_id = $game_id) ORDER BY b.id LIMIT ${BUILDS_PER_SLICE}`,
);

const NEWEST_UNSIGNED = longRead<UnsignedBuild>(
  'newest_unsigned_build',
  `${UNSIGNED} AND b.id = (
     SELECT o.id FROM builds o WHERE o.game_id = $game_id AND o.channel_name = $channel_name AND o.state = 'completed' AND o.size IS NOT NULL
     ORDER BY o.id DESC LIMIT 1)`,
);

/** Computes the signatures of zip archives, from which launchers update a game. Pushed builds have theirs. */
@Injectable()
export class BuildSignatures {
  constructor(
    private readonly database: Database,
    private readonly storage: FileStorage,
    private readonly unused: UnusedFiles,
    private readonly folders: BuildFolders,
    private readonly settings: Settings,
  ) {}

  /** Builds that have no signature yet, oldest first. */
  async *unsigned(game_id?: number): AsyncGenerator<UnsignedBuild> {
    let after = 0;
    for (;;) {
      const slice = await this.database.rows(UNSIGNED_SLICE, { after, game_id: game_id ?? null });
      yield* slice;
      if (slice.length < BUILDS_PER_SLICE) return;
      after = slice.at(-1)!.id;
    }
  }

  /** Signs the newest build of a channel, if it is a zip archive. Returns why the archive can't have a signature. */
  async signNewest({ game_id, channel_name }: Channel, signal: AbortSignal): Promise<string | undefined> {
    const [build] = await this.database.rows(NEWEST_UNSIGNED, { game_id, channel_name });
    return build && this.sign(build, signal);
  }

  /** Returns why the archive can't have a signature; undefined if it has one now. */
  async sign(build: UnsignedBuild, signal: AbortSignal): Promise<string | undefined> {
    try {
      await this.folders.with(`signature-${build.id}.${randomUUID()}`, async (folder) => {
        const archive = await this.findPath(build, folder, signal);
        const signature = join(folder, 'signature');
        await signZip({ archive, signature, maxBytes: this.settings.FILES_MAX_BYTES }, signal);
        await this.store(build, signature, signal);
      });
      return undefined;
    } catch (error) {
      if (error instanceof BuildFileError) return error.message;
      throw error;
    }
  }

  private async store(build: UnsignedBuild, path: string, signal: AbortSignal): Promise<void> {
    const key = newFileKey({ game_id: build.game_id, filename: `build-${build.id}.pws` });
    const { size } = await stat(path);
    await this.unused.announce(key);
    await this.storage.put(key, size, createReadStream(path), signal);
    const values = { build_id: build.id, archive_key: build.file_key, size, signature_key: key };
    if (!(await this.database.row(RECORD_SIGNATURE, values))) await this.unused.delete([key]);
  }

  private async findPath(
    { file_key, size }: UnsignedBuild,
    folder: string,
    signal: AbortSignal,
  ): Promise<string> {
    if (this.storage instanceof FolderStorage) {
      const file = await this.storage.find(file_key);
      if (!file) throw new BuildFileError('The archive is missing in the storage.');
      return join(file.root, file.path);
    }
    const path = join(folder, 'archive');
    await pipeline(Readable.from(this.storage.read(file_key, 0, size)), createWriteStream(path), { signal });
    return path;
  }
}
