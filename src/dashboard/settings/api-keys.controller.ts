import { Controller, Get, Param, Req, Post } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import type { ApiKey } from '../../auth/api-key.entity';
import { ApiKeysService } from '../../auth/api-keys.service';
import { covers } from '../../auth/credential';
import { Clock } from '../../platform/config/clock';
import { apiError } from '../../platform/http/api-error';
import { OwnAddress } from '../../platform/http/own-address';
import { Audit } from '../../auth/audit';
import { keyDraftOf, labelOf, NEW_KEY, problemOfLabel } from './key-draft';
import { keyFacts, keyForm, keyRow, labelField, nameOf, newKey, PATH } from './key-parts';
import { KeysService, MAX_KEYS } from './keys.service';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { formOf } from '../../platform/http/form';
import { html } from '../layout/html';
import { formToken, Layout, seeOther } from '../layout/layout';
import { Pages } from '../layout/page';
import { confirmation, done, idOf, isWrong, table } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';

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
    private readonly clock: Clock,
  ) {}

  @Get()
  @SignedIn()
  settingsPage(@CurrentVisitor() visitor: SignedInVisitor) {
    return seeOther(visitor.user.sells ? '/user/settings/games' : '/user/games');
  }

  @Get('api-keys')
  @SignedIn()
  async list(@CurrentVisitor() visitor: SignedInVisitor) {
    const keys = await this.keys.keysOf(visitor.user.id);
    const requests = await this.keys.requestsOf(keys);
    const { made, path, done: text } = await this.sessions.takeNotice(visitor.token);
    return this.layout.show(visitor, {
      section: PATH,
      title: 'API keys',
      main: html`<div class="head">
          <h1>API keys</h1>
          <a class="button" href="${PATH}/new">New key</a>
        </div>
        <p class="lead">A program uses the API as you with a key. Keep it secret like a password.</p>
        ${done(text)}
        ${made && newKey(made, `curl -H "Authorization: Bearer ${made}" ${this.own.url}${path}`)}
        ${
          keys.length === 0
            ? html`<p class="empty">You don’t have any keys yet.</p>`
            : table(
                'Your keys',
                ['Key', 'Permissions', 'Requests', 'Last used', 'Expires', { buttons: 'Revoke' }],
                keys.map((key) => keyRow(key, requests.get(key.id)!, this.clock.now())),
              )
        }`,
    });
  }

  @Get('api-keys/new')
  @SignedIn()
  blank(@CurrentVisitor() visitor: SignedInVisitor) {
    return this.layout.show(visitor, keyForm(visitor, NEW_KEY, {}));
  }

  @Post('api-keys')
  @SignedIn()
  async make(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor) {
    const { draft, problems, key } = keyDraftOf(await formOf(req), this.clock.now());
    if (isWrong(problems)) return this.layout.show(visitor, keyForm(visitor, draft, problems));
    const made = await this.keys.make(visitor.user.id, key);
    if (!made) {
      const problem = `You have ${MAX_KEYS} keys. Revoke one that you no longer use first.`;
      return this.layout.show(visitor, keyForm(visitor, draft, {}, problem));
    }
    this.audit.record({ event: 'api_key.created', ...visitor.by, api_key_id: made.id });
    const path = !key.scopes || covers(key.scopes, 'profile:me') ? '/profile' : '/credentials/info';
    await this.sessions.setNotice(visitor.token, { made: made.key, path });
    return seeOther(PATH);
  }

  @Get('api-keys/:key_id')
  @SignedIn()
  async one(@Param('key_id') key_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const key = await this.ownKey(visitor, key_id);
    return this.onePage(visitor, key, key.label ?? '');
  }

  @Post('api-keys/:key_id')
  @SignedIn()
  async rename(
    @Req() req: Request,
    @Param('key_id') key_id: string,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const key = await this.ownKey(visitor, key_id);
    const label = labelOf(await formOf(req));
    const problem = problemOfLabel(label);
    if (problem) return this.onePage(visitor, key, label, problem);
    if (!(await this.keys.rename(visitor.user.id, key.id, label))) throw noSuchKey();
    await this.sessions.setNotice(visitor.token, { done: `The key is now called “${label}”.` });
    return seeOther(PATH);
  }

  @Get('api-keys/:key_id/revoke')
  @SignedIn()
  async confirm(@Param('key_id') key_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const key = await this.ownKey(visitor, key_id);
    return this.layout.show(
      visitor,
      confirmation(visitor, {
        section: PATH,
        title: 'Revoke a key',
        question: 'Revoke this key?',
        facts: html`<p>
            <strong>${key.label ?? 'A key without a name'}</strong><br /><code>${key.hint}…</code>
          </p>
          <p>Programs that use it stop working immediately. This can’t be undone.</p>`,
        action: `${PATH}/${key.id}/revoke`,
        button: 'Revoke key',
        back: PATH,
      }),
    );
  }

  @Post('api-keys/:key_id/revoke')
  @SignedIn()
  async revoke(@Param('key_id') key_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const key = await this.ownKey(visitor, key_id);
    if (!(await this.apiKeys.revoke(key.id, visitor.user.id))) throw noSuchKey();
    this.audit.record({ event: 'api_key.revoked', ...visitor.by, api_key_id: key.id });
    await this.sessions.setNotice(visitor.token, { done: `The key “${nameOf(key)}” is revoked.` });
    return seeOther(PATH);
  }

  private async ownKey({ user }: SignedInVisitor, key_id: string): Promise<ApiKey> {
    const key = await this.keys.keyOf(user.id, idOf(key_id));
    if (!key) throw noSuchKey();
    return key;
  }

  private onePage(visitor: Visitor, key: ApiKey, label: string, problem?: string) {
    return this.layout.show(visitor, {
      section: PATH,
      title: nameOf(key),
      status: problem ? 400 : 200,
      main: html`<h1>${nameOf(key)}</h1>
        <section class="card stack" aria-label="About this key">${keyFacts(key, this.clock.now())}</section>
        <form method="post" action="${PATH}/${key.id}" class="card stack">
          ${formToken(visitor)} ${labelField(label, problem)}
          <div class="buttons">
            <button>Save</button>
            <a class="button quiet" href="${PATH}">Cancel</a>
          </div>
        </form>`,
    });
  }
}

const noSuchKey = () => apiError(404, 'This key doesn’t exist, or it was already revoked.');
