import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Audit } from '../../audit/audit';
import { SignedIn } from '../../auth/access/access';
import { IdentitiesService } from '../../auth/identities/identities.service';
import { IdentityProvider } from '../../auth/identities/identity-provider';
import { apiError } from '../../platform/errors/api-error';
import type { Form } from '../../platform/input/form';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import { type FormResult, seeOther } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { IDENTITIES_PATH } from '../layout/local-path';
import { type PendingAccount, ProviderSignIn } from '../sign-in/provider-sign-in';
import { ConfirmationService } from '../sign-in/confirmation.service';
import { type Identities, identitiesPage } from './identities.page';

/** Connects the user's account at the identity provider, and disconnects it. */
@Pages()
@SignedIn()
@Controller(IDENTITIES_PATH)
export class IdentitiesController {
  constructor(
    private readonly provider: IdentityProvider,
    private readonly identities: IdentitiesService,
    private readonly requests: ProviderSignIn,
    private readonly confirmation: ConfirmationService,
    private readonly audit: Audit,
  ) {}

  @Get()
  async show(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor) {
    this.requireProvider();
    return this.page(visitor, this.requests.pending(req, visitor));
  }

  @Get('connect')
  @SignInAttempt()
  async begin(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    this.requireProvider();
    const purpose = { return_to: IDENTITIES_PATH, connects: visitor.user.id };
    return seeOther(await this.requests.begin(req, res, visitor, purpose));
  }

  @Get('cancel')
  cancel(@Res({ passthrough: true }) res: Response) {
    this.requests.forgetPending(res);
    return seeOther(IDENTITIES_PATH);
  }

  @Post()
  @SignInAttempt()
  async connect(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    this.requireProvider();
    const pending = this.requests.pending(req, visitor);
    if (!pending)
      return seeOther(IDENTITIES_PATH, { problem: 'This has expired. Connect the account again.' });
    const problem = await this.confirmation.problemWith(form, visitor, req);
    if (problem) return this.page(visitor, pending, problem);
    const { id: user_id } = visitor.user;
    const connected = await this.identities.connect(user_id, pending, visitor.token);
    this.requests.forgetPending(res);
    if ('problem' in connected)
      return seeOther(IDENTITIES_PATH, {
        problem:
          connected.problem === 'taken'
            ? 'This account is already connected.'
            : 'You can connect at most 10 accounts. Disconnect one first.',
      });
    this.audit.record({ event: 'identity.connected', ...visitor.by, identity_id: connected.id });
    return seeOther(IDENTITIES_PATH, { message: `Your ${this.provider.name} account is connected.` });
  }

  @Post(':identity_id/disconnect')
  async disconnect(@PathId('identity_id') identity_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    this.requireProvider();
    if (!(await this.identities.disconnect(visitor.user.id, identity_id)))
      return seeOther(IDENTITIES_PATH, {
        problem: 'The account is not connected, or it is your only way to sign in. Set a password first.',
      });
    this.audit.record({ event: 'identity.disconnected', ...visitor.by, identity_id });
    return seeOther(IDENTITIES_PATH, { message: 'The account is disconnected.' });
  }

  private async page(visitor: SignedInVisitor, pending?: PendingAccount, result: FormResult = {}) {
    const confirmation = await this.confirmation.needed(visitor);
    return identitiesPage(visitor, await this.of(visitor), confirmation, { ...result, pending });
  }

  private async of(visitor: SignedInVisitor): Promise<Identities> {
    const { id } = visitor.user;
    return {
      provider: this.provider.name,
      issuers: this.provider.issuers,
      identities: await this.identities.of(id),
      hasPassword: await this.identities.hasPassword(id),
    };
  }

  private requireProvider(): void {
    if (!this.provider.isConfigured) throw apiError(404, 'invalid api endpoint');
  }
}
