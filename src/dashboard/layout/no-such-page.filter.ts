import { type ArgumentsHost, Catch, type ExceptionFilter, NotFoundException } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ErrorFilter, isRouted, notFound } from '../../platform/output/error.filter';
import { ApiError } from '../../platform/errors/api-error';
import { RequestLog } from '../../platform/observability/request-log';
import { Layout, seeOther } from './layout';
import { PageErrorFilter } from './page-error.filter';
import { ReturnPath } from './return-path';
import { Visitors } from './visitors';
import { wantsPage } from './page.guard';

const LEGACY = /^\/api(\/|$)/i;
const FILES = /^\/files\//i;
// Browsers would interpret a second leading slash as another host.
const WITH_SLASH = /^(\/[\w-]+)+\/$/;
// The path of the page that a form is on, in the path that the form is sent to.
const PAGE_OF_FORM = /^(?:\/download\/[^/]+(?=\/)|\/user(?:\/[\w-]+)+(?=\/[\w-]+$))/i;

/**
 * Shows browsers an HTML page for an unknown path or an expired download link. Other clients, and the legacy API, get
 * JSON.
 */
@Catch(NotFoundException, ApiError)
export class NoSuchPageFilter implements ExceptionFilter {
  private readonly pages: PageErrorFilter;
  private readonly others: ErrorFilter;

  constructor(
    layout: Layout,
    log: RequestLog,
    returnPath: ReturnPath,
    private readonly visitors: Visitors,
  ) {
    this.pages = new PageErrorFilter(layout, log, returnPath);
    this.others = new ErrorFilter(log);
  }

  catch(error: NotFoundException | ApiError, host: ArgumentsHost): unknown {
    return host.getType() === 'http' ? this.respond(error, host) : this.others.catch(error, host);
  }

  private async respond(error: NotFoundException | ApiError, host: ArgumentsHost): Promise<void> {
    const [req, res] = [
      host.switchToHttp().getRequest<Request>(),
      host.switchToHttp().getResponse<Response>(),
    ];
    const isPath = !isRouted(req);
    const isForPeople = wantsPage(req) && (isPath ? !LEGACY.test(req.path) : FILES.test(req.path));
    const failure = !isForPeople ? undefined : isPath ? notFound(req, error) : error;
    if (isPath && req.method === 'GET' && failure instanceof ApiError && failure.statusCode === 405) {
      // A browser shows the path of a form that was rejected, and opens it later with a GET.
      const [page] = PAGE_OF_FORM.exec(req.path) ?? [];
      if (page !== undefined) return seeOther(page).sendTo(res);
    }
    if (!(failure instanceof ApiError) || (isPath && failure.statusCode !== 404))
      return void this.others.catch(error, host);
    if (isPath && req.method === 'GET' && WITH_SLASH.test(req.path)) {
      seeOther(req.originalUrl.replace(/\/(?=\?|$)/, '')).sendTo(res);
      return;
    }
    // If the database is unavailable, the page is shown as to a signed-out visitor.
    req.visitor = await this.visitors.of(req, res).catch(() => undefined);
    this.pages.catch(failure, host);
  }
}
