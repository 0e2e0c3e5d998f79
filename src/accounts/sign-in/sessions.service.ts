import { Injectable } from '@nestjs/common';
import { Settings } from '../../config/settings';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';
import { hashOf, randomToken, seal, unseal } from '../web/sealed';

export interface SignedInUser {
  id: number;
  username: string;
  display_name: string | null;
}

const SESSION = statement<SignedInUser & { stale: boolean }>(
  'session',
  `SELECT u.id, u.username, u.display_name, s.seen_at < now() - interval '1 minute' AS stale
   FROM sessions s JOIN users u ON u.id = s.user_id
   WHERE s.token_hash = $1 AND s.expires_at > now() AND s.seen_at > now() - make_interval(mins => $2)
     AND ($3::text IS NULL OR lower(u.username) = lower($3))`,
);
const SEEN = statement('session_seen', 'UPDATE sessions SET seen_at = now() WHERE token_hash = $1');
const START = statement(
  'start_session',
  `INSERT INTO sessions (token_hash, user_id, expires_at) VALUES ($1, $2, now() + make_interval(days => $3))`,
);
const END = statement('end_session', 'DELETE FROM sessions WHERE token_hash = $1');
const END_ALL = statement('end_sessions_of', 'DELETE FROM sessions WHERE user_id = $1');
const NOTE = statement('note_in_session', 'UPDATE sessions SET notice = $2 WHERE token_hash = $1');
const TAKE_NOTICE = statement<{ notice: Buffer }>(
  'take_notice',
  `UPDATE sessions s SET notice = NULL FROM (SELECT token_hash, notice FROM sessions WHERE token_hash = $1 FOR UPDATE) old
   WHERE s.token_hash = old.token_hash AND old.notice IS NOT NULL RETURNING old.notice`,
);

/** Who is signed in with which browser. The browser holds the token, the database only its hash. */
@Injectable()
export class SessionsService {
  constructor(
    private readonly database: Database,
    private readonly settings: Settings,
  ) {}

  /** `username`: the session counts only if it is this user's. */
  async userOf(token: string, username: string | null = null): Promise<SignedInUser | undefined> {
    const row = await this.database.row(SESSION, [
      hashOf(token),
      this.settings.SESSION_IDLE_MINUTES,
      username,
    ]);
    if (!row) return undefined;
    const { stale, ...user } = row;
    if (stale) await this.database.rows(SEEN, [hashOf(token)]);
    return user;
  }

  async start(user_id: number): Promise<string> {
    const token = randomToken();
    await this.database.rows(START, [hashOf(token), user_id, this.settings.SESSION_DAYS]);
    return token;
  }

  async end(token: string): Promise<void> {
    await this.database.rows(END, [hashOf(token)]);
  }

  async endAllOf(user_id: number): Promise<void> {
    await this.database.rows(END_ALL, [user_id]);
  }

  /** Keeps something for the next page, which shows it once: a reload neither repeats the deed nor shows it again. */
  async leaveNotice(token: string, notice: object): Promise<void> {
    await this.database.rows(NOTE, [hashOf(token), seal(token, notice)]);
  }

  /** The last statement of a page: if another one failed afterwards, nobody would see the notice. */
  async takeNotice<Notice extends object>(token: string): Promise<Partial<Notice>> {
    const row = await this.database.row(TAKE_NOTICE, [hashOf(token)]);
    return row ? unseal<Notice>(token, row.notice) : {};
  }
}
