import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { sendError } from '../../platform/output/response';
import type { ApiError } from '../../platform/errors/api-error';
import { withQuery } from '../../platform/input/form';
import { RequestLog } from '../../platform/observability/request-log';
import { html } from './html';
import { Layout, type Page, seeOther } from './layout';
import { ReturnPath } from './return-path';
import { SessionEnded, SignInRequired, wantsPage } from './page.guard';
import { sessionEndedPage } from './session-ended.page';
import { readVisitor } from './visitor';

const TITLES: Record<number, string> = {
  400: 'Invalid request',
  403: 'Access denied',
  404: 'Page not found',
  413: 'Request too large',
  429: 'Too many requests',
  503: 'Temporarily unavailable',
};

/** Shows errors as a page to browsers, and as JSON to API clients. */
@Catch()
export class PageErrorFilter implements ExceptionFilter {
  constructor(
    private readonly layout: Layout,
    private readonly log: RequestLog,
    private readonly returnPath: ReturnPath,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    if (error instanceof SignInRequired) {
      seeOther(this.signInPath(req, res, error.return_to)).sendTo(res);
      return;
    }
    if (error instanceof SessionEnded) {
      const visitor = readVisitor(req);
      const signIn = this.signInPath(req, res, error.form.page);
      this.layout.show(visitor, sessionEndedPage(visitor, error.form, signIn)).sendTo(res);
      return;
    }
    if (!wantsPage(req)) {
      sendError(this.log, res, error);
      return;
    }
    sendError(this.log, res, error, (_res, failure) =>
      this.layout.show(readVisitor(req), errorPage(req.path, failure)).sendTo(res),
    );
  }

  private signInPath(req: Request, res: Response, path: string | undefined): string {
    return withQuery('/login', { return_to: path && this.returnPath.refer(req, res, path) });
  }
}

const errorPage = (section: string, { statusCode: status, errors, headers }: ApiError): Page => {
  const title = TITLES[status] ?? 'Something went wrong';
  return {
    title,
    status,
    headers,
    section,
    single: true,
    main: html`<h1>${title}</h1>
      ${errors.map((line) => html`<p>${SENTENCES[line] ?? line}</p>`)}
      <p><a href="/">Go to the start page</a></p>`,
  };
};

const SENTENCES: Record<string, string> = {
  'invalid game': 'This game doesn’t exist, or you can’t edit it.',
  'invalid download key': 'This key doesn’t exist, or it was already revoked.',
  'invalid upload': 'This file doesn’t exist, or you don’t own its game.',
  'invalid build': 'This build doesn’t exist, or you can’t edit its game.',
  'the build has failed': 'This build has failed, so players can’t get it. Upload another one.',
  'you must buy this game to download': 'You don’t own this game, so you can’t download this file.',
  'invalid or expired download link':
    'This download link has expired, or it isn’t complete. Download the file again from your library or from the app that opened it.',
  'invalid file': 'This file is no longer available.',
  'invalid api endpoint': 'Check the URL for typos, or go to the start page.',
  'internal server error': 'An unexpected error occurred and was logged. Please try again later.',
  'service unavailable': 'Please try again in a moment.',
  'rate limit exceeded': 'Please wait a moment before you try again.',
};
