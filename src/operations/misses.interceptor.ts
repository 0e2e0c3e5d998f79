import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request } from 'express';
import { type Observable, tap } from 'rxjs';
import { Failure } from '../http/failure';
import { RateLimitsService } from './rate-limits.service';

/** Counts the lookups that find nothing: a 404, or an answer whose lists are all empty. */
@Injectable()
export class MissesInterceptor implements NestInterceptor {
  constructor(private readonly limits: RateLimitsService) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { limited_as } = context.switchToHttp().getRequest<Request>();
    if (limited_as === undefined) return next.handle();
    const missed = () => this.limits.note('misses', limited_as);
    return next.handle().pipe(
      tap({
        next: (answer) => void (isEmpty(answer) && missed()),
        error: (error) => void (error instanceof Failure && error.status === 404 && missed()),
      }),
    );
  }
}

const isEmpty = (answer: unknown) =>
  typeof answer === 'object' &&
  answer !== null &&
  Object.values(answer).every((value) => Array.isArray(value) && value.length === 0);
