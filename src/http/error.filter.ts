import { ArgumentsHost, Catch, ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { answerFor, sendFailure } from './answer';
import { RequestLog } from './request-log';
import { answeredOptions, isRouted, notFound } from './not-found';

/** The one place where a thrown error becomes an answer. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(private readonly log: RequestLog) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const routed = isRouted(req);
    const answer = routed ? answerFor(error) : notFound(req, error);
    if (!routed && answer.status === 405 && answeredOptions(req, res)) return;
    if (answer.status >= 500) this.log.failed(req.id, error);
    // The deadline was faster.
    if (res.writableEnded) return;
    if (res.headersSent) {
      // Half an answer is out: the broken connection is the only way left to say so.
      res.destroy();
      return;
    }
    // The rest of an oversized body is not waited for.
    if (answer.status === 413) res.setHeader('Connection', 'close');
    sendFailure(res, answer);
  }
}
