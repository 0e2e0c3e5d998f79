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
    if ('refused' in result) {
      this.audit.record({
        event: 'user.sign_in_failed',
        ...visitor.by,
        reason: result.refused,
        address: req.exchange.client.network,
      });
      if (result.refused === 'wait') return this.page(visitor, tooManyAttempts(result.seconds));
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
    { problem, ...answer }: { problem?: string } & Pick<Page, 'status' | 'headers'> = {},
  ) {
    const store = this.layout.storeName;
    return this.layout.show(visitor, {
      section: PATH,
      title: 'Your data',
      ...answer,
      main: html`<h1>Your data</h1>
        <p class="lead">What ${store} stores about you here: yours to take along, and to have erased.</p>
        ${problem && alert(problem)}
        <section class="card stack" aria-labelledby="export">
          <h2 id="export">Take it along</h2>
          <p>
            One file with all of it: your account and its addresses, purchases and download keys, collections,
            API keys and applications, sign-ins and what was written down about them. Each line is a JSON
            object.
          </p>
          ${this.settings.TRUSTED_IDENTITY_HEADER ? this.elsewhere() : passwordForm(visitor)}
        </section>
        <section class="card stack" aria-labelledby="erasure">
          <h2 id="erasure">Have it erased</h2>
          <p>
            Ask ${store}. Your name, addresses, picture, collections, API keys and applications go, and your
            games get a name that says nothing. What you bought stays in the books with its amount, date and
            game, without you.
          </p>
          <p>
            It cannot be undone: you can no longer sign in, and what you bought can no longer be found by your
            name or address.
          </p>
          <p><a class="button quiet" href="${this.settings.STORE_URL}">Go to ${store}</a></p>
        </section>`,
    });
  }

  private elsewhere(): Html {
    return html`<p>You sign in at ${this.layout.storeName} itself: ask there for the file.</p>`;
  }
}

const passwordForm = (visitor: Visitor): Html =>
  html`<form method="post" action="${PATH}" class="stack">
    ${formToken(visitor)} ${passwordField('Your password')}
    <button>Download my data</button>
  </form>`;
