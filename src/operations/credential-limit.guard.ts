import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import type { Credential } from '../auth/credential';
import { RateLimitGuard } from './rate-limit.guard';

/** Runs after ScopesGuard: counts a request whose credential was not cached before. */
@Injectable()
export class CredentialLimitGuard implements CanActivate {
  constructor(private readonly rateLimit: RateLimitGuard) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const { user, limited_as } = context.switchToHttp().getRequest<Request>();
    if (user === undefined || limited_as !== undefined) return true;
    return this.rateLimit.verified(context, user as Credential);
  }
}
