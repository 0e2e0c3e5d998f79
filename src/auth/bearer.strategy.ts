import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import { Strategy } from 'passport-http-bearer';
import { ApiKeysService } from './api-keys.service';
import type { Credential } from './credential';
import { type Presented, presentedBy } from './presented';
import { invalidKey, invalidToken } from './refusals';

/** Verifies the credential that a request presents. */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  // Given to every strategy by passport, for the length of one request.
  declare success: (user: Credential) => void;
  declare error: (error: unknown) => void;

  constructor(private readonly keys: ApiKeysService) {
    super();
  }

  // The library would also look into the query and the body, where a credential ends up in logs.
  override authenticate(req: Request): void {
    this.verify(req).then(
      (credential) => this.success(credential),
      (error: unknown) => this.error(error),
    );
  }

  // Called by nothing: @nestjs/passport asks for one, and the library hands it what it found itself.
  validate(): never {
    throw new Error('not used');
  }

  private async verify(req: Request): Promise<Credential> {
    const { type, text }: Presented = presentedBy(req);
    if (type === 'jwt') throw invalidToken();
    const credential = await this.keys.credentialOf(text);
    if (!credential) throw invalidKey();
    return credential;
  }
}
