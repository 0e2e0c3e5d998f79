import { problemOfNewPassword } from '../../users/new-password';
import { problemOfNewUsername } from '../../users/username';
import { problemOfDisplayName } from '../../users/display-name';
import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public, SignedIn } from '../../auth/access/access';
import { PasswordQueue } from '../../auth/sign-in/password-queue';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { Audit, type AuditEvent } from '../../audit/audit';
import { ErasureService, withoutZeros } from '../../operator/people/erasure.service';
import { People } from '../../operator/people/person';
import { OperatorEvents } from '../../operator/tokens/operator-events';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { apiError } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import { isNewAddress } from '../../users/email-address';
import { LinkRequests } from '../../users/links/link-requests.service';
import { MAX_EMAIL_ADDRESSES, OwnAccountService } from '../../users/own-account.service';
import { hasProblems } from '../layout/fields';
import { IdentitiesService } from '../../auth/identities/identities.service';
import { IdentityProvider } from '../../auth/identities/identity-provider';
import type { Identities } from '../settings/identities.page';
import { type FormResult, seeOther } from '../layout/layout';
import { FormFields, Pages } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor, type Visitor } from '../layout/visitor';
import { Visitors } from '../layout/visitors';
import { ConfirmationService } from '../sign-in/confirmation.service';
import {
  ACCOUNT_PATH,
  accountPage,
  type AccountView,
  ERASED_PATH,
  eraseForGoodPage,
  erasedPage,
  erasePage,
  removeAddressPage,
} from './account.page';

const STEP_MS = 5 * 60_000;

/** What users see and change of their own accounts. */
@Pages()
@SignedIn()
@Controller('user/settings/account')
export class AccountController {
  constructor(
    private readonly accounts: OwnAccountService,
    private readonly sessions: SessionsService,
    private readonly requests: LinkRequests,
    private readonly provider: IdentityProvider,
    private readonly identities: IdentitiesService,
    private readonly confirmation: ConfirmationService,
    private readonly passwords: PasswordQueue,
    private readonly visitors: Visitors,
    private readonly people: People,
    private readonly erasure: ErasureService,
    private readonly events: OperatorEvents,
    private readonly audit: Audit,
    private readonly clock: Clock,
    private readonly settings: Settings,
  ) {}

  @Get()
  show(@CurrentVisitor() visitor: SignedInVisitor) {
    return this.page(visitor);
  }

  @Post('names')
  async rename(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    this.requireOwnSignIn();
    const username = (form.text('username') ?? '').trim();
    const display_name = form.title('display_name');
    const problems = {
      username: problemOfNewUsername(username),
      display_name: display_name === '' ? undefined : problemOfDisplayName(display_name),
    };
    const again = (problems: NonNullable<AccountView['draft']>['problems']) =>
      this.page(visitor, { draft: { username, display_name, problems, status: 400 } });
    if (hasProblems(problems)) return again(problems);
    if (!(await this.accounts.rename(visitor.user.id, { username, display_name: display_name || null })))
      return again({ username: 'Another account has this username.' });
    this.record('user.renamed', visitor);
    return seeOther(ACCOUNT_PATH, { message: 'Your name was changed.' });
  }

  @Post('addresses')
  @SignInAttempt()
  async addAddress(
    @Req() req: Request,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const email = (form.text('email') ?? '').trim();
    const again = (problem: string) =>
      this.page(visitor, { draft: { email, problems: { email: problem }, status: 400 } });
    if (!isNewAddress(email)) return again('Enter an email address.');
    if (!(await this.requests.areSent())) return this.page(visitor);
    const failure = await this.confirm(form, visitor, req);
    if (failure) return this.failed(visitor, failure, { email });
    if (!(await this.accounts.addAddress(visitor.user.id, email)))
      return again(`An account can have at most ${MAX_EMAIL_ADDRESSES} email addresses.`);
    this.record('email.added', visitor);
    return seeOther(ACCOUNT_PATH, { message: 'We are sending a link to this address.' });
  }

  @Post('addresses/remove')
  async removeAddress(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const email = form.text('email') ?? '';
    if (!form.isChecked('sure')) return removeAddressPage(visitor, email);
    if (!(await this.accounts.removeAddress(visitor.user.id, email))) throw noSuchAddress();
    this.record('email.removed', visitor);
    return seeOther(ACCOUNT_PATH, { message: 'The email address was removed.' });
  }

  @Post('addresses/primary')
  async makePrimary(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    if (!(await this.accounts.makePrimary(visitor.user.id, form.text('email') ?? ''))) throw noSuchAddress();
    this.record('email.made_primary', visitor);
    return seeOther(ACCOUNT_PATH, { message: 'Links to your account are now sent to this address.' });
  }

