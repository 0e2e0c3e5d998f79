import { Injectable } from '@nestjs/common';
import { AuthModuleOptions, PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import passport, { Strategy } from 'passport';
import { Clock } from '../../platform/config/clock';
import { ApiError } from '../../platform/errors/api-error';
import type { Credential } from '../access/credential';
import { authenticationRequired, invalidKey, noLongerValid } from '../access/errors';
import { ROOT_SCOPES } from '../access/scopes';
import { LEEWAY_SECONDS } from '../jwt/signing-keys.service';
import { TokensService } from '../jwt/tokens.service';
import { ApiKeyLookup } from '../keys/api-key-lookup';
import { type ApiKeyUse, ApiKeyUses } from '../keys/api-key-uses';
import { CredentialCache, type FoundCredential } from '../keys/credential-cache';

/**
 * The strategy that Passport calls. Unlike passport-http-bearer, it reads no token in the query, which would
 * end up in logs.
 */
class RequestStrategy extends Strategy {
  constructor(
    private readonly verify: (req: Request, done: (error: unknown, user: Credential) => void) => void,
  ) {
    super();
  }

  override authenticate(req: Request): void {
    this.verify(req, (error, user) => (error ? this.error(error) : this.success(user)));
  }
}

@Injectable()
export class BearerStrategy extends PassportStrategy(RequestStrategy, 'bearer') {
  constructor(
    private readonly cache: CredentialCache,
    private readonly keys: ApiKeyLookup,
    private readonly tokens: TokensService,
    private readonly uses: ApiKeyUses,
    private readonly clock: Clock,
    { defaultStrategy }: AuthModuleOptions,
  ) {
    super();
    // Passport keeps strategies by name for the whole process, which may contain several apps, as in tests.
    passport.use(defaultStrategy as string, this as passport.Strategy);
  }

  /** The credential, if its verification is still cached. */
  cached(req: Request): Credential | undefined {
    const unverified = req.unverifiedCredential;
    const found = unverified instanceof ApiError ? undefined : unverified && this.cache.get(unverified);
    if (found?.use) this.uses.add(found.use, req);
    return found?.credential;
  }

  /** Called by Passport. */
  async validate(req: Request): Promise<Credential> {
    const unverified = req.unverifiedCredential;
    if (!unverified) throw authenticationRequired();
    if (unverified instanceof ApiError) throw unverified;
    const { type, text } = unverified;
    const found = await this.cache.find(unverified, (stale) =>
      type === 'key' ? this.lookUpKey(text, stale?.use) : this.lookUpToken(text),
    );
    if (!found) throw noLongerValid(unverified);
    if (found.use) this.uses.add(found.use, req);
    return found.credential;
  }

  /** `use`: requests with the key that may not be counted in the database yet. */
  private async lookUpKey(text: string, use?: ApiKeyUse): Promise<FoundCredential> {
    const key = await this.keys.find(text);
    if (!key) throw invalidKey();
    const { id: api_key_id, user_id, client_id, lives_ms } = key;
    const scopes = key.scopes ? [...new Set(key.scopes)].sort() : ROOT_SCOPES;
    return {
      credential: {
        type: 'key',
        api_key_id,
        user_id,
        scopes,
        ...(client_id !== null && { client_id }),
      },
      lives_ms: lives_ms ?? Infinity,
      use: use ?? { api_key_id, requests: 0, network: null },
    };
  }

  private async lookUpToken(text: string): Promise<FoundCredential> {
    const credential = await this.tokens.verifyToken(text);
    return { credential, lives_ms: (credential.expires_at + LEEWAY_SECONDS) * 1000 - this.clock.now() };
  }
}
