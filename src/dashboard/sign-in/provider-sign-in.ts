import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { decryptWithToken, encryptWithToken } from '../../auth/accounts/encryption';
import { IdentityProvider, type ProviderRequest } from '../../auth/identities/identity-provider';
import type { ProviderAccount } from '../../auth/identities/identity-provider';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { Cookies } from '../layout/cookies';
import type { Visitor } from '../layout/visitor';

const LASTS_SECONDS = 600;
// A cookie has at most 4096 bytes.
const MAX_RETURN_TO = 2000;
const REQUEST = 'provider_request';
const ACCOUNT = 'provider_account';

/** What a sign-in with the provider is for. */
export interface Purpose {
  return_to: string;
  /** The signed-in user who connects an account; absent for a sign-in. */
  connects?: number;
  /** The signed-in user who signs in again, to confirm a change. */
  confirms?: number;
}

/** An account of the provider that its person has yet to confirm. */
export type PendingAccount = Omit<ProviderAccount, 'id_token'>;

type Sealed<Value> = { value: Value; expires_at: number };

/**
 * Stores the state of a sign-in between two requests in cookies that are encrypted with the session of the
 * browser, so that another browser or session can't use them.
 */
@Injectable()
export class ProviderSignIn {
  private readonly cookies: Cookies;

  constructor(
    private readonly provider: IdentityProvider,
    private readonly clock: Clock,
    settings: Settings,
  ) {
    this.cookies = new Cookies(settings);
  }

  /** Returns the URL at the provider. */
  async begin(req: Request, res: Response, visitor: Visitor, purpose: Purpose): Promise<string> {
    // The provider may need longer than the deadline of a response; it has a separate timeout.
    req.inFlight.removeDeadline();
    const { url, request } = await this.provider.begin(req.inFlight.client, {
      signsInAgain: purpose.confirms !== undefined,
    });
    const return_to = purpose.return_to.length > MAX_RETURN_TO ? '/user/settings' : purpose.return_to;
    visitor.remember();
    this.store(res, visitor, REQUEST, { ...purpose, return_to, request });
    return url;
  }

  /** Each request is used once: its response can't be replayed in this browser. */
  takeRequest(req: Request, res: Response, visitor: Visitor) {
    const found = this.read<Purpose & { request: ProviderRequest }>(req, visitor, REQUEST);
    this.cookies.set(res, REQUEST, '', 0);
    return found;
  }

  setPending(res: Response, visitor: Visitor, { id_token: _, ...account }: ProviderAccount): void {
    this.store(res, visitor, ACCOUNT, account satisfies PendingAccount);
  }

  pending(req: Request, visitor: Visitor): PendingAccount | undefined {
    return this.read<PendingAccount>(req, visitor, ACCOUNT);
  }

  forgetPending(res: Response): void {
    this.cookies.set(res, ACCOUNT, '', 0);
  }

  private store(res: Response, { token }: Visitor, name: string, value: object): void {
    const sealed: Sealed<object> = { value, expires_at: this.clock.now() + LASTS_SECONDS * 1000 };
    const text = encryptWithToken(token, { ...sealed, name }).toString('base64url');
    this.cookies.set(res, name, text, LASTS_SECONDS);
  }

  private read<Value>(req: Request, { token }: Visitor, name: string): Value | undefined {
    const text = this.cookies.get(req, name);
    if (!text) return undefined;
    const sealed = decryptWithToken<Sealed<Value> & { name: string }>(token, Buffer.from(text, 'base64url'));
    // The name is compared, so that one cookie can't be sent in place of the other.
    return sealed?.name === name && sealed.expires_at > this.clock.now() ? sealed.value : undefined;
  }
}
