import { Controller, Get, Post } from '@nestjs/common';
import { Public, SignedIn } from '../../auth/access';
import { Audit } from '../../auth/audit';
import { expiryOf } from '../../auth/key-expiry';
import { Clock } from '../../platform/config/clock';
import { OwnAddress } from '../../platform/http/own-address';
import { ApiDescription } from '../../platform/openapi/api-description';
import { KeysService } from '../settings/keys.service';
import { type Notice, SessionsService } from '../../auth/sign-in/sessions.service';
import { Assets } from '../layout/assets';
import { html, type Html } from '../layout/html';
import { formToken, type HtmlResponse, Layout, seeOther } from '../layout/layout';
import { Pages } from '../layout/page';
import { alert } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';
import type { Schemas } from './openapi';
import { groupsOf, markdown, menu, sections } from './reference-parts';

const PATH = '/docs';

@Pages()
@Controller('docs')
export class ReferencePageController {
  private parts: { menu: Html; introduction: Html; sections: Html } | undefined;
  private anonymousPage: HtmlResponse | undefined;

  constructor(
    private readonly description: ApiDescription,
    private readonly layout: Layout,
    private readonly assets: Assets,
    private readonly sessions: SessionsService,
    private readonly keys: KeysService,
    private readonly own: OwnAddress,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  @Get()
  @Public()
  async page(@CurrentVisitor() visitor: Visitor): Promise<HtmlResponse> {
    if (!visitor.user) return (this.anonymousPage ??= this.pageFor(visitor).cached());
    return this.pageFor(visitor, await this.sessions.takeNotice(visitor.token));
  }

  private pageFor(visitor: Visitor, notice: Notice = {}): HtmlResponse {
    const parts = (this.parts ??= this.render());
    return this.layout.show(visitor, {
      section: PATH,
      title: 'API reference',
      styles: [this.assets.referenceStyle],
      scripts: [this.assets.referenceScript],
      sendsRequests: true,
      main: html`<h1>API reference</h1>
        <p class="lead">
          All requests that this API takes. Your tools can read it too, as
          <a href="/openapi.json">OpenAPI</a>.
        </p>
        <div class="reference" data-base="${this.own.url}">
          <div class="aside">
            <label class="field" for="find" hidden
              >Find an endpoint <input id="find" type="search" autocomplete="off"
            /></label>
            <p id="found" role="status" class="muted"></p>
            <details class="menu">
              <summary>Endpoints</summary>
              ${parts.menu}
            </details>
          </div>
          <div class="content">
            <section class="card stack" aria-labelledby="your-key">
              <h2 id="your-key">Your key</h2>
              ${notice.problem && alert(notice.problem)}
              <label class="field" for="credential"
                >An API key or a JWT, for the code below
                <input
                  id="credential"
                  type="password"
                  value="${notice.made ?? ''}"
                  autocomplete="off"
                  spellcheck="false"
                  aria-describedby="credential-help"
              /></label>
              <small id="credential-help">It stays in this page, and is forgotten when you leave it.</small>
              ${this.keyFor(visitor)}
            </section>
            <details class="introduction">
              <summary>Before the first request: parameters, credentials, errors, limits</summary>
              <div class="stack">${parts.introduction}</div>
            </details>
            ${parts.sections}
          </div>
        </div>`,
    });
  }

  /** Makes a key for who is signed in, that is good for a day. */
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

  private keyFor(visitor: Visitor): Html {
    if (!visitor.user)
      return html`<p><a href="/login?return_to=${PATH}">Sign in</a> to get one for this page.</p>`;
    return html`<form method="post" action="${PATH}/key">
      ${formToken(visitor)}
      <button class="quiet">Create a key for a day</button>
      <small>It only reads your profile (<code>profile:me</code>).</small>
    </form>`;
  }

  /** The same for everybody. */
  private render() {
    const document = this.description.document();
    const groups = groupsOf(document);
    return {
      menu: menu(groups),
      introduction: markdown(document.info.description ?? ''),
      sections: sections(groups, (document.components?.schemas ?? {}) as Schemas),
    };
  }
}
