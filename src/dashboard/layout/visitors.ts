import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Request, Response } from 'express';
import type { Repository } from 'typeorm';
import { Settings } from '../../platform/config/settings';
import { ignoringCase } from '../../platform/database/ignoring-case';
import { User } from '../../auth/accounts/user.entity';
import { forbidden } from '../../auth/access/errors';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { randomToken } from '../../auth/accounts/encryption';
import { Visitor } from './visitor';

const TOKEN = /^[\w-]{43}$/;
const DAY = 86_400;

/** Identifies a browser by its cookie, or its user by the header of a trusted proxy. */
@Injectable()
export class Visitors {
  private readonly cookie: string;
  private readonly attributes: string;

  constructor(
    private readonly sessions: SessionsService,
    @InjectRepository(User) private readonly users: Repository<User>,
    private readonly settings: Settings,
  ) {
    const https = settings.PUBLIC_URL?.startsWith('https:') ?? false;
    this.cookie = https ? '__Host-gamewharf_session' : 'gamewharf_session';
    this.attributes = `; Path=/; HttpOnly; SameSite=Lax${https ? '; Secure' : ''}`;
  }

  async of(req: Request, res: Response): Promise<Visitor> {
    const token = this.tokenOf(req);
    if (this.settings.TRUSTED_IDENTITY_HEADER) {
      const name = req.exchange.connection.isTrusted
        ? req.headers[this.settings.TRUSTED_IDENTITY_HEADER.toLowerCase()]
        : undefined;
      if (typeof name !== 'string' || name === '') return this.anonymous(token, res);
      const user = token && (await this.sessions.userOf(token, name));
      if (user) return new Visitor(req.id, token, user);
      // A form of no session is rejected, so it needs none.
      return req.method === 'POST' ? this.anonymous(undefined, res) : this.signedInAs(name, res);
    }
    const user = token && (await this.sessions.userOf(token));
    return user ? new Visitor(req.id, token, user) : this.anonymous(token, res);
  }

  /** Each sign-in gets a new cookie, so that a planted one never becomes a signed-in one. */
  async signIn(user_id: number, previous: Visitor, res: Response): Promise<void> {
    const token = await this.sessions.start(user_id, res);
    await this.sessions.end(previous.token);
    this.setCookie(res, token, `; Max-Age=${this.settings.SESSION_DAYS * DAY}`);
  }

  async signOut(visitor: Visitor, res: Response): Promise<void> {
    await this.sessions.end(visitor.token);
    this.setCookie(res, '', '; Max-Age=0');
  }

  private anonymous(token: string | undefined, res: Response): Visitor {
    const { id } = res.req;
    if (token) return new Visitor(id, token, undefined);
    const fresh = randomToken();
    return new Visitor(id, fresh, undefined, () => this.setCookie(res, fresh));
  }

  private async signedInAs(name: string, res: Response): Promise<Visitor> {
    const found = await this.users.findOneBy({ username: ignoringCase(name) });
    if (!found) throw forbidden('Your account doesn’t exist here yet.');
    const token = await this.sessions.start(found.id, res);
    this.setCookie(res, token);
    return new Visitor(res.req.id, token, await this.sessions.userOf(token));
  }

  private setCookie(res: Response, token: string, more = ''): void {
    if (!res.writableEnded) res.setHeader('Set-Cookie', `${this.cookie}=${token}${this.attributes}${more}`);
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
