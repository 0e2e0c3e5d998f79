import { type CanActivate, type ExecutionContext, Injectable, SetMetadata } from '@nestjs/common';
import type { Request } from 'express';
import { parseBody } from './body';

const STREAMED = 'gamewharf:streamed-body';

/** On a handler that reads the body itself, as a stream, or has an interceptor that does, such as FileInterceptor. */
export const StreamedBody = () => SetMetadata(STREAMED, true);

/**
 * The last global guard: parses the body into `req.body` once the others admit the client. Guards of `@UseGuards` run
 * after it. An interceptor would cost every request an Observable: docs/contributing/decisions/custom-mechanisms.md.
 */
@Injectable()
export class BodyGuard implements CanActivate {
  canActivate(context: ExecutionContext): true | Promise<true> {
    if (context.getType() !== 'http') return true;
    const req = context.switchToHttp().getRequest<Request>();
    const isStreamed = () => Reflect.hasMetadata(STREAMED, context.getHandler());
    const parsed = req.bodyParsed ?? (req.method === 'GET' || isStreamed() ? undefined : parseBody(req));
    return parsed ? parsed.then(() => true) : true;
  }
}
