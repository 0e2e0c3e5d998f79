import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Observer } from '../http/hooks';
import { RequestGate } from '../http/request-gate';
import { type Spending, spendingOf } from './memory-storage';
import { limitsFailedLookups } from './rate-limits.decorators';
import { RateLimitsService } from './rate-limits.service';

/** Limits lookups without a result. A user's lookup counts when it starts and is refunded if it finds something. */
@Injectable()
export class LookupLimitGuard implements CanActivate {
  constructor(
    private readonly limits: RateLimitsService,
    gate: RequestGate,
  ) {
    if (limits.rates) gate.observers.push(this.settle);
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const { rates } = this.limits;
    if (!rates || !limitsFailedLookups(context.getHandler(), context.getClass())) return true;
    const http = context.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const user = req.trackers?.user;
    if (user !== undefined) return this.begin(req, res, spendingOf('misses', user, rates.misses));
    this.limits.check('address', req, res);
    req.lookup = 'anonymous';
    return true;
  }

  private async begin(req: Request, res: Response, lookup: Spending): Promise<boolean> {
    // Most lookups are refunded, so the headers don't show it.
    await this.limits.spend(res, lookup, false);
    req.lookup = lookup;
    return true;
  }

  private readonly settle: Observer = (req, res) => {
    const { lookup } = req;
    if (lookup === undefined) return;
    const isNotFound = res.statusCode === 404;
    if (lookup === 'anonymous') {
      if (isNotFound) void this.limits.failed('address', req);
    } else if (!isNotFound && !res.foundNothing && res.writableEnded) void this.limits.refund(lookup);
  };
}
