import { Controller, Get, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access/access';
import { ExportService } from '../../operator/people/export.service';
import { People } from '../../operator/people/person';
import { OperatorEvents } from '../../operator/tokens/operator-events';
import { Settings } from '../../platform/config/settings';
import { Form } from '../../platform/input/form';
import { SignInAttempt } from '../../platform/limits/rate-limits.decorators';
import type { FormResult } from '../layout/layout';
import { FormFields, Pages } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { ConfirmationService } from '../sign-in/confirmation.service';
import { dataPage } from './data.page';

@Pages()
@SignedIn()
@Controller('user/settings/data')
export class DataController {
  constructor(
    private readonly people: People,
    private readonly exports: ExportService,
    private readonly confirmation: ConfirmationService,
    private readonly events: OperatorEvents,
    private readonly settings: Settings,
  ) {}

  @Get()
  show(@CurrentVisitor() visitor: SignedInVisitor) {
    return this.page(visitor);
  }

  @Post()
  @SignInAttempt()
  async export(@Req() req: Request, @FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    if (this.settings.TRUSTED_IDENTITY_HEADER) return this.page(visitor);
    const failure = await this.confirmation.problemWith(form, visitor, req);
    if (failure) return this.page(visitor, failure);
    return this.exports.response(
      await this.people.verified(visitor.user.id),
      (counts) =>
        this.events.record('user.exported', { request_id: req.id }, { counts, user_id: visitor.user.id }),
      { 'Content-Disposition': 'attachment; filename="my-data.ndjson"' },
    );
  }

  private async page(visitor: SignedInVisitor, result: FormResult = {}) {
    return dataPage(visitor, this.settings, await this.confirmation.needed(visitor), result);
  }
}
