import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import type { Credential } from '../auth/credential';
import { RateLimitGuard } from './rate-limit.guard';

/** After the credential is verified: counts it, where it was not yet known when the request came. */
@Injectable()
export class CredentialLimitGuard implements CanActivate {
  constructor(private readonly arrivals: RateLimitGuard) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const { user, limited_as } = context.switchToHttp().getRequest<Request>();
    if (user === undefined || limited_as !== undefined) return true;
    return this.arrivals.verified(context, user as Credential);
  }
}
