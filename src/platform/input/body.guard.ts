import { type CanActivate, type ExecutionContext, Injectable, SetMetadata } from '@nestjs/common';
import type { Request } from 'express';
import { MAX_BODY_BYTES, parseBody } from './body';

const STREAMED = 'gamewharf:streamed-body';
const MAX_BODY_METADATA = 'gamewharf:max-body-bytes';

/** Marks a handler that reads the body as a stream, itself or with an interceptor like FileInterceptor. */
export const StreamedBody = () => SetMetadata(STREAMED, true);

/** Sets a limit lower than MAX_BODY_BYTES for the bodies of a controller. */
export const MaxBody = (bytes: number) => SetMetadata(MAX_BODY_METADATA, bytes);

/**
 * The last global guard: parses the body into `req.body` once the others admit the client. Guards of `@UseGuards` run
 * after it. An interceptor would create an Observable for every request: docs/contributing/decisions/requests.md.
 */
@Injectable()
export class BodyGuard implements CanActivate {
  canActivate(context: ExecutionContext): true | Promise<true> {
    if (context.getType() !== 'http') return true;
    const req = context.switchToHttp().getRequest<Request>();
    const isStreamed = () => Reflect.hasMetadata(STREAMED, context.getHandler());
    const limit = () =>
      (Reflect.getMetadata(MAX_BODY_METADATA, context.getClass()) as number | undefined) ?? MAX_BODY_BYTES;
    const parsed =
      req.bodyParsed ?? (req.method === 'GET' || isStreamed() ? undefined : parseBody(req, limit()));
    return parsed ? parsed.then(() => true) : true;
  }
}
