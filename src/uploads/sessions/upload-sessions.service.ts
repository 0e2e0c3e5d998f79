import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import type { EntityManager } from 'typeorm';
import { deriveKey } from '../../auth/accounts/encryption';
import { Clock, staggered } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { bind, statement } from '../../platform/database/statement';
import { apiError, badRequest, tooMany } from '../../platform/errors/api-error';
import { ServiceUrl } from '../../platform/server/service-url';
import { LOCK_FILE_OWNER } from '../lock-owner';
import type { PartRange } from './content-range';
import { KEPT_BLOCK_BYTES, type PartBody } from './part-body';
import { HAS_QUOTA, OF_OWNER } from './session-quota';
import { MAX_PART_BYTES, UploadParts } from './upload-parts.service';
import type { UploadSession } from './upload-session.entity';

/**
 * Maximum number of parts of a file, in addition to one for each 256 KiB, the smallest part that the upload
 * tool sends.
 */
const MAX_SMALL_PARTS = 1000;
const SESSION_LIFETIME_MS = 24 * 3600 * 1000;
/** Maximum number of unfinished sessions for one owner's games. */
export const MAX_SESSIONS = 100;
const EXPIRED_SESSIONS_INTERVAL_MS = 50_000;
const SWEPT_TOGETHER = 100;
/** Failed deletions after which a sweep ends, because the storage is probably down. */
const MAX_FAILURES = 10;

export type Session = Pick<UploadSession, 'id' | 'game_id' | 'max_bytes' | 'size' | 'received'>;

export const isComplete = ({ size, received }: Pick<Session, 'size' | 'received'>) => size === received;

const CREATE_SESSION = statement<{ id: string }>(
  'create_upload_session',
  `INSERT INTO upload_sessions (id, game_id, max_bytes, size, created_at, expires_at)
   SELECT $session_id, g.id, $max_bytes, $size::bigint, $now, $expires_at FROM games g
   WHERE g.id = $game_id AND (SELECT count(*) < ${MAX_SESSIONS} ${OF_OWNER}) AND ${HAS_QUOTA}
   RETURNING id`,
);

const SESSION = `SELECT s.id, s.game_id, s.max_bytes, s.size, s.received FROM upload_sessions s
   WHERE s.id = $session_id AND s.expires_at > $now AND s.game_id IS NOT NULL`;
const FIND_SESSION = statement<Session>('upload_session', SESSION);

const FIND_SESSION_TO_WRITE = statement<Session & { parts: number; has_quota: boolean }>(
  'upload_session_to_write',
  `SELECT s.*, (SELECT count(*) FROM upload_parts p WHERE p.session_id = s.id) AS parts,
     ${HAS_QUOTA} AS has_quota
   FROM (${SESSION}) s JOIN games g ON g.id = s.game_id`,
);

const EXPIRE = statement(
  'expire_upload_session',
  `UPDATE upload_sessions SET expires_at = '-infinity' WHERE id = ANY ($ids::uuid[])`,
);

const EXPIRED = statement<{ id: string }>(
  'expired_upload_sessions',
  `SELECT id FROM upload_sessions WHERE (expires_at <= $now OR game_id IS NULL) AND id > $last
   ORDER BY id LIMIT ${SWEPT_TOGETHER}`,
);
const DELETE_SESSION = statement(
  'delete_upload_session',
  `DELETE FROM upload_sessions s WHERE id = $id AND NOT EXISTS (SELECT FROM upload_parts WHERE session_id = s.id)`,
);

/**
 * Files that clients upload in parts, over one or many connections and to any replica. Their parts are stored until
 * another service stores the complete file.
 */
@Injectable()
export class UploadSessions {
  private readonly log = new Logger('UploadSessions');
  private readonly secret: Buffer;

  constructor(
    private readonly settings: Settings,
    private readonly database: Database,
    private readonly parts: UploadParts,
    private readonly clock: Clock,
    private readonly service: ServiceUrl,
  ) {
    this.secret = deriveKey(settings.API_KEY_PEPPER ?? '', 'gamewharf upload sessions');
  }

  /**
   * Starts a session for a file of the game, for a user who may edit it. `size`: if it is known. Throws 429 if the
   * owner of the game has too many unfinished sessions.
   */
  async create(
    game_id: number,
    size?: number,
    manager?: EntityManager,
  ): Promise<{ id: string; upload_url: string }> {
    const { FILES_MAX_BYTES: max } = this.settings;
    if (size !== undefined && size > max) throw tooLarge();
    const id = randomUUID();
    const now = this.clock.now();
    const create = bind(CREATE_SESSION, {
      session_id: id,
      game_id,
      max_bytes: max,
      size: size ?? null,
      now: new Date(now),
      expires_at: new Date(now + SESSION_LIFETIME_MS),
    });
    const rows = await this.database.transaction(
      (db) => this.database.execute([bind(LOCK_FILE_OWNER, { game_id }), create], db),
      { manager },
    );
    if (rows(CREATE_SESSION).length === 0) throw tooMany('too many unfinished uploads');
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
  find(id: string, manager?: EntityManager): Promise<Session | undefined> {
    return this.database.row(FIND_SESSION, { session_id: id, now: new Date(this.clock.now()) }, manager);
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
    const session = await this.database.row(FIND_SESSION_TO_WRITE, {
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
      if (!(await this.parts.store(id, at, Math.min(MAX_PART_BYTES, end - at), size ?? null, body))) break;
    const stored = await this.require(id);
    // A concurrent request may have sent another size first.
    requireWithin(stored, end, size);
    return stored;
  }

  /** Expires a session and deletes its parts. */
  async discard(id: string): Promise<void> {
    await this.expire([id]);
    await this.deleteExpired(id);
  }

  /** Part of the transaction that makes the sessions useless. */
  async expire(ids: string[], manager?: EntityManager): Promise<void> {
    await this.database.rows(EXPIRE, { ids }, manager);
  }

  /** Deletes an expired session with its parts. The next sweep repeats failed deletions. */
  async deleteExpired(id: string): Promise<void> {
    await this.deleteSession(id).catch(({ message }: Error) =>
      this.log.warn(`Parts of an upload could not be deleted: ${message}`),
    );
  }

  /** Deletes expired sessions and those of deleted games. One that can't be deleted doesn't keep the others. */
  @Interval('upload sessions', staggered(EXPIRED_SESSIONS_INTERVAL_MS))
  async sweep(): Promise<void> {
    const now = new Date(this.clock.now());
    const failures: unknown[] = [];
    let last = '00000000-0000-0000-0000-000000000000';
    for (let found; (found = await this.database.rows(EXPIRED, { now, last })).length > 0;)
      for (const { id } of found) {
        await this.deleteSession((last = id)).catch((error: unknown) => failures.push(error));
        if (failures.length === MAX_FAILURES) throw failures[0];
      }
    if (failures.length > 0) throw failures[0];
  }

  private async deleteSession(id: string): Promise<void> {
    const deleteParts = await this.parts.deleteObjects(id);
    await this.database.execute([deleteParts, bind(DELETE_SESSION, { id })]);
  }

  private sign(id: string): string {
    return createHmac('sha256', this.secret).update(id).digest('base64url');
  }
}

function requireWithin(session: Session, end: number, size: number | undefined): void {
  if (session.size !== null && (end > session.size || (size ?? session.size) !== session.size))
    throw badRequest(`Content-Range must be within the ${session.size} bytes of the file`);
}

const invalidSession = () => apiError(404, 'invalid upload session');
const tooLarge = () => apiError(413, 'the file is too large');
