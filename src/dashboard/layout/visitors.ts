import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Settings } from '../../platform/config/settings';
import { forbidden } from '../../auth/access/errors';
import { type Proof, SessionsService } from '../../auth/sign-in/sessions.service';
import { SignInService } from '../../auth/sign-in/sign-in.service';
import { randomToken } from '../../auth/accounts/encryption';
import { DAY_SECONDS } from '../../platform/formats/durations';
import { Cookies } from './cookies';
import { Visitor } from './visitor';

const TOKEN = /^[\w-]{43}$/;
const SESSION = 'session';

/** Identifies a browser by its cookie, or its user by the header of a trusted proxy. */
@Injectable()
export class Visitors {
  private readonly cookies: Cookies;

  constructor(
    private readonly sessions: SessionsService,
    private readonly signIns: SignInService,
    private readonly settings: Settings,
  ) {
    this.cookies = new Cookies(settings);
  }

  async of(req: Request, res: Response): Promise<Visitor> {
    const token = this.readToken(req);
    if (this.settings.TRUSTED_IDENTITY_HEADER) {
      const name = req.inFlight.connection.isTrusted
        ? req.headers[this.settings.TRUSTED_IDENTITY_HEADER.toLowerCase()]
        : undefined;
      if (typeof name !== 'string' || name === '') return this.anonymous(token, res);
      const user = token && (await this.sessions.findUser(token, name));
      if (user) return new Visitor(req.id, token, user);
      // A form that was sent without a session is rejected, so no session is started for it.
      return req.method === 'POST' ? this.anonymous(undefined, res) : this.signedInAs(name, res);
    }
    const user = token && (await this.sessions.findUser(token));
    return user ? new Visitor(req.id, token, user) : this.anonymous(token, res);
  }

  /** Each sign-in gets a new cookie, so that a planted one never becomes a signed-in one. */
  async signIn(user_id: number, previous: Visitor, res: Response, proof?: Proof): Promise<void> {
    const token = await this.sessions.start(user_id, res, proof);
    await this.sessions.end(previous.token);
    this.cookies.set(res, SESSION, token, this.settings.SESSION_DAYS * DAY_SECONDS);
  }

  /** Returns the ID token of the sign-in with an identity provider. */
  async signOut(visitor: Visitor, res: Response): Promise<string | undefined> {
    const id_token = await this.sessions.end(visitor.token);
    this.cookies.set(res, SESSION, '', 0);
    return id_token;
  }

  private anonymous(token: string | undefined, res: Response): Visitor {
    const { id } = res.req;
    if (token) return new Visitor(id, token, undefined);
    const fresh = randomToken();
    return new Visitor(id, fresh, undefined, () => this.cookies.set(res, SESSION, fresh));
  }

  private async signedInAs(name: string, res: Response): Promise<Visitor> {
    const user_id = await this.signIns.findUserId(name);
    if (user_id === undefined) throw forbidden('Your account doesn’t exist here yet.');
    const token = await this.sessions.start(user_id, res);
    this.cookies.set(res, SESSION, token);
    return new Visitor(res.req.id, token, await this.sessions.findUser(token));
  }

  private readToken(req: Request): string | undefined {
    const token = this.cookies.get(req, SESSION);
    return token !== undefined && TOKEN.test(token) ? token : undefined;
  }
}
