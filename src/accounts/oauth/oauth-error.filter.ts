import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { answerFor, sendJson } from '../../http/answer';
import { RequestLog } from '../../http/request-log';
import { type OauthErrorCode, OauthFailure } from './oauth-errors';

const CODES: Record<number, OauthErrorCode> = {
  429: 'slow_down',
  500: 'server_error',
  503: 'temporarily_unavailable',
};

/** Errors that an OAuth library understands, and in `errors` what every other client of this service reads. */
@Catch()
export class OauthErrorFilter implements ExceptionFilter {
  constructor(private readonly log: RequestLog) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const { status, errors, headers } = answerFor(thrown);
    if (status >= 500) this.log.failed(req.id, thrown);
    if (res.headersSent) {
      res.destroy();
      return;
    }
    if (status === 413) res.setHeader('Connection', 'close');
    for (const name in headers) res.setHeader(name, headers[name]!);
    const known = thrown instanceof OauthFailure ? thrown : undefined;
    sendJson(
      res,
      status,
      JSON.stringify({
        errors,
        error: known?.error ?? CODES[status] ?? 'invalid_request',
        error_description: known?.description ?? errors.join(', '),
      }),
    );
  }
}
