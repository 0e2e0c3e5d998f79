import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { Settings } from '../../platform/config/settings';
import { apiError } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import { isStorable } from '../../platform/input/readers';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import { LinkRequests } from '../../users/links/link-requests.service';
import { AS_TYPED, changeForm, field } from '../layout/fields';
import { html } from '../layout/html';
import type { FormResult, Page } from '../layout/layout';
import { ForBrowsers, FormFields, PageQuery, Pages } from '../layout/page';
import { ReturnPath } from '../layout/return-path';
import { alert } from '../layout/components';
import { CurrentVisitor, type Visitor } from '../layout/visitor';
import { signInElsewherePage } from '../sign-in/sign-in.page';
import { contactPage, sentPage } from './sent.page';

const FORGOTTEN_PASSWORD_PATH = '/forgot-password';
const MAX_NAME_OR_EMAIL = 320;

@Pages()
@Public()
@Controller('forgot-password')
export class ForgottenPasswordController {
  constructor(
    private readonly requests: LinkRequests,
    private readonly returnPath: ReturnPath,
    private readonly settings: Settings,
  ) {}

  @Get()
  async form(
    @Req() req: Request,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: Visitor,
  ): Promise<Page> {
    this.requirePasswords();
    if (this.settings.TRUSTED_IDENTITY_HEADER) return signInElsewherePage(this.settings);
    return (await this.requests.areSent())
      ? formPage(visitor, this.returnPath.read(req, query.text('return_to')))
      : this.contact();
  }

  /** The response and its time are the same for every name, because the account is looked up afterwards. */
  @Post()
  @ForBrowsers()
  @SignInAttempt()
  async request(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: Visitor,
  ): Promise<Page> {
    this.requirePasswords();
    if (this.settings.TRUSTED_IDENTITY_HEADER) return signInElsewherePage(this.settings);
    const return_to = this.returnPath.read(req, form.text('return_to'));
    const name = (form.text('username') ?? '').trim();
    if (name === '' || name.length > MAX_NAME_OR_EMAIL || !isStorable(name))
      return formPage(visitor, return_to, { status: 400, problem: 'Enter your username or email address.' });
    if (!(await this.requests.areSent())) return this.contact();
    this.returnPath.store(res, return_to);
    this.requests.forgottenPassword(name);
    return sentPage(
      'Check your email',
      'If an account with this name or address has a verified email address, it gets a link to set a new password.',
      this.settings,
    );
  }

  private requirePasswords(): void {
    if (this.settings.OIDC_ONLY) throw apiError(404, 'invalid api endpoint');
  }

  private contact(): Page {
    return contactPage('Forgot your password?', 'to set a new password', this.settings);
  }
}

const formPage = (visitor: Visitor, return_to: string, { problem, ...response }: FormResult = {}): Page => ({
  title: 'Forgot your password?',
  ...response,
  single: true,
  main: html`<h1>Forgot your password?</h1>
    ${problem && alert(problem)}
    <p>You get an email with a link to set a new one.</p>
    ${changeForm(
      visitor,
      { action: FORGOTTEN_PASSWORD_PATH, button: 'Send the link', back: '/login' },
      html`<input type="hidden" name="return_to" value="${return_to}" /> ${field({
          id: 'username',
          label: 'Username or verified email address',
          ...AS_TYPED,
          autocomplete: 'username',
          maxlength: MAX_NAME_OR_EMAIL,
          autofocus: true,
        })}`,
    )}`,
});
