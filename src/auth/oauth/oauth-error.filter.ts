import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { Response } from 'express';
import { sendError, sendApiError } from '../../platform/output/response';
import { RequestLog } from '../../platform/observability/request-log';
import { type OauthErrorCode, OauthError } from './oauth-errors';

const CODES: Record<number, OauthErrorCode> = {
  429: 'slow_down',
  500: 'server_error',
  503: 'temporarily_unavailable',
};

/** Sends errors in the format of RFC 6749, plus the API's own `errors`. */
@Catch()
export class OauthErrorFilter implements ExceptionFilter {
  constructor(private readonly log: RequestLog) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const known = thrown instanceof OauthError ? thrown : undefined;
    sendError(this.log, host.switchToHttp().getResponse<Response>(), thrown, (res, failure) => {
      const { statusCode: status, errors } = failure;
      sendApiError(res, failure, {
        errors,
        error: known?.error ?? CODES[status] ?? 'invalid_request',
        error_description: known?.description ?? errors.join(', '),
      });
    });
  }
}
