import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { mergeMap } from 'rxjs';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { WebResponse } from '../../platform/output/response';
import { HtmlResponse, Layout, type Page } from './layout';
import { readVisitor } from './visitor';

/** Shows the page that a handler returns, and stores the notice of a redirect for the next page. */
@Injectable()
export class PageInterceptor implements NestInterceptor<Page | WebResponse, WebResponse> {
  constructor(
    private readonly layout: Layout,
    private readonly sessions: SessionsService,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler<Page | WebResponse>) {
    const http = context.switchToHttp();
    const visitor = readVisitor(http.getRequest<Request>())!;
    const res = http.getResponse<Response>();
    return next.handle().pipe(
      mergeMap(async (result) => {
        if (result instanceof HtmlResponse && result.notice)
          await this.sessions.setNotice(visitor.token, result.notice);
        if (result instanceof WebResponse) return result;
        // The notice is taken by the last statement of a page, because it would be lost if a later statement
        // failed or if a response was already sent at the deadline.
        const takesNotice = typeof result.main === 'function' && visitor.user && !res.writableEnded;
        const notice = takesNotice ? await this.sessions.takeNotice(visitor.token) : {};
        return this.layout.show(visitor, result, notice);
      }),
    );
  }
}
