import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { IdentitiesService } from '../../auth/identities/identities.service';
import { IdentityProvider } from '../../auth/identities/identity-provider';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import type { Form } from '../../platform/input/form';
import { MAX_PASSWORD } from '../layout/fields';
import type { FormResult } from '../layout/layout';
import type { SignedInVisitor } from '../layout/visitor';
import type { Confirmation } from './confirmation-field';
import { notSignedIn } from './sign-in.page';
import { SignInService } from '../../auth/sign-in/sign-in.service';

/** Confirms users by their password, or by a recent sign-in if no password signs them in. */
@Injectable()
export class ConfirmationService {
  constructor(
    private readonly identities: IdentitiesService,
    private readonly provider: IdentityProvider,
    private readonly sessions: SessionsService,
    private readonly signIns: SignInService,
  ) {}

  async needed(visitor: SignedInVisitor): Promise<Confirmation> {
    const byPassword = await this.identities.hasPassword(visitor.user.id);
    return {
      byPassword,
      isFresh: !byPassword && (await this.sessions.isFresh(visitor.token)),
      provider: this.provider.isConfigured ? this.provider.name : undefined,
    };
  }

  /** Returns undefined if the user is confirmed. */
  async problemWith(form: Form, visitor: SignedInVisitor, req: Request): Promise<FormResult | undefined> {
    const { byPassword, isFresh } = await this.needed(visitor);
    if (!byPassword)
      return isFresh
        ? undefined
        : { status: 403, problem: 'Sign in again, and repeat this within five minutes.' };
    const password = form.text('password') ?? '';
    if (password === '' || password.length > MAX_PASSWORD)
      return { status: 400, problem: 'Enter your password.' };
    const result = await this.signIns.signIn(visitor.user.username, password, req);
    if (result.user_id === undefined) return notSignedIn(result, 'The password is wrong.');
    // Another account may have taken the username in the meantime.
    return result.user_id === visitor.user.id ? undefined : notSignedIn({}, 'The password is wrong.');
  }
}
