import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { badRequest } from '../platform/errors/api-error';
import { HEADER, type RetryKey } from './idempotency.service';
import { type Credential, rateLimitKeys } from '../auth/access/credential';

const PRINTABLE = /^[\x20-\x7e]{1,255}$/;

/** The key of the `Idempotency-Key` header; undefined without one. */
export const IdempotencyKey = createParamDecorator(
  (_: unknown, context: ExecutionContext): RetryKey | undefined => {
    const req = context.switchToHttp().getRequest<Request>();
    const sent = req.headersDistinct[HEADER.toLowerCase()];
    if (!sent) return undefined;
    if (sent.length > 1 || !PRINTABLE.test(sent[0]!))
      throw badRequest(`${HEADER} must be given once, as 1 to 255 printable ASCII characters`);
    return {
      ...readCredential(req),
      key: sent[0]!,
      route: String((req.route as { path: unknown }).path),
    };
  },
);

function readCredential({ operator, user }: Request): Pick<RetryKey, 'credential' | 'user_id'> {
  if (operator) return { credential: `operator ${operator.id ?? operator.name}`, user_id: null };
  const credential = user as Credential;
  return { credential: rateLimitKeys(credential).credential, user_id: credential.user_id };
}
