import { Controller, Get, Param, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { ApiKeysService } from '../../auth/api-keys.service';
import { failure } from '../../http/failure';
import { OwnAddress } from '../../http/own-address';
import { Post } from '../../http/routes';
import { Audit } from '../../auth/audit';
import { KeysService, MAX_KEYS, type OwnKey } from './keys.service';
import { SessionsService, type SignedInUser } from '../sign-in/sessions.service';
import { formOf } from '../web/form';
import { html, type Html } from '../web/html';
import { formToken, Layout, type PageAnswer, seeOther } from '../web/layout';
import { Pages } from '../web/page';
import { alert, confirmation, copyable, day, type Done, done, idOf, table } from '../web/parts';
import { CurrentUser, CurrentVisitor, Visitor } from '../web/visitor';

const PATH = '/user/settings/api-keys';
const MAX_LABEL = 100;

interface Notice extends Done {
  made: string;
}

@Pages()
@Controller('user/settings')
export class ApiKeysController {
  constructor(
    private readonly keys: KeysService,
    private readonly sessions: SessionsService,
    private readonly apiKeys: ApiKeysService,
    private readonly layout: Layout,
    private readonly own: OwnAddress,
    private readonly audit: Audit,
  ) {}

  @Get()
  @SignedIn()
  settingsPage(): PageAnswer {
    return seeOther(PATH);
  }

  @Get('api-keys')
  @SignedIn()
  async list(@CurrentVisitor() visitor: Visitor): Promise<PageAnswer> {
    return this.page(visitor, { takesNotice: true });
  }

  @Post('api-keys')
  @SignedIn()
  async make(
    @Req() req: Request,
    @CurrentVisitor() visitor: Visitor,
    @CurrentUser() user: SignedInUser,
  ): Promise<PageAnswer> {
    const label = ((await formOf(req)).text('label') ?? '').trim();
    if (label === '')
      return this.page(visitor, { problem: 'Give the key a label, so that you know it later.' });
    if ([...label].length > MAX_LABEL)
      return this.page(visitor, {
        label,
        problem: `The label must be at most ${MAX_LABEL} characters.`,
      });
    const made = await this.keys.make(user.id, label);
    if (!made)
      return this.page(visitor, {
        label,
        problem: `You have ${MAX_KEYS} keys. Revoke one that you no longer use first.`,
      });
    this.audit.record({ event: 'api key made', request_id: req.id, user_id: user.id, api_key_id: made.id });
    await this.sessions.leaveNotice(visitor.token, { made: made.key } satisfies Partial<Notice>);
    return seeOther(PATH);
  }

  @Get('api-keys/:key_id/revoke')
  @SignedIn()
  async confirm(
    @Param('key_id') key_id: string,
    @CurrentVisitor() visitor: Visitor,
    @CurrentUser() user: SignedInUser,
  ): Promise<PageAnswer> {
    const key = await this.keys.keyOf(user.id, idOf(key_id));
    if (!key) throw noSuchKey();
    return this.layout.show(
      visitor,
      confirmation(visitor, {
        title: 'Revoke a key',
        question: 'Revoke this key?',
        facts: html`<p>
            <strong>${key.label ?? 'A key without a label'}</strong><br /><code>${key.hint}…</code>
          </p>
          <p>Whatever uses it stops working at once. This cannot be undone.</p>`,
        action: `${PATH}/${key.id}/revoke`,
        button: 'Revoke the key',
        back: PATH,
      }),
    );
  }

  @Post('api-keys/:key_id/revoke')
  @SignedIn()
  async revoke(
    @Req() req: Request,
    @Param('key_id') key_id: string,
    @CurrentVisitor() visitor: Visitor,
    @CurrentUser() user: SignedInUser,
  ): Promise<PageAnswer> {
    const id = idOf(key_id);
    const key = await this.keys.keyOf(user.id, id);
    if (!key || !(await this.apiKeys.revoke(id, user.id))) throw noSuchKey();
    this.audit.record({ event: 'api key revoked', request_id: req.id, user_id: user.id, api_key_id: id });
    await this.sessions.leaveNotice(visitor.token, {
      done: `The key “${key.label ?? key.hint}” is revoked.`,
    } satisfies Done);
    return seeOther(PATH);
  }

  private async page(
    visitor: Visitor,
    { takesNotice = false, problem, label = '' }: { takesNotice?: boolean; problem?: string; label?: string },
  ): Promise<PageAnswer> {
    const keys = await this.keys.keysOf(visitor.user!.id);
    const notice = takesNotice ? await this.sessions.takeNotice<Notice>(visitor.token) : {};
    return this.layout.show(
      visitor,
      {
        title: 'API keys',
        status: problem ? 400 : 200,
        main: html`<h1>API keys</h1>
          <p class="lead">
            A key lets a program do everything with the API that you may do yourself. Keep it like a password.
          </p>
          ${problem && alert(problem)} ${done(notice.done)} ${notice.made && this.newKey(notice.made)}
          <form method="post" action="${PATH}" class="card row">
            ${formToken(visitor)}
            <label class="field" for="label"
              >Label of a new key
              <input
                id="label"
                name="label"
                value="${label}"
                required
                maxlength="${MAX_LABEL}"
                placeholder="such as: build server"
            /></label>
            <button>Make a key</button>
          </form>
          ${
            keys.length === 0
              ? html`<p class="empty">You have no keys yet.</p>`
              : table('Your keys', ['Label', 'Begins with', 'Made', 'Last used', 'Revoke'], keys.map(keyRow))
          }`,
      },
      PATH,
    );
  }

  private newKey(key: string): Html {
    return html`<section class="card fresh stack" aria-labelledby="fresh">
      <h2 id="fresh">Your new key</h2>
      <p>Copy it now: it is shown this once and stored nowhere.</p>
      ${copyable('new-key', 'Key', key)}
      ${copyable('try', 'Try it', `curl -H "Authorization: Bearer ${key}" ${this.own.url}/profile`)}
    </section>`;
  }
}

const noSuchKey = () => failure(404, 'You have no such key, or it is revoked already.');

const keyRow = ({ id, hint, label, scopes, created_at, last_used_at }: OwnKey): Html =>
  html`<tr>
    <th scope="row">
      ${label ?? html`<span class="muted">no label</span>`}${scopes && html`<br /><small>only ${scopes.join(', ')}</small>`}
    </th>
    <td data-label="Begins with"><code>${hint}…</code></td>
    <td data-label="Made">${day(created_at)}</td>
    <td data-label="Last used">${day(last_used_at)}</td>
    <td class="actions">
      <a class="button quiet danger" href="${PATH}/${id}/revoke"
        >Revoke<span class="hidden"> ${label ?? hint}</span></a
      >
    </td>
  </tr>`;
