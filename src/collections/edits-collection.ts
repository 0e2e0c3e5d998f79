import { applyDecorators, type Type } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { Scopes } from '../auth/access/access';
import { Fails } from '../platform/server/routes';
import { OncePerKey } from '../idempotency/idempotency.service';

/** Marks a handler that changes an existing collection; `missing` are the further errors with status 404. */
export const EditsCollection = (response: Type, ...missing: string[]) =>
  applyDecorators(
    Scopes('collection:edit'),
    OncePerKey(),
    ApiOkResponse({ type: response }),
    Fails(403, "you can't edit this collection"),
    Fails(404, 'invalid collection', ...missing),
  );
