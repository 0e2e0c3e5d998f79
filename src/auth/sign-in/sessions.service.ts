import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type Repository } from 'typeorm';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { longRead, statement } from '../../platform/database/statement';
import { serviceUnavailable } from '../../platform/errors/api-error';
import { forbidden } from '../access/errors';
import { isPseudonym } from '../accounts/erased-users';
import { accountErased } from '../accounts/lock-user';
import { User } from '../accounts/user.entity';
import { sha256, randomToken, encryptWithToken, decryptWithToken } from '../accounts/encryption';
import { Session } from '../accounts/session.entity';

const SIGNED_IN_USER_COLUMNS = [
  'id',
  'username',
  'display_name',
  'developer',
] as const satisfies (keyof User)[];

export interface SignedInUser extends Pick<User, (typeof SIGNED_IN_USER_COLUMNS)[number]> {
  /** Whether the user can edit any games. */
  canEditGames: boolean;
}

/** A message that the next page shows once. */
export interface Notice {
  message?: string;
  problem?: string;
  /** A new key, and a path that it permits. */
  made?: string;
  path?: string;
  /** The ID of the first of several new download keys. */
  first_key?: string;
  /** The new signing secret of a webhook. */
  secret?: string;
  /** A token or code, and the app that it is for. */
  text?: string;
  kind?: 'token' | 'code';
  application?: string;
}

/** What a sign-in relies on. */
export interface Proof {
  /** The token of the identity provider. */
  id_token?: string;
  /** The account's password hash at the time of the sign-in; null: it had no password. */
  password_hash?: string | null;
}

export interface ListedSession extends Pick<Session, 'created_at' | 'seen_at' | 'network'> {
  is_current: boolean;
}

const MAX_LISTED_SESSIONS = 100;

const SESSIONS_OF_USER = longRead<Pick<Session, 'token_hash' | 'created_at' | 'seen_at' | 'network'>>(
  'sessions_of_user',
  `SELECT token_hash, created_at, seen_at, network FROM sessions
   WHERE user_id = $user_id AND expires_at > now() AND seen_at > now() - make_interval(mins => $idle_minutes)
   ORDER BY seen_at DESC LIMIT ${MAX_LISTED_SESSIONS}`,
  'user $user_id',
);

const CAN_EDIT_GAMES = `EXISTS (SELECT FROM games g WHERE g.user_id = u.id) OR EXISTS (SELECT FROM game_admins a WHERE a.user_id = u.id)`;

// Raw SQL, because the row must be locked, so that only one of two concurrent pages shows the notice.
const TAKE_NOTICE = statement<{ notice: Buffer }>(
  'take_notice',
  `UPDATE sessions s SET notice = NULL FROM (SELECT token_hash, notice FROM sessions WHERE token_hash = $token_hash FOR UPDATE) old
   WHERE s.token_hash = old.token_hash AND old.notice IS NOT NULL RETURNING old.notice`,
);

const END_SESSION = statement<{ id_token: Buffer | null }>(
  'end_session',
  'DELETE FROM sessions WHERE token_hash = $token_hash RETURNING id_token',
);

/** Sessions of browsers. The browser holds the token, the database only its hash. */
@Injectable()
export class SessionsService {
  constructor(
    private readonly database: Database,
    @InjectRepository(Session) private readonly sessions: Repository<Session>,
    private readonly settings: Settings,
  ) {}

  /** The signed-in user; with `username`, only if it is that user. */
  async findUser(token: string, username?: string): Promise<SignedInUser | undefined> {
    const token_hash = sha256(token);
    const session = this.sessions
      .createQueryBuilder('s')
      .innerJoin('s.user', 'u')
      .select([
        ...SIGNED_IN_USER_COLUMNS.map((column) => `u.${column} AS ${column}`),
        // A short idle time needs a more exact time of the last use.
        `s.seen_at < now() - least(interval '1 minute', make_interval(mins => :idle) / 10) AS stale`,
        `${CAN_EDIT_GAMES} AS "canEditGames"`,
      ])
      .where({ token_hash })
      .andWhere('s.expires_at > now() AND s.seen_at > now() - make_interval(mins => :idle)', {
        idle: this.settings.SESSION_IDLE_MINUTES,
      });
    if (username !== undefined)
      session.andWhere('lower_ascii(u.username) = lower_ascii(:username)', { username });
    const row = await session.getRawOne<SignedInUser & { stale: boolean }>();
    if (!row) return undefined;
    const { stale, ...user } = row;
    if (stale) await this.sessions.update({ token_hash }, { seen_at: () => 'now()' });
    return user;
  }

  /** Fails if the password has changed since `password_hash` was read: a new one ends all sessions. */
  async start(
    user_id: number,
    res: ServerResponse,
    { id_token, password_hash }: Proof = {},
  ): Promise<string> {
    const token = randomToken();
    const network = res.req.inFlight.client.networkPrefix('site') || null;
    const expires_at = () => `now() + make_interval(days => ${this.settings.SESSION_DAYS})`;
    await this.database.transaction(async (db) => {
      // The lock makes a concurrent change of the password or an erasure wait, and then end this session too.
      const lock = { mode: 'pessimistic_read' } as const;
      const select = { id: true, username: true, password_hash: true } as const;
      const user = await db.findOne(User, { select, where: { id: user_id }, lock });
      if (!user || isPseudonym(user.username, user_id)) throw accountErased();
      if (password_hash !== undefined && user.password_hash !== password_hash)
        throw forbidden('Your password was changed a moment ago. Sign in with the new one.');
      await db.insert(Session, {
        token_hash: sha256(token),
        user_id,
        expires_at,
        network,
        id_token: id_token === undefined ? null : encryptWithToken(token, id_token),
      });
      // The request's deadline has already sent a response, so the client doesn't get the cookie.
      if (res.writableEnded) throw serviceUnavailable();
    });
    return token;
  }

  /** Returns the ID token of the session, for the sign-out at the identity provider. */
  async end(token: string): Promise<string | undefined> {
    const ended = await this.database.row(END_SESSION, { token_hash: sha256(token) });
    return ended?.id_token ? decryptWithToken<string>(token, ended.id_token) : undefined;
  }

  /** Whether the session is at most five minutes old, which replaces a password for accounts without one. */
  isFresh(token: string): Promise<boolean> {
    return this.sessions
      .createQueryBuilder('s')
      .where({ token_hash: sha256(token) })
      .andWhere(`s.created_at > now() - interval '5 minutes'`)
      .getExists();
  }

  async endAll(user_id: number): Promise<void> {
    await this.sessions.delete({ user_id });
  }

  /** Lists the user's live sessions, last used first. */
  async list(user_id: number, token: string): Promise<ListedSession[]> {
    const rows = await this.database.rows(SESSIONS_OF_USER, {
      user_id,
      idle_minutes: this.settings.SESSION_IDLE_MINUTES,
    });
    const own = sha256(token);
    return rows.map(({ token_hash, ...row }) => ({ ...row, is_current: token_hash.equals(own) }));
  }

  async setNotice(token: string, notice: Notice): Promise<void> {
    await this.sessions.update({ token_hash: sha256(token) }, { notice: encryptWithToken(token, notice) });
  }

  /** Must be the last statement of a page, because the notice would be lost if a later one failed. */
  async takeNotice(token: string): Promise<Notice> {
    const row = await this.database.row(TAKE_NOTICE, { token_hash: sha256(token) });
    return row ? decryptWithToken<Notice>(token, row.notice)! : {};
  }
}
