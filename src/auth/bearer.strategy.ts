import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import { Strategy } from 'passport-http-bearer';
import type { Credential } from './credential';
import { type Presented, presentedBy } from './presented';
import { authenticationRequired } from './refusals';
import { VerifiedCredentials } from './verified-credentials';

/** API keys and JWTs, as `Authorization: Bearer ...`, bare, or as the KEY of a legacy path. */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  // Passport adds these to the copy of the strategy that it makes for each request.
  declare success: (credential: Credential) => void;
  declare error: (error: unknown) => void;

  constructor(private readonly credentials: VerifiedCredentials) {
    super();
  }

  // The library would also look into the query and the body, where a credential ends up in logs.
  override authenticate(req: Request): void {
    const presented = presentedBy(req);
    if (presented)
      this.validate(presented, req).then(
        (credential) => this.success(credential),
        (error: unknown) => this.error(error),
      );
    else this.error(authenticationRequired());
  }

  validate(presented: Presented, req: Request): Promise<Credential> {
    return this.credentials.verify(presented, req);
  }
}
