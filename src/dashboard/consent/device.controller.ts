import { Controller, Get, Req, Post } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { Database } from '../../platform/database/database';
import { AttemptsService, guessAtDeviceCode } from '../../auth/sign-in/attempts.service';
import { Audit } from '../../auth/audit';
import { consentPage } from './consent.page';
import {
  DeviceRequestsService,
  type ShownRequest,
  userCodeOf,
} from '../../auth/oauth/device-requests.service';
import { GrantsService } from '../../auth/oauth/grants.service';
import { formOf, queryOf } from '../../platform/http/form';
import { html } from '../layout/html';
import { Layout, type Page } from '../layout/layout';
import { Pages } from '../layout/page';
import { alert } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';

const PATH = '/user/oauth/device';

/** The page on which a user enters the code that a device shows. */
@Pages()
@Controller('user/oauth/device')
export class DeviceController {
  constructor(
    private readonly devices: DeviceRequestsService,
    private readonly grants: GrantsService,
    private readonly attempts: AttemptsService,
    private readonly database: Database,
    private readonly layout: Layout,
    private readonly audit: Audit,
  ) {}

  @Get()
  @SignedIn()
  async form(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor) {
    const typed = queryOf(req).text('code');
    if (typed === undefined) return this.entry(visitor);
    const user_code = userCodeOf(typed);
    const { found, seconds } = await this.attempts.guess(guessAtDeviceCode(visitor.user.id), (db) =>
      this.devices.pending(db, user_code),
    );
    if (found) return this.consent(visitor, found);
    if (seconds === undefined)
      return this.entry(visitor, typed, {
        status: 404,
        problem: 'No device uses this code. Check it again, or request a new code on the device.',
      });
    return this.entry(visitor, typed, {
      status: 429,
      problem: `Too many wrong codes. Please wait ${seconds} s and try again.`,
      headers: { 'Retry-After': String(seconds) },
    });
  }

  @Post()
  @SignedIn()
  async decide(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor) {
    const form = await formOf(req);
    const user_code = userCodeOf(form.text('code') ?? '');
    // Without this proof, codes could be tried without a limit.
    if (!visitor.hasSigned(shown(user_code), form.text('shown')))
      return this.entry(visitor, '', {
        status: 403,
        problem: 'Enter the code that your device shows first.',
      });
    const allowed = form.text('decision') === 'allow';
    const decided = allowed
      ? await this.approve(visitor, user_code, form.ticked('may_start_games'))
      : await this.devices.deny(user_code);
    if (!decided)
      return this.entry(visitor, '', {
        status: 404,
        problem: 'This code has expired or was already used. Request a new code on the device.',
      });
    return this.layout.show(visitor, {
      title: allowed ? 'Device connected' : 'Access denied',
      single: true,
      main: allowed
        ? html`<h1>Device connected</h1>
            <p>Return to your device. It continues automatically within a few seconds.</p>`
        : html`<h1>Access denied</h1>
            <p>The device isn’t connected to your account.</p>`,
    });
  }

  private async approve(visitor: SignedInVisitor, user_code: string, may_start_games: boolean) {
    const approved = await this.database.transaction(async (db) => {
      const request = await this.devices.lockPending(db, user_code);
      if (!request) return undefined;
      const { client_id, scopes } = request;
      const consent = { scopes, may_start_games, implicit_allowed: false };
      const grant = await this.grants.give(db, visitor.user.id, client_id, consent);
      await this.devices.approve(db, request, grant);
      return { client_id, scopes };
    });
    if (approved) this.audit.record({ event: 'grant.created', ...visitor.by, ...approved });
    return approved !== undefined;
  }

  private entry(
    visitor: Visitor,
    typed = '',
    { problem, ...response }: { problem?: string } & Pick<Page, 'status' | 'headers'> = {},
  ) {
    return this.layout.show(visitor, {
      title: 'Connect a device',
      ...response,
      single: true,
      main: html`<h1>Connect a device</h1>
        ${problem && alert(problem)}
        <form method="get" action="${PATH}" class="card stack">
          <label class="field" for="code"
            >Code shown on your device
            <input
              id="code"
              name="code"
              value="${typed}"
              class="code-entry"
              required
              maxlength="20"
              placeholder="XXXX-XXXX"
              autocomplete="off"
              autocapitalize="characters"
              spellcheck="false"
              autofocus
          /></label>
          <button>Continue</button>
        </form>`,
    });
  }

  private consent(visitor: SignedInVisitor, request: ShownRequest) {
    const { name, user_code } = request;
    const page = consentPage(visitor, {
      ...request,
      question: html`Allow <bdi>${name}</bdi> on your device to act for you?`,
      warning: html`<p>
          Continue only if a device in front of you shows this code. Never enter a code that someone sent you:
        </p>
        <p class="code-entry">${user_code}</p>`,
      afterwards: html`It stays signed in for at most 180 days.`,
      action: PATH,
      fields: { code: user_code, shown: visitor.signatureOf(shown(user_code)) },
    });
    return this.layout.show(visitor, page);
  }
}

const shown = (user_code: string) => `device ${user_code}`;
