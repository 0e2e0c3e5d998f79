import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public, SignedIn } from '../../auth/access/access';
import { Audit } from '../../audit/audit';
import { IdentityProvider, SIGNED_OUT_PATH } from '../../auth/identities/identity-provider';
import { AuthorizationRequests } from '../../auth/oauth/authorization-requests.service';
import { Settings } from '../../platform/config/settings';
import { Form } from '../../platform/input/form';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import { Demo } from '../layout/demo';
import { MAX_PASSWORD } from '../layout/fields';
import { type FormResult, homePath, seeOther } from '../layout/layout';
import { ForBrowsers, FormFields, PageQuery, Pages } from '../layout/page';
import { CurrentVisitor, isSignedIn, type SignedInVisitor, Visitor } from '../layout/visitor';
import { Visitors } from '../layout/visitors';
import { HOME } from '../layout/local-path';
import { ReturnPath } from '../layout/return-path';
import { ProviderSignIn } from './provider-sign-in';
import { signedOutPage, signInElsewherePage, signInPage, notSignedIn } from './sign-in.page';
import { SignInService } from '../../auth/sign-in/sign-in.service';

@Pages()
@Controller()
export class SignInController {
  constructor(
    private readonly signIns: SignInService,
    private readonly visitors: Visitors,
    private readonly requests: AuthorizationRequests,
    private readonly demo: Demo,
    private readonly settings: Settings,
    private readonly audit: Audit,
    private readonly provider: IdentityProvider,
    private readonly providerSignIn: ProviderSignIn,
    private readonly returnPath: ReturnPath,
  ) {}

  @Get('login')
  @Public()
  async form(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: Visitor,
  ) {
    const return_to = this.returnPath.read(req, query.text('return_to'));
    if (visitor.user) return seeOther(return_to);
    if (this.settings.TRUSTED_IDENTITY_HEADER) return signInElsewherePage(this.settings);
    if (this.settings.OIDC_ONLY)
      return seeOther(await this.providerSignIn.begin(req, res, visitor, { return_to }));
    return this.page(req, res, visitor, return_to);
  }

  @Post('login')
  @Public()
  @ForBrowsers()
  @SignInAttempt()
  async signIn(
    @Req() req: Request,
    @FormFields() form: Form,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    if (this.settings.TRUSTED_IDENTITY_HEADER) return signInElsewherePage(this.settings);
    if (this.settings.OIDC_ONLY) return seeOther('/login');
    const return_to = this.returnPath.read(req, form.text('return_to'));
    const name = (form.text('username') ?? '').trim();
    const password = form.text('password') ?? '';
    if (name === '' || password === '' || name.length > 320 || password.length > MAX_PASSWORD)
      return this.page(req, res, visitor, return_to, {
        name,
        status: 400,
        problem: 'Enter your username and password.',
      });
    const result = await this.signIns.signIn(name, password, req);
    if (result.user_id === undefined)
      return this.page(req, res, visitor, return_to, {
        name,
        ...notSignedIn(result, 'The username or password is incorrect.'),
      });
    const { user_id, password_hash } = result;
    await this.visitors.signIn(user_id, visitor, res, { password_hash });
    this.audit.record({ event: 'user.signed_in', request_id: req.id, user_id });
    return seeOther(return_to);
  }

  /** The first page after signing in. */
  @Get(HOME)
  @SignedIn()
  home(@CurrentVisitor() visitor: SignedInVisitor) {
    return seeOther(homePath(visitor.user));
  }

  @Post('logout')
  @Public()
  async signOut(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    if (isSignedIn(visitor)) this.audit.record({ event: 'user.signed_out', ...visitor.by });
    const id_token = await this.visitors.signOut(visitor, res);
    if (!this.provider.isConfigured) return seeOther('/');
    if (id_token === undefined) return seeOther(SIGNED_OUT_PATH);
    req.inFlight.removeDeadline();
    const url = await this.provider.endSessionUrl(req.inFlight.client, id_token);
    if (!url) return seeOther(SIGNED_OUT_PATH);
    // Other origins aren't in the Content-Security-Policy of the page whose form was sent, so browsers wouldn't follow.
    return url.origin === this.provider.origin
      ? seeOther(url.href)
      : signedOutPage({ name: this.provider.name, url: url.href });
  }

  @Get(SIGNED_OUT_PATH)
  @Public()
  @ForBrowsers()
  signedOut() {
    return signedOutPage();
  }

  private async page(
    req: Request,
    res: Response,
    visitor: Visitor,
    return_to: string,
    result: { name?: string } & FormResult = {},
  ) {
    const page = signInPage(
      visitor,
      { return_to, reference: this.returnPath.refer(req, res, return_to) },
      this.settings.STORE_NAME,
      result,
      this.demo.access,
      this.provider.isConfigured ? this.provider.name : undefined,
      this.settings.SIGN_UP,
    );
    return { ...page, formTargets: await this.requests.formTargets(return_to) };
  }
}
