import { Controller, Get, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access/access';
import { ExportService } from '../../operator/people/export.service';
import { People } from '../../operator/people/person';
import { OperatorEvents } from '../../operator/tokens/operator-events';
import { Settings } from '../../platform/config/settings';
import { Form } from '../../platform/input/form';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import { MAX_PASSWORD } from '../layout/fields';
import type { FormResult } from '../layout/layout';
import { FormFields, Pages } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';
import { notSignedIn } from '../sign-in/sign-in.page';
import { SignInService } from '../sign-in/sign-in.service';
import { dataPage } from './data.page';

@Pages()
@SignedIn()
@Controller('user/settings/data')
export class DataController {
  constructor(
    private readonly people: People,
    private readonly exports: ExportService,
    private readonly signIns: SignInService,
    private readonly events: OperatorEvents,
    private readonly settings: Settings,
  ) {}

  @Get()
  show(@CurrentVisitor() visitor: Visitor) {
    return this.page(visitor);
  }

  @Post()
  @SignInAttempt()
  async export(@Req() req: Request, @FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    if (this.settings.TRUSTED_IDENTITY_HEADER) return this.page(visitor);
    const password = form.text('password') ?? '';
    if (password === '' || password.length > MAX_PASSWORD)
      return this.page(visitor, { status: 400, problem: 'Enter your password.' });
    const result = await this.signIns.signIn(visitor.user.username, password, req);
    if (result.user_id === undefined)
      return this.page(visitor, notSignedIn(result, 'The password is wrong.'));
    return this.exports.response(
      await this.people.verified(visitor.user.id),
      (counts) =>
        this.events.record('user.exported', { request_id: req.id }, { counts, user_id: visitor.user.id }),
      { 'Content-Disposition': 'attachment; filename="my-data.ndjson"' },
    );
  }

  private page(visitor: Visitor, result: FormResult = {}) {
    return dataPage(visitor, this.settings, result);
  }
}
