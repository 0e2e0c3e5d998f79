import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { answerError } from '../../platform/http/answer';
import type { ApiError } from '../../platform/http/api-error';
import { RequestLog } from '../../platform/observability/request-log';
import { html } from './html';
import { Layout, type Page, seeOther } from './layout';
import { SignInRequired } from './sign-in-required';
import { visitorOf } from './visitor';
import { wantsPage } from './wants-page';

const TITLES: Record<number, string> = {
  400: 'That request is not right',
  403: 'That is not allowed',
  404: 'Page not found',
  413: 'That is too much at once',
  429: 'Too fast',
  503: 'We are busy right now',
};

/** Shows errors as a page to browsers, and as JSON to programs. */
@Catch()
export class PageErrorFilter implements ExceptionFilter {
  constructor(
    private readonly layout: Layout,
    private readonly log: RequestLog,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    if (error instanceof SignInRequired) {
      seeOther(error.location).sendTo(res);
      return;
    }
    if (!wantsPage(req)) {
      answerError(this.log, res, error);
      return;
    }
    answerError(this.log, res, error, (_res, failure) =>
      this.layout.show(visitorOf(req), errorPage(req.path, failure)).sendTo(res),
    );
  }
}

const errorPage = (section: string, { status, errors, headers }: ApiError): Page => {
  const title = TITLES[status] ?? 'Something went wrong';
  return {
    title,
    status,
    headers,
    section,
    single: true,
    main: html`<h1>${title}</h1>
      ${errors.map((line) => html`<p>${SENTENCES[line] ?? line}</p>`)}
      <p><a href="/">Back to the start</a></p>`,
  };
};

const SENTENCES: Record<string, string> = {
  'invalid game': 'You have no such game.',
  'invalid download key': 'This key doesn’t exist, or it is revoked already.',
  'invalid api endpoint': 'Check the address for typing errors, or go back to the start page.',
  'internal server error': 'The fault is ours. It is written down; please try again later.',
  'service unavailable': 'Please try again in a moment.',
  'rate limit exceeded': 'Please wait a little before you try again.',
};
