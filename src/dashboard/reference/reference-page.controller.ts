import { Controller, Get, Post } from '@nestjs/common';
import { Public, SignedIn } from '../../auth/access';
import { Audit } from '../../auth/audit';
import { expiryOf } from '../../auth/key-expiry';
import { Clock } from '../../platform/config/clock';
import { OwnAddress } from '../../platform/http/own-address';
import { ApiDescription } from '../../platform/openapi/api-description';
import { KeysService } from '../settings/keys.service';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { type Asset, Assets } from '../layout/assets';
import { html, type Html } from '../layout/html';
import { formToken, type HtmlResponse, Layout, seeOther } from '../layout/layout';
import { Pages } from '../layout/page';
import { alert } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';
import { endpointsOf } from './endpoints.page';
import { credentialField, referencePage } from './reference.page';

const PATH = '/docs';

@Pages()
@Controller('docs')
export class ReferencePageController {
  /** The same for every reader, so browsers cache it. */
  private readonly endpoints: () => Asset;

  constructor(
    description: ApiDescription,
    private readonly layout: Layout,
    private readonly assets: Assets,
    private readonly sessions: SessionsService,
    private readonly keys: KeysService,
    private readonly own: OwnAddress,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {
    this.endpoints = assets.rendered('reference.html', () =>
      endpointsOf(description.document('everybody')).toString(),
    );
  }

  @Get()
  @Public()
  async page(@CurrentVisitor() visitor: Visitor): Promise<HtmlResponse> {
    const { made, problem } = visitor.user ? await this.sessions.takeNotice(visitor.token) : {};
    const source = this.endpoints().path;
    return this.show(visitor, {
      title: 'API reference',
      lead: html`All endpoints of the public API, also available as <a href="/openapi.json">OpenAPI</a> and
        <a href="/llms.txt">llms.txt</a>. Operators of a store use
        <a href="${PATH}/operator">further endpoints</a>.`,
      credential: html`<section class="card stack" aria-labelledby="your-key">
        <h2 id="your-key">Your key</h2>
        ${problem && alert(problem)} ${credentialField('An API key or a JWT, for the code below', made)}
        ${this.keyFor(visitor)}
      </section>`,
      source,
      withoutScript: html`Without JavaScript, you can read the <a href="${source}">list of endpoints</a>.`,
    });
  }

  @Get('operator')
  @Public()
  operatorPage(@CurrentVisitor() visitor: Visitor): HtmlResponse {
    return this.show(visitor, {
      title: 'API reference for operators',
      lead: html`The endpoints that a store’s own systems call with an operator token.`,
      credential: html`<form id="with-token" class="card stack">
        ${credentialField('Operator token')}
        <button>Show the endpoints</button>
        <small>To create a token, run <code>gamewharf operator-tokens create</code>.</small>
      </form>`,
      source: '/operator/docs',
      withoutScript: html`This page needs JavaScript. Without it, download
        <code>/operator/openapi.json</code> with your token.`,
    });
  }

  /** Creates a key for the signed-in reader that is valid for a day. */
  @Post('key')
  @SignedIn()
  async makeKey(@CurrentVisitor() visitor: SignedInVisitor) {
    const made = await this.keys.make(visitor.user.id, {
      label: 'API reference',
      scopes: ['profile:me'],
      expires_at: expiryOf('1', this.clock.now()),
    });
    if (made) this.audit.record({ event: 'api_key.created', ...visitor.by, api_key_id: made.id });
    const problem = 'You have too many keys. Revoke one that you no longer use first.';
    await this.sessions.setNotice(visitor.token, made ? { made: made.key } : { problem });
    return seeOther(PATH);
  }

  private show(visitor: Visitor, page: Omit<Parameters<typeof referencePage>[0], 'base'>): HtmlResponse {
    return this.layout.show(visitor, {
      section: PATH,
      title: page.title,
      styles: [this.assets.referenceStyle],
      scripts: [this.assets.referenceScript],
      sendsRequests: true,
      main: referencePage({ ...page, base: this.own.url }),
    });
  }

  private keyFor(visitor: Visitor): Html {
    if (!visitor.user)
      return html`<p><a href="/login?return_to=${PATH}">Sign in</a> to create a key for this page.</p>`;
    return html`<form method="post" action="${PATH}/key">
      ${formToken(visitor)}
      <button class="quiet">Create a key for a day</button>
      <small>It only reads your profile (<code>profile:me</code>).</small>
    </form>`;
  }
}
