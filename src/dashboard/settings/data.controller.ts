import { Controller, Get, Req, Post } from '@nestjs/common';
import type { Request } from 'express';
import { tooManyAttempts } from '../sign-in/sign-in.controller';
import { SignInService } from '../sign-in/sign-in.service';
import { formOf } from '../../platform/http/form';
import { html, type Html } from '../layout/html';
import { formToken, Layout, type Page } from '../layout/layout';
import { Pages } from '../layout/page';
import { alert, MAX_PASSWORD, passwordField } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';
import { SignedIn } from '../../auth/access';
import { Audit } from '../../auth/audit';
import { OperatorEvents } from '../../operator/tokens/operator-events';
import { Settings } from '../../platform/config/settings';
import { SignInAttempt } from '../../platform/rate-limits/rate-limits.decorators';
import { RateLimitsService } from '../../platform/rate-limits/rate-limits.service';
import { ExportService } from '../../operator/people/export.service';
import { People } from '../../operator/people/person';

const PATH = '/user/settings/data';

/** The page where people get what is stored about them, and read how it is erased. */
@Pages()
@Controller('user/settings/data')
export class DataController {
  constructor(
    private readonly people: People,
    private readonly exports: ExportService,
    private readonly signIns: SignInService,
    private readonly layout: Layout,
    private readonly limits: RateLimitsService,
    private readonly audit: Audit,
    private readonly events: OperatorEvents,
    private readonly settings: Settings,
  ) {}

  @Get()
  @SignedIn()
  show(@CurrentVisitor() visitor: Visitor) {
    return this.page(visitor);
  }

  @Post()
  @SignedIn()
  @SignInAttempt()
  async export(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor) {
    if (this.settings.TRUSTED_IDENTITY_HEADER) return this.page(visitor);
    const password = (await formOf(req)).text('password') ?? '';
    if (password === '' || password.length > MAX_PASSWORD)
      return this.page(visitor, { status: 400, problem: 'Enter your password.' });
    const result = await this.signIns.signIn(visitor.user.username, password, req.exchange.client.network);
    if ('rejected' in result) {
      this.audit.record({
        event: 'user.sign_in_failed',
        ...visitor.by,
        reason: result.rejected,
        address: req.exchange.client.network,
      });
      if (result.rejected === 'wait') return this.page(visitor, tooManyAttempts(result.seconds));
      void this.limits.failed('sign-in', req);
      return this.page(visitor, { status: 403, problem: 'The password is wrong.' });
    }
    return this.exports.response(
      await this.people.verified(visitor.user.id),
      (counts) =>
        this.events.record('user.exported', { request_id: req.id }, { counts, user_id: visitor.user.id }),
      { 'Content-Disposition': 'attachment; filename="my-data.ndjson"' },
    );
  }

  private page(
    visitor: Visitor,
    { problem, ...response }: { problem?: string } & Pick<Page, 'status' | 'headers'> = {},
  ) {
    const store = this.layout.storeName;
    return this.layout.show(visitor, {
      section: PATH,
      title: 'Your data',
      ...response,
      main: html`<h1>Your data</h1>
        <p class="lead">
          The personal data that ${store} stores here. You can download it, or have it erased.
        </p>
        ${problem && alert(problem)}
        <section class="card stack" aria-labelledby="export">
          <h2 id="export">Download your data</h2>
          <p>
            One file with your account and its email addresses, purchases, download keys, collections, API
            keys, apps, sign-ins and audit events. Each line is a JSON object.
          </p>
          ${this.settings.TRUSTED_IDENTITY_HEADER ? this.elsewhere() : passwordForm(visitor)}
        </section>
        <section class="card stack" aria-labelledby="erasure">
          <h2 id="erasure">Have your data erased</h2>
          <p>
            Contact ${store}. Your name, email addresses, picture, collections, API keys and apps are deleted,
            and your games get an anonymous owner. Your purchases stay in the accounts of the store with their
            amount, date and game, but without your name.
          </p>
          <p>
            This can’t be undone: you can no longer sign in, and your purchases can no longer be found by your
            name or email address.
          </p>
          <p><a class="button quiet" href="${this.settings.STORE_URL}">Go to ${store}</a></p>
        </section>`,
    });
  }

  private elsewhere(): Html {
    return html`<p>You sign in at ${this.layout.storeName}. Request the file there.</p>`;
  }
}

const passwordForm = (visitor: Visitor): Html =>
  html`<form method="post" action="${PATH}" class="stack">
    ${formToken(visitor)} ${passwordField('Your password')}
    <button>Download my data</button>
  </form>`;
