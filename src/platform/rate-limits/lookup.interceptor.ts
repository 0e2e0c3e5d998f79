import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { type Observable, tap } from 'rxjs';
import { ApiError } from '../http/api-error';
import { RateLimitsService } from './rate-limits.service';
import { spendingOf } from './memory-storage';

const isEmpty = (body: unknown) =>
  typeof body === 'object' &&
  body !== null &&
  Object.values(body).every((value) => Array.isArray(value) && value.length === 0);

const isNotFound = (error: unknown) => error instanceof ApiError && error.status === 404;

/** Limits lookups without a result. A lookup counts when it starts and is refunded if it finds something. */
@Injectable()
export class LookupInterceptor implements NestInterceptor {
  constructor(private readonly limits: RateLimitsService) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const { rates } = this.limits;
    if (!rates) return next.handle();
    const http = context.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const user = req.trackers?.user;
    if (user === undefined) {
      this.limits.check('address', req, res);
      return next
        .handle()
        .pipe(tap({ error: (error) => isNotFound(error) && void this.limits.failed('address', req) }));
    }
    const lookup = spendingOf('misses', user, rates.misses);
    // Most lookups are refunded, so the headers don't show it.
    await this.limits.spend(res, lookup, false);
    return next.handle().pipe(
      tap({
        next: (body) => isEmpty(body) || void this.limits.refund(lookup),
        error: (error) => isNotFound(error) || void this.limits.refund(lookup),
      }),
    );
  }
}
