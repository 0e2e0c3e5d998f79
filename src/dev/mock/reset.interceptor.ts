import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request } from 'express';
import { finalize } from 'rxjs';
import { ResetLock } from './reset-lock';

/** Makes routes under `/mock` that use the store wait for a reset, and a reset wait for them. */
@Injectable()
export class ResetInterceptor implements NestInterceptor {
  constructor(private readonly lock: ResetLock) {}

  async intercept(context: ExecutionContext, next: CallHandler) {
    // A reset can take longer than the deadline of a request.
    context.switchToHttp().getRequest<Request>().inFlight.removeDeadline();
    await this.lock.enter();
    return next.handle().pipe(finalize(() => this.lock.leave()));
  }
}
