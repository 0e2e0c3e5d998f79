import { Controller, Req, Res, Post } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiExtraModels, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { OperatorMay } from '../tokens/operator-may';
import { type Actor, CurrentOperator } from '../tokens/actor';
import { IdempotencyKey } from '../../idempotency/idempotency-key';
import { OncePerKey, type RetryKey } from '../../idempotency/idempotency.service';
import { ApiError, apiError, serviceUnavailable } from '../../platform/errors/api-error';
import { StreamedBody } from '../../platform/input/body.guard';
import { requireUtf8 } from '../../platform/input/body';
import { Fails } from '../../platform/server/routes';
import { OperatorError } from '../../platform/errors/operator-error';
import { ImportResponse, TypeCountsResponse } from './import.dto';
import { ImportService } from './import.service';
import { ImportProblems } from './problems';
import { summaryLines } from './summary';

/** The maximum pause of a client. */
const STALL_TIMEOUT_MS = 60_000;

@ApiTags('Operations')
@Controller('operator')
export class ImportController {
  constructor(private readonly imports: ImportService) {}

  @Post('import')
  @StreamedBody()
  @ApiOperation({
    summary: 'Import records',
    description:
      "Imports all records of the stream or none. Records of `api_key` and `oauth_application`, and a user's `password` and `password_hash`, also need the permission `users`.",
  })
  @OperatorMay('import')
  @OncePerKey()
  @ApiConsumes('application/x-ndjson')
  @ApiBody({
    schema: { type: 'string' },
    description: 'One JSON record per line, in the import format of the documentation.',
  })
  @ApiExtraModels(TypeCountsResponse)
  @ApiOkResponse({ type: ImportResponse })
  @Fails(400, 'line 12: purchase 7: game 99 does not exist')
  @Fails(415, 'unsupported media type', 'unsupported charset')
  async import(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentOperator() operator: Actor,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<ImportResponse> {
    try {
      if (!/^application\/x-ndjson *(;|$)/i.test(req.headers['content-type'] ?? '')) {
        throw apiError(415, 'unsupported media type');
      }
      requireUtf8(req);
      req.inFlight.removeDeadline();
      const broken = new AbortController();
      // Cancels the import when the connection closes: a part of a body must not be imported.
      res.once('close', () => broken.abort());
      const sent = {
        source: withoutStalls(req),
        length: Number(req.headers['content-length'] ?? 0),
        client: req.inFlight.client,
        broken,
      };
      const types = await this.imports.receive(sent, operator, key);
      return { summary: summaryLines(types), types };
    } catch (error) {
      // The response doesn't wait for the rest of the body.
      if (!req.complete) req.inFlight.connection.closeAfter(res);
      // A client that disconnects isn't an error of the service.
      throw error === req.errored ? serviceUnavailable() : importError(error);
    }
  }
}

function importError(error: unknown): unknown {
  if (error instanceof ImportProblems) return new ApiError(400, error.lines);
  const interrupted = error instanceof Error && error.name === 'AbortError';
  return interrupted || error instanceof OperatorError ? serviceUnavailable() : error;
}

async function* withoutStalls(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = body[Symbol.asyncIterator]();
  for (;;) {
    let timer: NodeJS.Timeout | undefined;
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(apiError(408, 'request timeout')), STALL_TIMEOUT_MS);
    });
    const { done, value } = await Promise.race([chunks.next(), stalled]).finally(() => clearTimeout(timer));
    if (done) return;
    yield value;
  }
}
