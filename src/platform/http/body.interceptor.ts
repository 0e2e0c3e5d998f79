import {
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  SetMetadata,
} from '@nestjs/common';
import type { Request } from 'express';
import type { Observable } from 'rxjs';
import { parseBody } from './body';

const STREAMED = 'gamewharf:streamed-body';

/** On a handler that reads the body itself, as a stream. */
export const StreamedBody = () => SetMetadata(STREAMED, true);

/** Parses the body into `req.body` after the guards, so that no body of an unauthorized client is read. */
@Injectable()
export class BodyInterceptor implements NestInterceptor {
  intercept(
    context: ExecutionContext,
    next: CallHandler,
  ): Observable<unknown> | Promise<Observable<unknown>> {
    const req = context.switchToHttp().getRequest<Request>();
    const isStreamed = () => Reflect.hasMetadata(STREAMED, context.getHandler());
    const parsed = req.bodyParsed ?? (req.method === 'GET' || isStreamed() ? undefined : parseBody(req));
    return parsed ? parsed.then(() => next.handle()) : next.handle();
  }
}
