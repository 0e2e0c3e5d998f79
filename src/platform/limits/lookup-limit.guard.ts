import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { createCharge } from './memory-storage';
import { limitsFailedLookups } from './rate-limits.decorators';
import { RateLimitsService } from './rate-limits.service';

/** Limits failed lookups of a user. A lookup counts when it starts and is refunded if it finds something. */
@Injectable()
export class LookupLimitGuard implements CanActivate {
  constructor(private readonly limits: RateLimitsService) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const { rates } = this.limits;
    if (!rates || !limitsFailedLookups(context.getHandler())) return true;
    const http = context.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const user = req.rateLimitKeys?.user;
    if (user === undefined) return true;
    const charge = createCharge('misses', user, rates.misses);
    // Most lookups are refunded, so the headers don't show it.
    return this.limits.chargeUnreported(res, charge).then(() => {
      res.foundNothing = false;
      res.once('close', () => {
        const isFound = res.statusCode !== 404 && !res.foundNothing && res.writableEnded;
        if (isFound) void this.limits.refund(charge);
      });
      return true;
    });
  }
}
