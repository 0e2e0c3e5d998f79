import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { readAccess } from '../../auth/access/access';
import { forbidden } from '../../auth/access/errors';
import { apiError } from '../../platform/errors/api-error';
import { ServiceUrl } from '../../platform/server/service-url';
import { readForm } from '../../platform/input/form';
import type { Visitor } from './visitor';
import { Visitors } from './visitors';

export const FOR_BROWSERS = 'gamewharf:for-browsers';
export const SECRET_PATH = 'gamewharf:secret-path';

/** Browsers accept text/html by name; programs accept JSON or anything. */
export const wantsPage = ({ headers }: Request): boolean => /\btext\/html\b/i.test(headers.accept ?? '');

/** Thrown if a page needs a session: redirects to the sign-in page, and from there back. */
export class SignInRequired extends Error {
  constructor(readonly return_to?: string) {
    super('sign-in required');
  }

  get location(): string {
    return this.return_to ? `/login?return_to=${encodeURIComponent(this.return_to)}` : '/login';
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
    if (req.method === 'POST') await this.requireOwnForm(req, visitor, hasSecretPath);
    if (readAccess(handler, context.getClass()) === 'signed in' && !visitor.user)
      throw new SignInRequired(req.method === 'POST' ? undefined : req.originalUrl);
    return true;
  }

  private async requireOwnForm(req: Request, visitor: Visitor, hasSecretPath: boolean): Promise<void> {
    const form = await readForm(req);
    if (!this.isSameSite(req, hasSecretPath) || !visitor.isOwnFormToken(form.text('form_token')))
      throw forbidden(
        'This form has expired or was sent from another site. Go back, reload the page, and try again.',
      );
  }

  /**
   * If a browser sends neither header, the token is the only protection. Without a referrer, the origin of a form is
   * `null`.
   */
  private isSameSite(req: Request, hasSecretPath: boolean): boolean {
    const site = req.headers['sec-fetch-site'];
    if (site !== undefined) return site === 'same-origin';
    const { origin } = req.headers;
    if (origin === undefined || (hasSecretPath && origin === 'null')) return true;
    return origin === new URL(this.service.url).origin || origin.split('://')[1] === req.headers.host;
  }
}
