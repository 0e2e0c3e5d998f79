import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { deriveKey } from '../../auth/accounts/encryption';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { bind, statement } from '../../platform/database/statement';
import { apiError, badRequest, tooMany } from '../../platform/errors/api-error';
import { ServiceUrl } from '../../platform/server/service-url';
import { LOCK_OWNER } from '../lock-owner';
import { FileStorage } from '../storage/file-storage';
import type { PartRange } from './content-range';
import { KEPT_BLOCK_BYTES, type PartBody } from './part-body';
import { type Part, readParts } from './read-parts';
import type { UploadSession } from './upload-session.entity';

/** An object in the storage has at most this many bytes. */
const MAX_PART_BYTES = 16 * 1024 * 1024;
/**
 * Maximum number of parts of a file, in addition to one for each 256 KiB, the smallest part that the upload
 * tool sends.
 */
const MAX_SMALL_PARTS = 1000;
const LIFETIME_MS = 24 * 3600 * 1000;
/**
 * Limits of the unfinished sessions for one owner's games: their number, and their bytes as a multiple of
 * FILES_MAX_BYTES.
 */
export const MAX_SESSIONS = 100;
const MAX_STORED_FILES = 4;
const SWEEP_INTERVAL_MS = 50_000;
const SWEPT_TOGETHER = 100;

export type Session = Pick<UploadSession, 'id' | 'game_id' | 'max_bytes' | 'size' | 'received'>;

export const isComplete = ({ size, received }: Pick<Session, 'size' | 'received'>) => size === received;

/** The unexpired sessions `o` of games with the owner of the game `g`. */
const OF_OWNER =
  'FROM games og JOIN upload_sessions o ON o.game_id = og.id WHERE og.user_id = g.user_id AND o.expires_at > $now';

/** SQL condition: the owner of the game `g` may store more parts. `$max_bytes`: FILES_MAX_BYTES. */
const HAS_QUOTA = `(SELECT coalesce(sum(o.received), 0) < ${MAX_STORED_FILES}::numeric * $max_bytes::bigint ${OF_OWNER})`;

const CREATE = statement<{ id: string }>(
  'create_upload_session',
  `INSERT INTO upload_sessions (id, game_id, max_bytes, size, created_at, expires_at)
   SELECT $session_id, g.id, $max_bytes, $size::bigint, $now, $expires_at FROM games g
   WHERE g.id = $game_id AND (SELECT count(*) < ${MAX_SESSIONS} ${OF_OWNER}) AND ${HAS_QUOTA}
   RETURNING id`,
);

const SESSION = `SELECT s.id, s.game_id, s.max_bytes, s.size, s.received FROM upload_sessions s
   WHERE s.id = $session_id AND s.expires_at > $now AND s.game_id IS NOT NULL`;
const FIND = statement<Session>('upload_session', SESSION);

const FIND_TO_WRITE = statement<Session & { parts: number; has_quota: boolean }>(
  'upload_session_to_write',
  `SELECT s.*, (SELECT count(*) FROM upload_parts p WHERE p.session_id = s.id) AS parts,
     ${HAS_QUOTA} AS has_quota
   FROM (${SESSION}) s JOIN games g ON g.id = s.game_id`,
);

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
  'DELETE FROM upload_parts WHERE session_id = $id AND file_key = $key',
);

const PARTS = statement<Part>(
  'upload_parts',
  'SELECT file_key, start, size FROM upload_parts WHERE session_id = $id AND size IS NOT NULL ORDER BY start',
);

const EXPIRE = statement(
  'expire_upload_session',
  `UPDATE upload_sessions SET expires_at = '-infinity' WHERE id = $id`,
);

const EXPIRED = statement<{ id: string }>(
  'expired_upload_sessions',
  `SELECT id FROM upload_sessions WHERE (expires_at <= $now OR game_id IS NULL) AND id > $last
   ORDER BY id LIMIT ${SWEPT_TOGETHER}`,
);
const KEYS = statement<{ file_key: string }>(
  'upload_part_keys',
  'SELECT file_key FROM upload_parts WHERE session_id = $id',
);
const DELETE_PARTS = statement(
  'delete_upload_parts',
  'DELETE FROM upload_parts WHERE session_id = $id AND file_key = ANY ($keys::text[])',
);
const DELETE_SESSION = statement(
  'delete_upload_session',
  `DELETE FROM upload_sessions s WHERE id = $id AND NOT EXISTS (SELECT FROM upload_parts WHERE session_id = s.id)`,
);

/**
 * Files that clients upload in parts, over one or many connections and to any replica. Parts are objects of the storage
 * until another service stores the complete file.
 */
