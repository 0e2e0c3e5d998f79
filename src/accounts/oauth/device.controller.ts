import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { Database } from '../../database/database';
import { Post } from '../../http/routes';
import { AttemptsService, guessAtDeviceCode } from '../sign-in/attempts.service';
import { Audit } from '../../auth/audit';
import { DeviceRequestsService, type ShownRequest, userCodeOf } from './device-requests.service';
import { GrantsService } from './grants.service';
import type { SignedInUser } from '../sign-in/sessions.service';
import { formOf, queryOf } from '../web/form';
import { html } from '../web/html';
import { Layout, type PageAnswer } from '../web/layout';
import { Pages } from '../web/page';
import { alert, decision, permissionList } from '../web/parts';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../web/visitor';

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
  async form(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor): Promise<PageAnswer> {
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
        problem: 'No device waits with this code. Look at it again, or have the device make a new one.',
      });
    return this.entry(visitor, typed, {
      status: 429,
      problem: `Too many wrong codes. Please wait ${seconds} s and try again.`,
      headers: { 'Retry-After': String(seconds) },
    });
  }

  @Post()
  @SignedIn()
  async decide(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor): Promise<PageAnswer> {
    const form = await formOf(req);
    const user_code = userCodeOf(form.text('code') ?? '');
    // Without this proof, posting codes would be guessing without a limit.
    if (!visitor.hasProofOf(shown(user_code), form.text('shown')))
      return this.entry(visitor, '', {
        status: 403,
        problem: 'Enter the code that your device shows first.',
      });
    const allowed = form.text('decision') === 'allow';
    const decided = allowed
      ? await this.approve(req, visitor.user, user_code, form.ticked('may_start_games'))
      : await this.devices.deny(user_code);
    if (!decided)
      return this.entry(visitor, '', {
        status: 404,
        problem: 'This code is too old now, or was answered already. Have the device make a new one.',
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

  private async approve(
    req: Request,
    user: SignedInUser,
    user_code: string,
    may_start_games: boolean,
  ): Promise<boolean> {
    const approved = await this.database.transaction(async (db) => {
      const request = await this.devices.lockPending(db, user_code);
      if (!request) return undefined;
      const { client_id, scopes } = request;
      const consent = { scopes, may_start_games, implicit_allowed: false };
      await this.devices.approve(db, request, await this.grants.give(db, user.id, client_id, consent));
      return { client_id, scopes };
    });
    if (!approved) return false;
    this.audit.record({ event: 'grant given', request_id: req.id, user_id: user.id, ...approved });
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
    visitor: SignedInVisitor,
    { user_code, name, owner, scopes, may_start_games }: ShownRequest,
  ): PageAnswer {
    return this.layout.show(visitor, {
      title: `Allow ${name}?`,
      single: true,
      main: html`<h1>Allow <bdi>${name}</bdi> on your device to act for you?</h1>
        <div class="card stack">
          <p>Go on only if a device in front of you shows this code, and nobody sent it to you:</p>
          <p class="code-entry">${user_code}</p>
          <p>
            <strong><bdi>${name}</bdi></strong
            >, an application by ${owner}, wants to act for you. It may:
          </p>
          ${permissionList({ scopes, may_start_games })}
          <p class="muted">
            It stays signed in for at most 180 days. You can take this back at any time under “Allowed
            applications”.
          </p>
          ${decision(visitor, PATH, {
            code: user_code,
            shown: visitor.proofOf(shown(user_code)),
            ...(may_start_games && { may_start_games: 'yes' }),
          })}
        </div>
        <p class="muted">You are signed in as <strong>${visitor.user.username}</strong>.</p>`,
    });
  }
}

const shown = (user_code: string) => `device ${user_code}`;
