import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { readAccess } from '../../auth/access/access';
import { forbidden } from '../../auth/access/errors';
import { apiError } from '../../platform/errors/api-error';
import { ServiceUrl } from '../../platform/server/service-url';
import { type Form, readForm } from '../../platform/input/form';
import { HOME, localPath } from './local-path';
import type { LateForm } from './session-ended.page';
import { Visitors } from './visitors';

export const FOR_BROWSERS = 'gamewharf:for-browsers';
export const SECRET_PATH = 'gamewharf:secret-path';

const FORM_TOKEN = /^[\w-]{43}$/;

/** Browsers accept text/html by name; programs accept JSON or anything. */
export const wantsPage = ({ headers }: Request): boolean => /\btext\/html\b/i.test(headers.accept ?? '');

/** Thrown if a page needs a session: redirects to the sign-in page, and from there back. */
export class SignInRequired extends Error {
  constructor(readonly return_to?: string) {
    super('sign-in required');
  }
}

/** Thrown if a signed-in person's form arrives without their session, or in another one. */
export class SessionEnded extends Error {
  constructor(readonly form: LateForm) {
    super('session ended');
  }
}

/** Identifies the visitor of a page, checks the token of a form, and requires a session if the page needs one. */
@Injectable()
export class PageGuard implements CanActivate {
  constructor(
    private readonly visitors: Visitors,
    private readonly service: ServiceUrl,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const handler = context.getHandler();
    const http = context.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    if (Reflect.hasMetadata(FOR_BROWSERS, handler) && !wantsPage(req))
      throw apiError(404, 'invalid api endpoint');
    const hasSecretPath = Reflect.hasMetadata(SECRET_PATH, context.getClass());
    if (hasSecretPath) {
      res.setHeader('Referrer-Policy', 'no-referrer');
      res.setHeader('X-Robots-Tag', 'noindex, nofollow');
    }
    const visitor = await this.visitors.of(req, res);
    req.visitor = visitor;
    const isForUsers = readAccess(handler, context.getClass()) === 'signed in';
    if (req.method === 'POST') {
      const form = await readForm(req);
      const token = form.text('form_token') ?? '';
      const isOwn = visitor.isOwnFormToken(token);
      const isLate = isForUsers && !(isOwn && visitor.user) && FORM_TOKEN.test(token);
      if (isLate && wantsPage(req) && this.isOwnOrigin(req))
        throw new SessionEnded(this.lateForm(req, token, form));
      if (!isOwn || !this.isSameSite(req, hasSecretPath))
        throw forbidden(
          'This form has expired or was sent from another site. Go back, reload the page, and try again.',
        );
    }
    if (isForUsers && !visitor.user)
      throw new SignInRequired(req.method === 'POST' ? undefined : req.originalUrl);
    return true;
  }

  private lateForm(req: Request, token: string, form: Form): LateForm {
    return {
      action: req.path,
      page: this.pageOfForm(req),
      token,
      fields: form.texts().filter(([name]) => name !== 'form_token' && !/password/i.test(name)),
    };
  }

  /** The page that sent the form, from its referrer. */
  private pageOfForm({ headers }: Request): string {
    const { referer = '' } = headers;
    if (!URL.canParse(referer)) return HOME;
    const { host, origin, pathname, search } = new URL(referer);
    const isOwn = host === headers.host || origin === new URL(this.service.url).origin;
    return isOwn ? localPath(pathname + search) : HOME;
  }

  /** Whether the browser says that a page of this site sent the request. */
  private isOwnOrigin({ headers }: Request): boolean {
    const site = headers['sec-fetch-site'];
    if (site !== undefined) return site === 'same-origin';
    const { origin } = headers;
    return (
      origin !== undefined &&
      (origin === new URL(this.service.url).origin || origin.split('://')[1] === headers.host)
    );
  }

  /**
   * If a browser sends neither header, the token is the only protection. Without a referrer, the origin of a form is
   * `null`.
   */
  private isSameSite(req: Request, hasSecretPath: boolean): boolean {
    const { 'sec-fetch-site': site, origin } = req.headers;
    if (site === undefined && (origin === undefined || (hasSecretPath && origin === 'null'))) return true;
    return this.isOwnOrigin(req);
  }
}