  @Post('password')
  @SignInAttempt()
  async changePassword(
    @Req() req: Request,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    this.requireOwnSignIn();
    if (this.settings.OIDC_ONLY) throw apiError(404, 'Check the URL for typos.');
    const password = form.text('new_password') ?? '';
    const problem = problemOfNewPassword(password);
    if (problem !== undefined)
      return this.page(visitor, { draft: { problems: { 'new-password': problem }, status: 400 } });
    const failure = await this.confirm(form, visitor, req);
    if (failure) return this.failed(visitor, failure);
    const password_hash = await this.passwords.hash(req.inFlight.client, password);
    await this.accounts.changePassword(visitor.user.id, password_hash, visitor.token);
    this.record('user.password_set', visitor);
    return seeOther(ACCOUNT_PATH, {
      message: 'Your password was changed, and other sessions were signed out.',
    });
  }

  @Post('sessions/end')
  async signOutEverywhere(
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    await this.sessions.endAll(visitor.user.id);
    await this.visitors.signOut(visitor, res);
    this.record('user.sessions_ended', visitor);
    return seeOther('/login');
  }

  @Get('erase')
  async confirmErasure(@CurrentVisitor() visitor: SignedInVisitor) {
    this.requireErasure();
    return erasePage(visitor, await this.confirmation.needed(visitor));
  }

  /** Takes two steps: the password, and then the button of a page that only the first step shows. */
  @Post('erase')
  @SignInAttempt()
  async erase(
    @Req() req: Request,
    @FormFields() form: Form,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    this.requireErasure();
    const until = form.text('until') ?? '';
    if (
      visitor.hasSigned(`erase until ${until}`, form.text('signature')) &&
      Number(until) > this.clock.now()
    ) {
      const { id: user_id } = visitor.user;
      req.inFlight.removeDeadline();
      const erased = await this.erasure.erase(await this.people.verified(user_id));
      this.events.record('user.erased', visitor.by, { counts: withoutZeros(erased), user_id });
      await this.visitors.signOut(visitor, res);
      return seeOther(ERASED_PATH);
    }
    const failure = await this.confirm(form, visitor, req);
    if (failure) return erasePage(visitor, await this.confirmation.needed(visitor), failure.problem, failure);
    const next = String(this.clock.now() + STEP_MS);
    return eraseForGoodPage(visitor, next, visitor.createSignature(`erase until ${next}`));
  }

  /** Has its own URL, because a reload of the form's response would send the form again, without a session. */
  @Get('erased')
  @Public()
  erased(@CurrentVisitor() visitor: Visitor) {
    this.requireErasure();
    return visitor.user ? seeOther(ACCOUNT_PATH) : erasedPage(this.settings.STORE_NAME);
  }

  private async confirm(form: Form, visitor: SignedInVisitor, req: Request): Promise<FormResult | undefined> {
    return this.settings.TRUSTED_IDENTITY_HEADER
      ? undefined
      : this.confirmation.problemWith(form, visitor, req);
  }

  private failed(visitor: SignedInVisitor, { problem, status = 403, headers }: FormResult, draft = {}) {
    return this.page(visitor, { problem, headers, draft: { ...draft, problems: {}, status } });
  }

  private requireOwnSignIn(): void {
    if (this.settings.TRUSTED_IDENTITY_HEADER) throw apiError(404, 'Check the URL for typos.');
  }

  private requireErasure(): void {
    if (!this.mayErase) throw apiError(404, 'Check the URL for typos.');
  }

  private get mayErase(): boolean {
    return this.settings.SELF_ERASURE && !this.settings.TRUSTED_IDENTITY_HEADER;
  }

  private record(event: AuditEvent['event'], visitor: SignedInVisitor): void {
    this.audit.record({ event, ...visitor.by });
  }

  private async findIdentities(user_id: number): Promise<Identities | undefined> {
    if (!this.provider.isConfigured) return undefined;
    return {
      provider: this.provider.name,
      issuers: this.provider.issuers,
      identities: await this.identities.of(user_id),
      hasPassword: await this.identities.hasPassword(user_id),
    };
  }

  private async page(visitor: SignedInVisitor, more: Partial<AccountView> = {}) {
    const { id } = visitor.user;
    return accountPage(visitor, {
      account: await this.accounts.find(id),
      sessions: await this.sessions.list(id, visitor.token),
      identities: await this.findIdentities(id),
      sendsLinks: await this.requests.areSent(),
      store: this.settings.STORE_NAME,
      signsInHere: !this.settings.TRUSTED_IDENTITY_HEADER,
      confirmation: await this.confirmation.needed(visitor),
      hasPasswords: !this.settings.OIDC_ONLY,
      mayErase: this.mayErase,
      ...more,
    });
  }
}

const noSuchAddress = () =>
  apiError(404, 'Your account doesn’t have this email address, or it isn’t verified.');
