import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { readAccess, isForOperators } from '../../auth/access/access';
import { readAuthorization } from '../../auth/access/credential';
import { authenticationRequired, insufficientPermission, invalidToken } from '../../auth/access/errors';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';
import { OperatorTokensService } from './operator-tokens.service';

@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(
    private readonly tokens: OperatorTokensService,
    private readonly limits: RateLimitsService,
  ) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const access = readAccess(context.getHandler(), context.getClass());
    if (!access || !isForOperators(access)) return true;
    const http = context.switchToHttp();
    const [, permission] = access.split(':');
    return this.admit(http.getRequest(), http.getResponse(), permission);
  }

  private async admit(req: Request, res: Response, permission: string | undefined): Promise<boolean> {
    try {
      const token = readAuthorization(req);
      req.operator = await this.tokens.find(token);
      if (!req.operator) await this.reject(req, res, token);
      if (permission !== undefined && !req.operator!.permissions.includes(permission))
        throw insufficientPermission(permission);
      return true;
    } catch (error) {
      // The response doesn't wait for the rest of the body, which may be an import.
      if (!req.complete) req.inFlight.connection.closeAfter(res);
      throw error;
    }
  }

  /** Failed attempts count for the IP address. */
  private async reject(req: Request, res: Response, token: string): Promise<never> {
    this.limits.check('address', req, res);
    await this.limits.chargeAddress(req, res);
    if (token === '') throw authenticationRequired();
    void this.limits.failed('address', req);
    throw invalidToken();
  }
}
