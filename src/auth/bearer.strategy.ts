import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import { Strategy } from 'passport-http-bearer';
import type { Credential } from './credential';
import type { Presented } from './presented';
import { authenticationRequired } from './refusals';
import { VerifiedCredentials } from './verified-credentials';

/** What the guard hands to the strategy with each request. */
export interface BearerOptions {
  presented: Presented | undefined;
}

@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  // Given by the guard, for the length of one request.
  declare success: (user: Credential) => void;
  declare error: (error: unknown) => void;

  constructor(private readonly credentials: VerifiedCredentials) {
    super();
  }

  // The library would look into the query and the body too, where a credential ends up in logs.
  override authenticate(_req: Request, options?: object): void {
    const { presented } = options as BearerOptions;
    if (!presented) {
      this.error(authenticationRequired());
      return;
    }
    this.credentials.verify(presented).then(
      (credential) => this.success(credential),
      (error: unknown) => this.error(error),
    );
  }

  // Called by nothing: @nestjs/passport asks for one, and the library hands it what it found itself.
  validate(): never {
    throw new Error('not used');
  }
}
