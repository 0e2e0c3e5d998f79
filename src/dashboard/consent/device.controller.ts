import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { Audit } from '../../audit/audit';
import { DeviceRequestsService, parseUserCode } from '../../auth/oauth/device-requests.service';
import { AttemptsService, deviceCodeSubject } from '../../auth/sign-in/attempts.service';
import { Form } from '../../platform/input/form';
import { Settings } from '../../platform/config/settings';
import { FormFields, PageQuery, Pages } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { decidedPage, deviceConsentPage, entryPage } from './device.page';

@Pages()
@SignedIn()
@Controller('user/oauth/device')
export class DeviceController {
  constructor(
    private readonly devices: DeviceRequestsService,
    private readonly attempts: AttemptsService,
    private readonly audit: Audit,
    private readonly settings: Settings,
  ) {}

  @Get()
  async form(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const typed = query.text('code');
    if (typed === undefined) return entryPage();
    const user_code = parseUserCode(typed);
    const { found, seconds } = await this.attempts.check(deviceCodeSubject(visitor.user.id), (db) =>
      this.devices.pending(db, user_code),
    );
    if (found)
      return deviceConsentPage(visitor, found, visitor.createSignature(shown(user_code)), this.settings);
    if (seconds === undefined)
      return entryPage(typed, {
        status: 404,
        problem: 'No device uses this code. Check it again, or request a new code on the device.',
      });
    return entryPage(typed, {
      status: 429,
      problem: `Too many wrong codes. Please wait ${seconds} s and try again.`,
      headers: { 'Retry-After': String(seconds) },
    });
  }

  @Post()
  async decide(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const user_code = parseUserCode(form.text('code') ?? '');
    // Requiring proof that the page showed the code prevents unlimited failed attempts.
    if (!visitor.hasSigned(shown(user_code), form.text('shown')))
      return entryPage('', {
        status: 403,
        problem: 'Enter the code that your device shows first.',
      });
    const allowed = form.text('decision') === 'allow';
    const decided = allowed
      ? await this.approve(visitor, user_code, form.isChecked('may_start_games'))
      : await this.devices.deny(user_code);
    if (!decided)
      return entryPage('', {
        status: 404,
        problem: 'This code has expired or was already used. Request a new code on the device.',
      });
    return decidedPage(allowed);
  }

  private async approve(visitor: SignedInVisitor, user_code: string, may_start_games: boolean) {
    const approved = await this.devices.approve(visitor.user.id, user_code, may_start_games);
    if (approved) this.audit.record({ event: 'grant.created', ...visitor.by, ...approved });
    return approved !== undefined;
  }
}

const shown = (user_code: string) => `device ${user_code}`;
