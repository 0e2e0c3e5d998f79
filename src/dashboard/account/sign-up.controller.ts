import { problemOfNewPassword } from '../../users/new-password';
import { problemOfNewUsername } from '../../users/username';
import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { sha256 } from '../../auth/accounts/encryption';
import { PasswordQueue } from '../../auth/sign-in/password-queue';
import { Settings } from '../../platform/config/settings';
import { Form } from '../../platform/input/form';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import { AccountsService } from '../../users/accounts.service';
import { isNewAddress } from '../../users/email-address';
import { LinkRequests } from '../../users/links/link-requests.service';
import { AS_TYPED, changeForm, field, hasProblems, type Problems } from '../layout/fields';
import { html } from '../layout/html';
import { type Page, seeOther } from '../layout/layout';
import { ForBrowsers, FormFields, PageQuery, Pages } from '../layout/page';
import { ReturnPath } from '../layout/return-path';
import { CurrentVisitor, type Visitor } from '../layout/visitor';
import { newPasswordField } from './link.page';
import { contactPage, sentPage } from './sent.page';

const SIGN_UP_PATH = '/sign-up';
const MAX_ADDRESS = 320;

interface Draft {
  return_to: string;
  email: string;
  username: string;
  problems: Problems<'email' | 'username' | 'new-password'>;
}

/** The routes exist only with SIGN_UP. An account is created when its link is used. */
@Pages()
@Public()
@Controller('sign-up')
export class SignUpController {
  constructor(
    private readonly requests: LinkRequests,
    private readonly accounts: AccountsService,
    private readonly passwords: PasswordQueue,
    private readonly returnPath: ReturnPath,
    private readonly settings: Settings,
  ) {}

  @Get()
  async form(@Req() req: Request, @PageQuery() query: Form, @CurrentVisitor() visitor: Visitor) {
    const return_to = this.returnPath.read(req, query.text('return_to'));
    if (visitor.user) return seeOther(return_to);
    return (await this.requests.areSent())
      ? formPage(visitor, { return_to, email: '', username: '', problems: {} })
      : this.contact();
  }

  /** The response and its time don't show whether an account has verified the address. */
  @Post()
  @ForBrowsers()
  @SignInAttempt()
  async signUp(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: Visitor,
  ) {
    const return_to = this.returnPath.read(req, form.text('return_to'));
    const email = (form.text('email') ?? '').trim();
    const username = (form.text('username') ?? '').trim();
    const password = form.text('new_password') ?? '';
    const problems: Draft['problems'] = {
      email: isNewAddress(email) ? undefined : 'Enter your email address.',
      username: problemOfNewUsername(username) ?? (await this.problemOfTaken(username)),
      'new-password': problemOfNewPassword(password),
    };
    if (hasProblems(problems)) return formPage(visitor, { return_to, email, username, problems });
    if (!(await this.requests.areSent())) return this.contact();
    const password_hash = await this.passwords.hash(req.inFlight.client, password);
    this.returnPath.store(res, return_to);
    this.requests.signUp({ email, username, password_hash, browser_hash: sha256(visitor.token) });
    return sentPage(
      'Check your email',
      'We are sending you a link. Your account exists once you have used it.',
      this.settings,
    );
  }

  private async problemOfTaken(username: string): Promise<string | undefined> {
    return (await this.accounts.isTaken(username)) ? 'Another account has this username.' : undefined;
  }

  private contact(): Page {
    return contactPage('Sign up', 'to get an account', this.settings);
  }
}

const formPage = (visitor: Visitor, { return_to, email, username, problems }: Draft): Page => ({
  title: 'Sign up',
  status: hasProblems(problems) ? 400 : 200,
  single: true,
  main: html`<h1>Sign up</h1>
    ${changeForm(
      visitor,
      { action: SIGN_UP_PATH, button: 'Sign up', back: '/login' },
      html`<input type="hidden" name="return_to" value="${return_to}" />
        ${field({ id: 'email', label: 'Email address', type: 'email', value: email, ...AS_TYPED, autocomplete: 'email', maxlength: MAX_ADDRESS, problem: problems.email })}
        ${field({ id: 'username', label: 'Username', value: username, ...AS_TYPED, autocomplete: 'username', maxlength: 63, problem: problems.username })}
        ${newPasswordField('Password', problems['new-password'])}`,
    )}
    <p class="muted">You get an email with a link. Use it in this browser within 24 hours.</p>`,
});
