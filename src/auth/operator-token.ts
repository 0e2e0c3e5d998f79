import { createHash, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Settings } from '../config/settings';
import { failure } from '../http/failure';
import { authorizationOf } from './presented';
import { authenticationRequired, invalidToken } from './refusals';

/** The operator's token, which is not a user's credential. */
@Injectable()
export class OperatorToken {
  private readonly digest: Buffer | undefined;

  constructor({ OPERATOR_TOKEN }: Settings) {
    this.digest = OPERATOR_TOKEN === undefined ? undefined : digestOf(OPERATOR_TOKEN);
  }

  /** Refuses a request without the token. Where none is configured, the route does not exist. */
  require(req: Request): void {
    if (!this.digest) throw failure(404, 'invalid api endpoint');
    const given = authorizationOf(req);
    if (given === '') throw authenticationRequired();
    if (!timingSafeEqual(digestOf(given), this.digest)) throw invalidToken();
  }
}

// Compared by digest, since timingSafeEqual needs equal lengths.
const digestOf = (token: string) => createHash('sha256').update(token).digest();
