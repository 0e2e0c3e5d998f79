import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { Database } from '../../database/database';
import { Post } from '../../http/post';
import { type Application, ApplicationsService } from './applications.service';
import { AttemptsService, guessAtDeviceCode } from '../sign-in/attempts.service';
import { Audit } from '../../auth/audit';
import { type DeviceRequest, DeviceRequestsService, userCodeOf } from './device-requests.service';
import { GrantsService } from './grants.service';
import type { SignedInUser } from '../sign-in/sessions.service';
import { formOf, queryOf } from '../web/form';
import { html } from '../web/html';
import { Layout, type PageAnswer } from '../web/layout';
import { Pages } from '../web/page';
import { alert, decision, scopeList } from '../web/parts';
import { CurrentUser, CurrentVisitor, Visitor } from '../web/visitor';

const PATH = '/user/oauth/device';

/** Where somebody enters the code that a device shows. */
@Pages()
@Controller('user/oauth/device')
export class DeviceController {
  constructor(
    private readonly devices: DeviceRequestsService,
    private readonly applications: ApplicationsService,
    private readonly grants: GrantsService,
    private readonly attempts: AttemptsService,
    private readonly database: Database,
    private readonly layout: Layout,
    private readonly audit: Audit,
  ) {}

  @Get()
  @SignedIn()
  async form(
    @Req() req: Request,
    @CurrentVisitor() visitor: Visitor,
    @CurrentUser() user: SignedInUser,
  ): Promise<PageAnswer> {
    const typed = queryOf(req).text('code');
    if (typed === undefined) return this.entry(visitor);
    const guess = guessAtDeviceCode(user.id);
    const seconds = await this.attempts.reserve([guess]);
    if (seconds > 0)
      return this.entry(visitor, typed, {
        status: 429,
        problem: `Too many wrong codes. Please wait ${seconds} s and try again.`,
        headers: { 'Retry-After': String(seconds) },
      });
    const request = await this.devices.pending(userCodeOf(typed));
    const application = request && (await this.applications.application(request.client_id));
    if (!application)
      return this.entry(visitor, typed, {
        status: 404,
        problem: 'No device waits with this code. Look at it again, or have the device make a new one.',
      });
    await this.attempts.succeeded(guess);
    return this.consent(visitor, user, request, application);
  }

  @Post()
  @SignedIn()
  async decide(
    @Req() req: Request,
    @CurrentVisitor() visitor: Visitor,
    @CurrentUser() user: SignedInUser,
  ): Promise<PageAnswer> {
    const form = await formOf(req);
    const user_code = userCodeOf(form.text('code') ?? '');
    const allowed = form.text('decision') === 'allow';
    if (!(await (allowed ? this.approve(req, user, user_code) : this.devices.deny(user_code))))
      return this.entry(visitor, '', {
        status: 404,
        problem: 'This code is too old now. Have the device make a new one.',
      });
    return this.layout.show(visitor, {
      title: allowed ? 'Done' : 'Refused',
      single: true,
      main: allowed
        ? html`<h1>Done</h1>
            <p>Go back to your device: it goes on by itself in a few seconds.</p>`
        : html`<h1>Refused</h1>
            <p>The device was told that you said no.</p>`,
    });
  }

  private async approve(req: Request, user: SignedInUser, user_code: string): Promise<boolean> {
    const approved = await this.database.transaction(async (db) => {
      const request = await this.devices.hold(db, user_code);
      if (!request) return undefined;
      const grant = await this.grants.give(db, user.id, request.client_id, request.scopes);
      await this.devices.approve(db, request, grant);
      return request;
    });
    if (!approved) return false;
    const { client_id, scopes } = approved;
    this.audit.record({ event: 'grant given', request_id: req.id, user_id: user.id, client_id, scopes });
    return true;
  }

  private entry(
    visitor: Visitor,
    typed = '',
    {
      problem,
      status,
      headers,
    }: { problem?: string; status?: number; headers?: Record<string, string> } = {},
  ): PageAnswer {
    return this.layout.show(visitor, {
      title: 'Connect a device',
      status,
      headers,
      single: true,
      main: html`<h1>Connect a device</h1>
        ${problem && alert(problem)}
        <form method="get" action="${PATH}" class="card stack">
          <label class="field" for="code"
            >The code that your device shows
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

  private consent(
    visitor: Visitor,
    user: SignedInUser,
    { user_code, scopes }: DeviceRequest,
    application: Application,
  ): PageAnswer {
    return this.layout.show(visitor, {
      title: `Allow ${application.name}?`,
      single: true,
      main: html`<h1>Allow <bdi>${application.name}</bdi> on your device to act for you?</h1>
        <div class="card stack">
          <p>Go on only if a device in front of you shows this code, and nobody sent it to you:</p>
          <p class="code-entry">${user_code}</p>
          <p>
            <strong><bdi>${application.name}</bdi></strong
            >, an application by ${application.owner}, asks to:
          </p>
          ${scopeList(scopes)} ${decision(visitor, PATH, { code: user_code })}
        </div>
        <p class="muted">You are signed in as <strong>${user.username}</strong>.</p>`,
    });
  }
}
