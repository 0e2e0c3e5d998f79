import { type ArgumentsHost, Catch, type ExceptionFilter, NotFoundException } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ErrorFilter, isRouted, notFound } from '../../platform/http/error.filter';
import { ApiError } from '../../platform/http/api-error';
import { RequestLog } from '../../platform/observability/request-log';
import { Layout } from './layout';
import { PageErrorFilter } from './page-error.filter';
import { Visitors } from './visitors';
import { wantsPage } from './wants-page';

const PAGES = /^\/(user|login|docs)(\/|$)/;

/** Shows a page to browsers where an address below those of pages has no route; programs get JSON as everywhere. */
@Catch(NotFoundException)
export class NoSuchPageFilter implements ExceptionFilter {
  private readonly pages: PageErrorFilter;
  private readonly others: ErrorFilter;

  constructor(
    layout: Layout,
    log: RequestLog,
    private readonly visitors: Visitors,
  ) {
    this.pages = new PageErrorFilter(layout, log);
    this.others = new ErrorFilter(log);
  }

  async catch(error: NotFoundException, host: ArgumentsHost): Promise<void> {
    const [req, res] = [
      host.switchToHttp().getRequest<Request>(),
      host.switchToHttp().getResponse<Response>(),
    ];
    const answer =
      isRouted(req) || !PAGES.test(req.path) || !wantsPage(req) ? undefined : notFound(req, error);
    if (!(answer instanceof ApiError) || answer.status !== 404) return this.others.catch(error, host);
    // Without the database the page is shown as to a stranger.
    req.visitor = await this.visitors.of(req, res).catch(() => undefined);
    this.pages.catch(answer, host);
  }
}
