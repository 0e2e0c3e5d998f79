import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access';
import type { ApiKey } from '../../auth/api-key.entity';
import { ApiKeysService } from '../../auth/api-keys.service';
import { covers } from '../../auth/credential';
import { Clock } from '../../platform/config/clock';
import { apiError } from '../../platform/http/api-error';
import { OwnAddress } from '../../platform/http/own-address';
import { Audit } from '../../auth/audit';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { Form } from '../../platform/http/form';
import { isWrong } from '../layout/fields';
import { Layout, seeOther } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { keyPage, keysPage, nameOf, newKeyPage, PATH, revokeKeyPage } from './api-keys.page';
import { keyDraftOf, labelOf, NEW_KEY, problemOfLabel } from './key-draft';
import { KeysService, MAX_KEYS } from './keys.service';

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
    const notice = await this.sessions.takeNotice(visitor.token);
    return this.layout.show(
      visitor,
      keysPage(keys, requests, this.clock.now(), { ...notice, url: this.own.url }),
    );
  }

  @Get('api-keys/new')
  @SignedIn()
  blank(@CurrentVisitor() visitor: SignedInVisitor) {
    return this.layout.show(visitor, newKeyPage(visitor, NEW_KEY, {}));
  }

  @Post('api-keys')
  @SignedIn()
  async make(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const { draft, problems, key } = keyDraftOf(form, this.clock.now());
    if (isWrong(problems)) return this.layout.show(visitor, newKeyPage(visitor, draft, problems));
    const made = await this.keys.make(visitor.user.id, key);
    if (!made) {
      const problem = `You have ${MAX_KEYS} keys. Revoke one that you no longer use first.`;
      return this.layout.show(visitor, newKeyPage(visitor, draft, {}, problem));
    }
    this.audit.record({ event: 'api_key.created', ...visitor.by, api_key_id: made.id });
    const path = !key.scopes || covers(key.scopes, 'profile:me') ? '/profile' : '/credentials/info';
    await this.sessions.setNotice(visitor.token, { made: made.key, path });
    return seeOther(PATH);
  }

  @Get('api-keys/:key_id')
  @SignedIn()
  async one(@PathId('key_id') key_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const key = await this.ownKey(visitor, key_id);
    return this.layout.show(visitor, keyPage(visitor, key, this.clock.now(), key.label ?? ''));
  }

  @Post('api-keys/:key_id')
  @SignedIn()
  async rename(
    @FormFields() form: Form,
    @PathId('key_id') key_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const key = await this.ownKey(visitor, key_id);
    const label = labelOf(form);
    const problem = problemOfLabel(label);
    if (problem) return this.layout.show(visitor, keyPage(visitor, key, this.clock.now(), label, problem));
    if (!(await this.keys.rename(visitor.user.id, key.id, label))) throw noSuchKey();
    await this.sessions.setNotice(visitor.token, { done: `The key is now called “${label}”.` });
    return seeOther(PATH);
  }

  @Get('api-keys/:key_id/revoke')
  @SignedIn()
  async confirm(@PathId('key_id') key_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    return this.layout.show(visitor, revokeKeyPage(visitor, await this.ownKey(visitor, key_id)));
  }

  @Post('api-keys/:key_id/revoke')
  @SignedIn()
  async revoke(@PathId('key_id') key_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const key = await this.ownKey(visitor, key_id);
    if (!(await this.apiKeys.revoke(key.id, visitor.user.id))) throw noSuchKey();
    this.audit.record({ event: 'api_key.revoked', ...visitor.by, api_key_id: key.id });
    await this.sessions.setNotice(visitor.token, { done: `The key “${nameOf(key)}” is revoked.` });
    return seeOther(PATH);
  }

  private async ownKey({ user }: SignedInVisitor, key_id: number): Promise<ApiKey> {
    const key = await this.keys.keyOf(user.id, key_id);
    if (!key) throw noSuchKey();
    return key;
  }
}

const noSuchKey = () => apiError(404, 'This key doesn’t exist, or it was already revoked.');
