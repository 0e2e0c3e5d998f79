import { Controller, Get, Post } from '@nestjs/common';
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
import { ForBrowsers, FormFields, Pages } from '../layout/page';
import { alert } from '../layout/components';
import { CurrentVisitor, type Visitor } from '../layout/visitor';
import { signInElsewherePage } from '../sign-in/sign-in.page';
import { contactPage, sentPage } from './sent.page';

export const FORGOTTEN_PASSWORD_PATH = '/forgot-password';
const MAX_NAME = 320;

@Pages()
@Public()
@Controller('forgot-password')
export class ForgottenPasswordController {
  constructor(
    private readonly requests: LinkRequests,
    private readonly settings: Settings,
  ) {}

  @Get()
  async form(@CurrentVisitor() visitor: Visitor): Promise<Page> {
    this.requirePasswords();
    if (this.settings.TRUSTED_IDENTITY_HEADER) return signInElsewherePage(this.settings);
    return (await this.requests.areSent()) ? formPage(visitor) : this.contact();
  }

  /** The response and its time are the same for every name, because the account is looked up afterwards. */
  @Post()
  @ForBrowsers()
  @SignInAttempt()
  async request(@FormFields() form: Form, @CurrentVisitor() visitor: Visitor): Promise<Page> {
    this.requirePasswords();
    if (this.settings.TRUSTED_IDENTITY_HEADER) return signInElsewherePage(this.settings);
    const name = (form.text('username') ?? '').trim();
    if (name === '' || name.length > MAX_NAME || !isStorable(name))
      return formPage(visitor, { status: 400, problem: 'Enter your username or email address.' });
    if (!(await this.requests.areSent())) return this.contact();
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

const formPage = (visitor: Visitor, { problem, ...response }: FormResult = {}): Page => ({
  title: 'Forgot your password?',
  ...response,
  single: true,
  main: html`<h1>Forgot your password?</h1>
    ${problem && alert(problem)}
    <p>You get an email with a link to set a new one.</p>
    ${changeForm(
      visitor,
      { action: FORGOTTEN_PASSWORD_PATH, button: 'Send the link', back: '/login' },
      field({
        id: 'username',
        label: 'Username or verified email address',
        ...AS_TYPED,
        autocomplete: 'username',
        maxlength: MAX_NAME,
        autofocus: true,
      }),
    )}`,
});
