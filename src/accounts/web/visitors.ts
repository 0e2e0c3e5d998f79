import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Settings } from '../../config/settings';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';
import { failure } from '../../http/failure';
import { isTrustedPeer } from '../../http/trusted-peer';
import { SessionsService } from '../sign-in/sessions.service';
import { randomToken } from './sealed';
import { Visitor } from './visitor';

const TOKEN = /^[\w-]{43}$/;
const DAY = 86_400;

const USER_NAMED = statement<{ id: number }>(
  'user_named',
  'SELECT id FROM users WHERE lower(username) = lower($1)',
);

/** Knows a browser by its cookie, or by what a trusted proxy says of its user. */
@Injectable()
export class Visitors {
  private readonly cookie: string;
  private readonly attributes: string;

  constructor(
    private readonly sessions: SessionsService,
    private readonly database: Database,
    private readonly settings: Settings,
  ) {
    const https = settings.PUBLIC_URL?.startsWith('https:') ?? false;
    this.cookie = https ? '__Host-gamewharf_session' : 'gamewharf_session';
    this.attributes = `; Path=/; HttpOnly; SameSite=Lax${https ? '; Secure' : ''}`;
  }

  async of(req: Request, res: Response): Promise<Visitor> {
    const token = this.tokenOf(req);
    if (this.settings.TRUSTED_IDENTITY_HEADER) {
      const name = isTrustedPeer(req)
        ? req.headers[this.settings.TRUSTED_IDENTITY_HEADER.toLowerCase()]
        : undefined;
      if (typeof name !== 'string' || name === '') return this.stranger(token, res);
      const user = token && (await this.sessions.userOf(token, name));
      return user ? new Visitor(token, user) : this.signedInAs(name, res);
    }
    const user = token && (await this.sessions.userOf(token));
    return user ? new Visitor(token, user) : this.stranger(token, res);
  }

  /** A new cookie at every sign-in: one that somebody else planted opens nothing. */
  async signIn(user_id: number, previous: Visitor, res: Response): Promise<void> {
    await this.sessions.end(previous.token);
    this.keep(res, await this.sessions.start(user_id), `; Max-Age=${this.settings.SESSION_DAYS * DAY}`);
  }

  async signOut(visitor: Visitor, res: Response): Promise<void> {
    await this.sessions.end(visitor.token);
    this.keep(res, '', '; Max-Age=0');
  }

  private stranger(token: string | undefined, res: Response): Visitor {
    if (token) return new Visitor(token, undefined);
    const fresh = randomToken();
    return new Visitor(fresh, undefined, () => this.keep(res, fresh));
  }

  private async signedInAs(name: string, res: Response): Promise<Visitor> {
    const found = await this.database.row(USER_NAMED, [name]);
    if (!found) throw failure(403, 'Your account is not known here yet.');
    const token = await this.sessions.start(found.id);
    this.keep(res, token);
    return new Visitor(token, await this.sessions.userOf(token));
  }

  private keep(res: Response, token: string, more = ''): void {
    res.setHeader('Set-Cookie', `${this.cookie}=${token}${this.attributes}${more}`);
  }

  private tokenOf(req: Request): string | undefined {
    for (const pair of (req.headers.cookie ?? '').split(';')) {
      const equals = pair.indexOf('=');
      if (equals < 0 || pair.slice(0, equals).trim() !== this.cookie) continue;
      const token = pair.slice(equals + 1).trim();
      return TOKEN.test(token) ? token : undefined;
    }
    return undefined;
  }
}
