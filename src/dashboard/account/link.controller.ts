import { problemOfNewPassword } from '../../users/new-password';
import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { sha256 } from '../../auth/accounts/encryption';
import { PasswordQueue } from '../../auth/sign-in/password-queue';
import { Audit, type AuditEvent } from '../../audit/audit';
import { Settings } from '../../platform/config/settings';
import { apiError } from '../../platform/errors/api-error';
import { Form, withQuery } from '../../platform/input/form';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';
import { type FoundLink, LinksService } from '../../users/links/links.service';
import { type FormResult, seeOther } from '../layout/layout';
import { FormFields, Pages, SecretPath } from '../layout/page';
import { HOME } from '../layout/local-path';
import { SignInRequired } from '../layout/page.guard';
import { CurrentVisitor, type Visitor } from '../layout/visitor';
import { ReturnPath } from '../layout/return-path';
import { Visitors } from '../layout/visitors';
import { signInElsewherePage } from '../sign-in/sign-in.page';
import { linkPage, signInToVerifyPage } from './link.page';
import { ACCOUNT_PATH } from './account.page';

/** Links that the store sends to people. A GET doesn't use up a link. */
@Pages()
@SecretPath()
@Public()
@Controller('links/:token')
export class LinkController {
  constructor(
    private readonly links: LinksService,
    private readonly limits: RateLimitsService,
    private readonly passwords: PasswordQueue,
    private readonly visitors: Visitors,
    private readonly returnPath: ReturnPath,
    private readonly settings: Settings,
    private readonly audit: Audit,
  ) {}

  @Get()
  async show(
    @Param('token') token: string,
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    const link = await this.find(token, req, res);
    const path = linkPath(token);
    if (link.purpose === 'verify_email' && visitor.user?.id !== link.user_id) {
      const return_to = this.returnPath.refer(req, res, path);
      return signInToVerifyPage(link, withQuery('/login', { return_to }), visitor);
    }
    return this.page(link, token, visitor);
  }

  @Post()
  async use(
    @Param('token') token: string,
    @FormFields() form: Form,
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    const link = await this.find(token, req, res);
    const { purpose } = link;
    if (this.settings.TRUSTED_IDENTITY_HEADER && purpose !== 'verify_email')
      return signInElsewherePage(this.settings);
    if (purpose === 'verify_email') return this.verify(link, token, visitor);
    const needsPassword = purpose === 'set_password' || this.needsPassword(link, visitor);
    const password = needsPassword ? (form.text('new_password') ?? '') : undefined;
    const problem = password === undefined ? undefined : problemOfNewPassword(password);
    if (problem !== undefined) return this.page(link, token, visitor, { status: 400, problem });
    const { client } = req.inFlight;
    const password_hash = password === undefined ? undefined : await this.passwords.hash(client, password);
    const entered = await this.enter(link, password_hash);
    if (typeof entered === 'string')
      return this.page(link, token, visitor, { status: 409, problem: PROBLEMS[entered] });
    const { user_id } = entered;
    await this.visitors.signIn(user_id, visitor, res, { password_hash: entered.password_hash });
    const record = (event: AuditEvent['event']) => this.audit.record({ event, request_id: req.id, user_id });
    if (purpose === 'set_password') record('user.password_set');
    if (purpose === 'sign_up') record('user.signed_up');
    record('user.signed_in');
    return seeOther(purpose === 'sign_in' ? HOME : this.returnPath.take(req, res));
  }

  private async enter(link: FoundLink, password_hash: string | undefined) {
    if (link.purpose === 'sign_up') {
      const user_id = await this.links.signUp(link, password_hash);
      return typeof user_id === 'number' ? { user_id, password_hash } : user_id;
    }
    const user_id = link.user_id!;
    if (link.purpose === 'sign_in') {
      const account = await this.links.signIn(link);
      return account ? { user_id, password_hash: account.password_hash } : 'used';
    }
    return (await this.links.setPassword(link, password_hash!)) ? { user_id, password_hash } : 'used';
  }

  private async verify(link: FoundLink, token: string, visitor: Visitor) {
    if (visitor.user?.id !== link.user_id) throw new SignInRequired(linkPath(token));
    if (!(await this.links.verify(link))) throw noSuchLink();
    this.audit.record({ event: 'email.verified', ...visitor.by });
    return seeOther(ACCOUNT_PATH, { message: 'Your email address is verified.' });
  }

  private page(link: FoundLink, token: string, visitor: Visitor, result?: FormResult) {
    const path = linkPath(token);
    if (this.settings.TRUSTED_IDENTITY_HEADER && link.purpose !== 'verify_email')
      return signInElsewherePage(this.settings);
    const needsPassword = this.needsPassword(link, visitor);
    return linkPage({ link, path, visitor, store: this.settings.STORE_NAME, needsPassword, result });
  }

  /**
   * Anyone can sign up with the email address of another person, who then gets the link. So the form's
   * password applies only in the browser that sent the form. In any other browser, the person who opens the
   * link chooses a password.
   */
  private needsPassword({ purpose, browser_hash }: FoundLink, { token }: Visitor): boolean {
    return purpose === 'sign_up' && !browser_hash?.equals(sha256(token));
  }

  private async find(token: string, req: Request, res: Response): Promise<FoundLink> {
    const link = await this.limits.lookUp(req, res, () => this.links.find(token));
    if (!link) throw noSuchLink();
    return link;
  }
}

const PROBLEMS = {
  used: 'This link was used already.',
  'username taken': 'Another account has taken this username. Sign up again with a different one.',
  'email taken': 'Another account has verified this email address in the meantime.',
};

const linkPath = (token: string) => `/links/${encodeURIComponent(token)}`;

const noSuchLink = () =>
  apiError(
    404,
    'This link has expired, was used already, or was replaced by a newer one. Request another one.',
  );
