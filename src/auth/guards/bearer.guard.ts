import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard, AuthModuleOptions } from '@nestjs/passport';
import type { Request, Response } from 'express';
import { ApiError, apiError } from '../../platform/errors/api-error';
import { isUnlimited } from '../../platform/limits/rate-limits.decorators';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';
import { readAccess, requiresCredential } from '../access/access';
import { authenticationRequired } from '../access/errors';
import { CredentialCache } from '../keys/credential-cache';
import { BearerStrategy } from './bearer.strategy';

/**
 * Verifies the credential with Passport, unless it is cached, and sets `req.user`. A credential that wasn't
 * valid recently counts as a request of its IP address, so that brute-force attempts are stopped before they
 * reach the database.
 */
@Injectable()
export class BearerGuard extends AuthGuard() {
  constructor(
    options: AuthModuleOptions,
    private readonly strategy: BearerStrategy,
    private readonly credentials: CredentialCache,
    private readonly limits: RateLimitsService,
  ) {
    super(options);
  }

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    const [handler, controller] = [context.getHandler(), context.getClass()];
    const access = readAccess(handler, controller);
    if (!access) throw apiError(404, 'invalid api endpoint');
    if (access === 'public') return true;
    // A message of a microservice has no credential.
    if (context.getType() !== 'http') throw authenticationRequired();
    if (!requiresCredential(access)) return true;
    const http = context.switchToHttp();
    const req = http.getRequest<Request>();
    const cached = this.strategy.cached(req);
    if (cached) req.user = cached;
    else if (this.credentials.isCached(req.unverifiedCredential) || isUnlimited(handler, controller))
      await super.canActivate(context);
    else await this.attempt(context, req, http.getResponse());
    return true;
  }

  private async attempt(context: ExecutionContext, req: Request, res: Response): Promise<void> {
    const isComplete = req.unverifiedCredential && !(req.unverifiedCredential instanceof ApiError);
    if (isComplete) this.limits.check('address', req, res);
    const charge = await this.limits.chargeAddress(req, res);
    try {
      await super.canActivate(context);
    } catch (error) {
      const isRejected = error instanceof ApiError && error.statusCode === 401;
      if (isComplete && isRejected) void this.limits.failed('address', req);
      throw error;
    }
    if (charge) void this.limits.refund(charge);
  }
}
