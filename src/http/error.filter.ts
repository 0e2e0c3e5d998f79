import { ArgumentsHost, Catch, ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { answerError } from './answer';
import { Failure } from './failure';
import { RequestLog } from './request-log';
import { answeredOptions, isRouted, notFound } from './not-found';

@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(private readonly log: RequestLog) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const answer = isRouted(req) ? error : notFound(req, error);
    if (!res.headersSent && answer instanceof Failure && answer.status === 405 && answeredOptions(req, res))
      return;
    answerError(this.log, res, answer);
  }
}
