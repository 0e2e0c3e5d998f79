import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Audit } from '../../audit/audit';
import { Public } from '../../auth/access/access';
import { IdentitiesService } from '../../auth/identities/identities.service';
import {
  CALLBACK_PATH,
  IdentityProvider,
  type ProviderAccount,
  ProviderError,
} from '../../auth/identities/identity-provider';
import { Settings } from '../../platform/config/settings';
import { apiError } from '../../platform/errors/api-error';
import type { Form } from '../../platform/input/form';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import { isNewAddress } from '../../users/email-address';
import { html, type Html } from '../layout/html';
import { seeOther } from '../layout/layout';
import { ForBrowsers, PageQuery, Pages } from '../layout/page';
import { CurrentVisitor, Visitor } from '../layout/visitor';
import { Visitors } from '../layout/visitors';
import { HOME, IDENTITIES_PATH } from '../layout/local-path';
import { ReturnPath } from '../layout/return-path';
import { ProviderSignIn } from './provider-sign-in';
import { PROVIDER_PATH, providerProblemPage } from './sign-in.page';

/** Signing in with the identity provider. */
@Pages()
@Controller()
export class ProviderController {
  constructor(
    private readonly provider: IdentityProvider,
    private readonly identities: IdentitiesService,
    private readonly requests: ProviderSignIn,
    private readonly visitors: Visitors,
    private readonly returnPath: ReturnPath,
    private readonly settings: Settings,
    private readonly audit: Audit,
  ) {}

  @Get(PROVIDER_PATH)
  @Public()
  @ForBrowsers()
  @SignInAttempt()
  async begin(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: Visitor,
  ) {
    this.requireProvider();
    const return_to = this.returnPath.read(req, query.text('return_to'));
    if (visitor.user && query.isChecked('again'))
      return seeOther(await this.requests.begin(req, res, visitor, { return_to, confirms: visitor.user.id }));
    if (visitor.user) return seeOther(return_to);
    return seeOther(await this.requests.begin(req, res, visitor, { return_to }));
  }

  @Get(CALLBACK_PATH)
  @Public()
  @ForBrowsers()
  @SignInAttempt()
  async finish(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    this.requireProvider();
    const found = this.requests.takeRequest(req, res, visitor);
    if (!found) return this.problem('This sign-in has expired, or it began in another browser or tab.');
    const { request, return_to, connects, confirms } = found;
    const reference = this.returnPath.refer(req, res, return_to);
    // A user who signed out in between, or as someone else, connects nothing.
    if (connects !== undefined && connects !== visitor.user?.id)
      return this.problem('You are no longer signed in as the user who connects the account.', reference);
    if (confirms !== undefined && confirms !== visitor.user?.id)
      return this.problem('You are no longer signed in as the user who signs in again.', reference);
    req.inFlight.removeDeadline();
    const query = new URL(req.originalUrl, 'http://here.invalid').search;
    let account: ProviderAccount;
    try {
      const isNew = async (one: Pick<ProviderAccount, 'issuer' | 'subject'>) =>
        !(await this.identities.isLinked(one));
      account = await this.provider.finish(req.inFlight.client, query, request, isNew);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      return this.problem(
        error.isCanceled
          ? `You canceled the sign-in with ${this.provider.name}.`
          : `The response of ${this.provider.name} isn’t valid, or it has expired.`,
        reference,
      );
    }
    if (connects !== undefined) return this.confirm(res, visitor, account);
    const known = await this.identities.signIn(account);
    if (confirms !== undefined && confirms !== known?.user_id)
      return this.problem(
        `This ${this.provider.name} account isn’t connected to your account here.`,
        reference,
      );
    if (known) return this.signIn(req, res, visitor, known, account, return_to);
    // A user who has signed in in the meantime connects the account, as its page explains.
    if (visitor.user) return this.confirm(res, visitor, account);
    return this.signUp(req, res, visitor, account, return_to);
  }

  private async signUp(
    req: Request,
    res: Response,
    visitor: Visitor,
    account: ProviderAccount,
    return_to: string,
  ) {
    const { name } = this.provider;
    const reference = this.returnPath.refer(req, res, return_to);
    const unconnected = (reason: string) =>
      this.problem(
        html`<p>${reason}</p>
          <p>
            If you have an account at ${this.settings.STORE_NAME}, sign in to it once without ${name}, and
            connect it under “Connected providers”.
          </p>`,
        reference,
      );
    if (!this.settings.OIDC_SIGN_UP)
      return unconnected(`Your ${name} account isn’t connected to an account here.`);
    const { verified_email } = account;
    if (verified_email === undefined || !isNewAddress(verified_email))
      return unconnected(
        `${name} hasn’t verified an email address of yours, so no account can be created with it.`,
      );
    const created = await this.identities.signUp({ ...account, verified_email });
    // The email address alone never connects accounts, because another person may get it later.
    if ('problem' in created && created.problem === 'address')
      return unconnected(`An account with the email address of your ${name} account already exists.`);
    if ('problem' in created)
      return this.signIn(req, res, visitor, (await this.identities.signIn(account))!, account, return_to);
    const by = { request_id: req.id, user_id: created.user_id, identity_id: created.id };
    this.audit.record({ event: 'user.created', ...by });
    this.audit.record({ event: 'identity.connected', ...by });
    return this.signIn(req, res, visitor, created, account, return_to);
  }

  private async signIn(
    req: Request,
    res: Response,
    visitor: Visitor,
    { id, user_id }: { id: number; user_id: number },
    { id_token }: ProviderAccount,
    return_to: string,
  ) {
    await this.visitors.signIn(user_id, visitor, res, { id_token });
    this.audit.record({ event: 'user.signed_in', request_id: req.id, user_id, identity_id: id });
    return seeOther(return_to);
  }

  private confirm(res: Response, visitor: Visitor, account: ProviderAccount) {
    this.requests.setPending(res, visitor, account);
    return seeOther(IDENTITIES_PATH);
  }

  private problem(problem: string | Html, reference = HOME) {
    return providerProblemPage(typeof problem === 'string' ? html`<p>${problem}</p>` : problem, reference);
  }

  private requireProvider(): void {
    if (!this.provider.isConfigured) throw apiError(404, 'invalid api endpoint');
  }
}