@Injectable()
export class UploadSessions implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger('UploadSessions');
  private readonly secret: Buffer;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly database: Database,
    private readonly storage: FileStorage,
    private readonly clock: Clock,
    private readonly service: ServiceUrl,
    private readonly host: HttpAdapterHost,
  ) {
    this.secret = deriveKey(settings.API_KEY_PEPPER ?? '', 'gamewharf upload sessions');
  }

  onApplicationBootstrap(): void {
    // Without an HTTP adapter, this process runs an operator's command.
    if (!this.host.httpAdapter) return;
    // Random, so that replicas don't sweep at the same second.
    this.timer = setInterval(() => void this.sweep(), SWEEP_INTERVAL_MS * (0.8 + Math.random() / 5)).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  /**
   * Starts a session for a file of the game, for a caller who may edit it. `size`: if it is known. Throws 429 if the
   * owner of the game has too many unfinished sessions.
   */
  async create(game_id: number, size?: number): Promise<{ id: string; upload_url: string }> {
    const { FILES_MAX_BYTES: max } = this.settings;
    if (size !== undefined && size > max) throw tooLarge();
    const id = randomUUID();
    const now = this.clock.now();
    const create = bind(CREATE, {
      session_id: id,
      game_id,
      max_bytes: max,
      size: size ?? null,
      now: new Date(now),
      expires_at: new Date(now + LIFETIME_MS),
    });
    const rows = await this.database.transaction((db) =>
      this.database.execute([bind(LOCK_OWNER, { game_id }), create], db),
    );
    if (rows(CREATE).length === 0) throw tooMany('too many unfinished uploads');
    return { id, upload_url: this.sessionUrl(id) };
  }

  /** The URL to which parts are sent. It needs no credential. */
  sessionUrl(id: string): string {
    return `${this.service.url}/upload-sessions/${id}.${this.sign(id)}`;
  }

  /** The ID in a token that this service signed. */
  idIn(token: string): string {
    const [, id, signature] = /^([0-9a-f-]{36})\.([\w-]{43})$/.exec(token) ?? [];
    const isSigned =
      id !== undefined &&
      timingSafeEqual(Buffer.from(signature!, 'base64url'), Buffer.from(this.sign(id), 'base64url'));
    if (!isSigned) throw invalidSession();
    return id;
  }

  /** Undefined if the session doesn't exist or has expired, or if its game was deleted. */
  find(id: string): Promise<Session | undefined> {
    return this.database.row(FIND, { session_id: id, now: new Date(this.clock.now()) });
  }

  async require(id: string): Promise<Session> {
    const session = await this.find(id);
    if (!session) throw invalidSession();
    return session;
  }

  /** Stores a part, as far as it continues what is stored. Returns the bytes stored so far. */
  async receive(
    id: string,
    { part, size }: Required<Pick<PartRange, 'part'>> & PartRange,
    body: PartBody,
  ): Promise<Session> {
    const { start, end } = part;
    const session = await this.database.row(FIND_TO_WRITE, {
      session_id: id,
      now: new Date(this.clock.now()),
      max_bytes: this.settings.FILES_MAX_BYTES,
    });
    if (!session) throw invalidSession();
    if (isComplete(session)) throw apiError(409, 'the file is already complete');
    if (Math.max(end, size ?? 0) > session.max_bytes) throw tooLarge();
    requireWithin(session, end, size);
    if (start > session.received || end <= session.received) return session;
    if (!session.has_quota) throw tooMany('too many unfinished uploads');
    if (session.parts >= MAX_SMALL_PARTS + session.received / KEPT_BLOCK_BYTES)
      throw tooMany('too many small parts');
    await body.skip(session.received - start);
    for (let at = session.received; at < end && !body.isCut; at += MAX_PART_BYTES)
      if (!(await this.storePart(id, at, Math.min(MAX_PART_BYTES, end - at), size ?? null, body))) break;
    const stored = await this.require(id);
    // A concurrent request may have sent another size first.
    requireWithin(stored, end, size);
    return stored;
  }

  private async storePart(
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
    let kept = 0;
    try {
      const content = Readable.from(body.takeObject(start, bytes, (stored) => (kept = stored)));
      await this.storage.put(key, bytes, content, new AbortController().signal);
      if (await this.database.row(END_PART, { ...part, part_size: kept, size })) return true;
      await this.dropPart(id, key);
    } catch (error) {
      await this.dropPart(id, key);
      // If the content ended without a block to keep, the storage's error is only a consequence.
      if (kept > 0 || !body.isCut) throw error;
    }
    return false;
  }

  private async dropPart(id: string, key: string): Promise<void> {
    await this.storage.delete(key);
    await this.database.rows(DROP_PART, { id, key });
  }

  /** The stored parts, in the order of the file. */
  parts(id: string): Promise<Part[]> {
    return this.database.rows(PARTS, { id });
  }

  /** Copies the bytes of a session to a separate file, whose key must be new. */
  async store(id: string, key: string, signal: AbortSignal): Promise<{ size: number; md5_hash: string }> {
    const parts = await this.parts(id);
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

  /** Expires a session and deletes its parts. The next sweep repeats failed deletions. */
  async discard(id: string): Promise<void> {
    await this.database.rows(EXPIRE, { id });
    await this.deleteSession(id).catch((error: Error) => this.warn(error));
  }

  /** Deletes expired sessions and those of deleted games. */
  async sweep(): Promise<void> {
    const now = new Date(this.clock.now());
    let last = '00000000-0000-0000-0000-000000000000';
    try {
      for (let found; (found = await this.database.rows(EXPIRED, { now, last })).length > 0;)
        for (const { id } of found) await this.deleteSession((last = id));
    } catch (error) {
      this.warn(error as Error);
    }
  }

  private async deleteSession(id: string): Promise<void> {
    const keys = (await this.database.rows(KEYS, { id })).map(({ file_key }) => file_key);
    for (const key of keys) await this.storage.delete(key);
    await this.database.execute([bind(DELETE_PARTS, { id, keys }), bind(DELETE_SESSION, { id })]);
  }

  private warn(error: Error): void {
    this.log.warn(`Parts of uploads could not be deleted: ${error.message}`);
  }

  private sign(id: string): string {
    return createHmac('sha256', this.secret).update(id).digest('base64url');
  }
}

function requireWithin(session: Session, end: number, size: number | undefined): void {
  if (session.size !== null && (end > session.size || (size ?? session.size) !== session.size))
    throw badRequest(`Content-Range must be within the ${session.size} bytes of the file`);
}

export const invalidSession = () => apiError(404, 'invalid upload session');
const tooLarge = () => apiError(413, 'the file is too large');
