import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Audit } from '../../audit/audit';
import { Public } from '../../auth/access/access';
import { Settings } from '../../platform/config/settings';
import { apiError } from '../../platform/errors/api-error';
import type { Form } from '../../platform/input/form';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import { isNewAddress } from '../../users/email-address';
import { problemOfNewPassword } from '../../users/new-password';
import { problemOfNewUsername } from '../../users/username';
import { hasProblems } from '../layout/fields';
import { GAMES_PATH, seeOther } from '../layout/layout';
import { ForBrowsers, FormFields, Pages } from '../layout/page';
import { CurrentVisitor, Visitor } from '../layout/visitor';
import { Visitors } from '../layout/visitors';
import { SETUP_PATH, setupPage } from './setup.page';
import { SetupService } from '../../auth/sign-in/setup.service';
import { tooManyAttempts } from './sign-in.page';

/** Creates the first account in the browser, so that a first start needs no shell. */
@Pages()
@Controller(SETUP_PATH)
export class SetupController {
  constructor(
    private readonly setup: SetupService,
    private readonly visitors: Visitors,
    private readonly settings: Settings,
    private readonly audit: Audit,
  ) {}

  @Get()
  @Public()
  @ForBrowsers()
  async form(@CurrentVisitor() visitor: Visitor) {
    await this.requireOpen();
    return setupPage(visitor, this.settings.STORE_NAME);
  }

  @Post()
  @Public()
  @ForBrowsers()
  @SignInAttempt()
  async create(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: Visitor,
  ) {
    await this.requireOpen();
    const text = (name: string) => (form.text(name) ?? '').trim();
    const entered = { code: text('code'), username: text('username'), email: text('email') };
    const password = form.text('password') ?? '';
    const shown = (problems: Parameters<typeof setupPage>[3], result: Parameters<typeof setupPage>[4] = {}) =>
      setupPage(visitor, this.settings.STORE_NAME, entered, problems, { status: 400, ...result });
    const problems = {
      username: problemOfNewUsername(entered.username),
      email: isNewAddress(entered.email) ? undefined : 'Enter an email address.',
      password: problemOfNewPassword(password),
    };
    if (hasProblems(problems)) return shown(problems);
    const { isRight, seconds } = await this.setup.check(entered.code, req);
    if (seconds !== undefined) return shown({}, tooManyAttempts(seconds));
    if (!isRight) {
      // A code that another request has used in the meantime isn't incorrect.
      await this.setup.waitForCreation();
      await this.requireOpen();
      return shown({ code: 'The setup code is incorrect.' }, { status: 403 });
    }
    const user_id = await this.setup.create({ ...entered, password });
    if (user_id === undefined) throw apiError(404, 'invalid api endpoint');
    this.audit.record({ event: 'user.created', request_id: req.id, user_id });
    await this.visitors.signIn(user_id, visitor, res);
    // The first step of a new store is to add a game.
    return seeOther(GAMES_PATH);
  }

  private async requireOpen(): Promise<void> {
    if (!(await this.setup.isOpen())) throw apiError(404, 'invalid api endpoint');
  }
}
