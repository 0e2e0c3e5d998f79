import { createHash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { bind, type BoundStatement, statement } from '../../platform/database/statement';
import { FileStorage } from '../storage/file-storage';
import type { PartBody } from './part-body';
import { type Part, readParts } from './read-parts';
import { HAS_QUOTA } from './session-quota';

/** An object in the storage has at most this many bytes. */
export const MAX_PART_BYTES = 16 * 1024 * 1024;

// A part is recorded before it is written, so that the object is found and deleted even if this process is
// killed meanwhile. The quota is checked for each object, because a request may send a whole file.
const BEGIN_PART = statement<{ file_key: string }>(
  'begin_upload_part',
  `INSERT INTO upload_parts (session_id, file_key, start)
   SELECT s.id, $file_key, $start FROM upload_sessions s JOIN games g ON g.id = s.game_id
   WHERE s.id = $session_id AND s.received = $start AND ${HAS_QUOTA} RETURNING file_key`,
);

// Only the first of two requests with the same part finds the session as both have read it.
const END_PART = statement<{ received: number }>(
  'end_upload_part',
  `WITH changed AS (
     UPDATE upload_sessions SET received = $start::bigint + $part_size, size = coalesce(size, $size::bigint)
     WHERE id = $session_id AND received = $start
       AND coalesce(size, $size) IS NOT DISTINCT FROM coalesce($size, size) RETURNING received),
   kept AS (
     UPDATE upload_parts SET size = $part_size
     WHERE session_id = $session_id AND file_key = $file_key AND EXISTS (SELECT FROM changed))
   SELECT received FROM changed`,
);

const DROP_PART = statement(
  'drop_upload_part',
  'DELETE FROM upload_parts WHERE session_id = $session_id AND file_key = $file_key',
);

const PARTS = statement<Part>(
  'upload_parts',
  'SELECT file_key, start, size FROM upload_parts WHERE session_id = $session_id AND size IS NOT NULL ORDER BY start',
);

const KEYS = statement<{ file_key: string }>(
  'upload_part_keys',
  'SELECT file_key FROM upload_parts WHERE session_id = $session_id',
);
const DELETE_PARTS = statement(
  'delete_upload_parts',
  'DELETE FROM upload_parts WHERE session_id = $session_id AND file_key = ANY ($file_keys::text[])',
);

/** The parts of upload sessions, which are objects of the storage. */
@Injectable()
export class UploadParts {
  constructor(
    private readonly settings: Settings,
    private readonly database: Database,
    private readonly storage: FileStorage,
    private readonly clock: Clock,
  ) {}

  /** The stored parts, in the order of the file. */
  list(id: string): Promise<Part[]> {
    return this.database.rows(PARTS, { session_id: id });
  }

  /**
   * Stores the next part, or its first blocks if the body is cut. Returns false if no block was stored, or if another
   * request has stored the part.
   */
  async store(
    id: string,
    start: number,
    bytes: number,
    size: number | null,
    body: PartBody,
  ): Promise<boolean> {
    const key = `parts/${id}.${randomUUID()}`;
    const part = { session_id: id, file_key: key, start };
    const limits = { now: new Date(this.clock.now()), max_bytes: this.settings.FILES_MAX_BYTES };
    if (!(await this.database.row(BEGIN_PART, { ...part, ...limits }))) return false;
    let storedBytes = 0;
    try {
      const content = Readable.from(body.takeObject(start, bytes, (stored) => (storedBytes = stored)));
      await this.storage.put(key, bytes, content, new AbortController().signal);
    } catch (error) {
      await this.drop(id, key);
      // If the content ended without a block to keep, the storage's error is only a consequence.
      if (storedBytes > 0 || !body.isCut) throw error;
      return false;
    }
    // If this throws, because the connection is lost, the part may be recorded. So its object is kept until
    // the session is deleted.
    if (await this.database.row(END_PART, { ...part, part_size: storedBytes, size })) return true;
    await this.drop(id, key);
    return false;
  }

  /** Copies the bytes of a session to a separate file, whose key must be new. */
  async copy(id: string, key: string, signal: AbortSignal): Promise<{ size: number; md5_hash: string }> {
    const parts = await this.list(id);
    const size = parts.reduce((sum, part) => sum + part.size, 0);
    const md5 = createHash('md5');
    const { storage } = this;
    const measured = async function* () {
      for await (const chunk of readParts(storage, parts)) {
        md5.update(chunk);
        yield chunk;
      }
    };
    await storage.put(key, size, Readable.from(measured()), signal);
    return { size, md5_hash: md5.digest('hex') };
  }

  /**
   * Deletes the objects of a session's parts, also of those that were never completed. Returns the statement that
   * deletes the parts.
   */
  async deleteObjects(id: string): Promise<BoundStatement> {
    const keys = (await this.database.rows(KEYS, { session_id: id })).map(({ file_key }) => file_key);
    for (const key of keys) await this.storage.delete(key);
    return bind(DELETE_PARTS, { session_id: id, file_keys: keys });
  }

  private async drop(id: string, key: string): Promise<void> {
    await this.storage.delete(key);
    await this.database.rows(DROP_PART, { session_id: id, file_key: key });
  }
}
