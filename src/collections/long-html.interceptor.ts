import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request } from 'express';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { ConcurrencyLimit, MAX_WAIT_MS } from '../platform/limits/concurrency-limit';
import { isLongHtml } from './html';

/** Requests with long HTML in one process; `each`: of one IP address. */
export const LONG_HTML_REQUESTS = { accepted: 100, running: 4, each: 1 };

/**
 * Lets clients alternate in a handler that accepts HTML, because all long HTML is sanitized on one thread. Pipes, which
 * sanitize, run within interceptors.
 */
@Injectable()
export class LongHtmlInterceptor implements NestInterceptor {
  private readonly limit = new ConcurrencyLimit(LONG_HTML_REQUESTS);

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { query, body, inFlight } = context.switchToHttp().getRequest<Request>();
    const values: unknown[] = [query, body ?? {}].flatMap((parameters: object) => Object.values(parameters));
    // A repeated parameter is an array.
    if (!values.flat().some(isLongHtml)) return next.handle();
    const signal = AbortSignal.timeout(MAX_WAIT_MS);
    return from(this.limit.run(inFlight.client, signal, () => lastValueFrom(next.handle())));
  }
}
