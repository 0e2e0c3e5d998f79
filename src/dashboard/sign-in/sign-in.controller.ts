import { Controller, Get, Req, Res, Post } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access';
import { Settings } from '../../platform/config/settings';
import { SignInAttempt } from '../../platform/rate-limits/rate-limits.decorators';
import { RateLimitsService } from '../../platform/rate-limits/rate-limits.service';
import { Audit } from '../../auth/audit';
import { AuthorizationRequests } from '../../auth/oauth/authorization-requests.service';
import { SignInService } from './sign-in.service';
import { Demo } from '../layout/demo';
import { formOf, queryOf } from '../../platform/http/form';
import { html } from '../layout/html';
import { formToken, Layout, type Page, seeOther } from '../layout/layout';
import { ForBrowsers, Pages } from '../layout/page';
import { alert, MAX_PASSWORD, passwordField } from '../layout/parts';
import { CurrentVisitor, isSignedIn, Visitor } from '../layout/visitor';
import { Visitors } from '../layout/visitors';

const PATH = '/login';
const HOME = '/user/settings';
// The limit of a request's head.
const MAX_ADDRESS = 16 * 1024;

@Pages()
@Controller()
export class SignInController {
  constructor(
    private readonly signIns: SignInService,
    private readonly visitors: Visitors,
    private readonly requests: AuthorizationRequests,
    private readonly layout: Layout,
    private readonly demo: Demo,
    private readonly settings: Settings,
    private readonly audit: Audit,
    private readonly limits: RateLimitsService,
  ) {}

  @Get('login')
  @Public()
  async form(@Req() req: Request, @CurrentVisitor() visitor: Visitor) {
    const return_to = localPath(queryOf(req).text('return_to'));
    if (visitor.user) return seeOther(return_to);
    if (this.settings.TRUSTED_IDENTITY_HEADER) return this.elsewhere(visitor);
    return this.page(visitor, return_to);
  }

  @Post('login')
  @Public()
  @ForBrowsers()
  @SignInAttempt()
  async signIn(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    if (this.settings.TRUSTED_IDENTITY_HEADER) return this.elsewhere(visitor);
    const form = await formOf(req);
    const return_to = localPath(form.text('return_to'));
    const name = (form.text('username') ?? '').trim();
    const password = form.text('password') ?? '';
    if (name === '' || password === '' || name.length > 320 || password.length > MAX_PASSWORD)
      return this.page(visitor, return_to, {
        name,
        status: 400,
        problem: 'Enter your username and password.',
      });
    const result = await this.signIns.signIn(name, password, req.exchange.client.network);
    if ('user_id' in result) {
      await this.visitors.signIn(result.user_id, visitor, res);
      this.audit.record({ event: 'user.signed_in', request_id: req.id, user_id: result.user_id });
      return seeOther(return_to);
    }
    this.audit.record({
      event: 'user.sign_in_failed',
      request_id: req.id,
      user_id: result.tried ?? undefined,
      reason: result.rejected,
      address: req.exchange.client.network,
    });
    if (result.rejected === 'wait')
      return this.page(visitor, return_to, { name, ...tooManyAttempts(result.seconds) });
    void this.limits.failed('sign-in', req);
    return this.page(visitor, return_to, {
      name,
      status: 403,
      problem: 'The username or password is incorrect.',
    });
  }

  @Post('logout')
  @Public()
  async signOut(@Res({ passthrough: true }) res: Response, @CurrentVisitor() visitor: Visitor) {
    if (isSignedIn(visitor)) this.audit.record({ event: 'user.signed_out', ...visitor.by });
    await this.visitors.signOut(visitor, res);
    return seeOther('/');
  }

  private async page(
    visitor: Visitor,
    return_to: string,
    {
      name = '',
      problem,
      ...response
    }: { name?: string; problem?: string } & Pick<Page, 'status' | 'headers'> = {},
  ) {
    return this.layout.show(visitor, {
      title: 'Sign in',
      section: PATH,
      formTargets: await this.requests.formTargets(return_to),
      ...response,
      single: true,
      main: html`<h1>Sign in</h1>
        ${problem && alert(problem)}
        <form method="post" action="/login" class="card stack">
          ${formToken(visitor)}
          <input type="hidden" name="return_to" value="${return_to}" />
          <label class="field" for="username"
            >Username or email address
            <input
              id="username"
              name="username"
              value="${name}"
              autocomplete="username"
              autocapitalize="none"
              spellcheck="false"
              required
              maxlength="320"
              ${name === '' && html` autofocus`}
          /></label>
          ${passwordField('Password', name !== '')}
          <button>Sign in</button>
        </form>
        ${this.demo.access?.password && html`<p>This is the demo store. Use the username and password that <code>npm start</code> printed.</p>`}
        <p class="muted">
          Use your ${this.layout.storeName} account. If you don’t have a password or forgot it, ask the
          store’s support to set a new one.
        </p>`,
    });
  }

  private elsewhere(visitor: Visitor) {
    return this.layout.show(visitor, {
      title: 'Sign in',
      single: true,
      main: html`<h1>Sign in</h1>
        <p>Sign in at ${this.layout.storeName}. You then return to this page.</p>
        <p><a class="button" href="${this.settings.STORE_URL}">Go to ${this.layout.storeName}</a></p>`,
    });
  }
}

export const tooManyAttempts = (seconds: number) => ({
  status: 429,
  problem: `Too many attempts. Please wait ${seconds < 60 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`} and try again.`,
  headers: { 'Retry-After': String(seconds) },
});

/** A path of this site; HOME for anything that a browser could take for another host. */
function localPath(given: string | undefined): string {
  if (!given?.startsWith('/') || given.length > MAX_ADDRESS) return HOME;
  try {
    const url = new URL(given, 'http://here.invalid');
    // URL has resolved the dots of `/.//host`.
    const path = `${url.pathname}${url.search}`;
    return url.origin === 'http://here.invalid' && !path.startsWith('//') ? path : HOME;
  } catch {
    return HOME;
  }
}
