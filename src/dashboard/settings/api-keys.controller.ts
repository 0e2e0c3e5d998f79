import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import type { ApiKey } from '../../auth/keys/api-key.entity';
import { ApiKeysService, MAX_API_KEYS } from '../../auth/keys/api-keys.service';
import { covers } from '../../auth/access/credential';
import { Clock } from '../../platform/config/clock';
import { apiError } from '../../platform/errors/api-error';
import { ServiceUrl } from '../../platform/server/service-url';
import { Audit } from '../../audit/audit';
import { Form } from '../../platform/input/form';
import { hasProblems } from '../layout/fields';
import { seeOther } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { keyPage, keysPage, keyName, newKeyPage, API_KEYS_PATH, revokeKeyPage } from './api-keys.page';
import { readKeyDraft, readLabel, NEW_KEY, problemOfLabel } from './key-draft';

@Pages()
@SignedIn()
@Controller('user/settings/api-keys')
export class ApiKeysController {
  constructor(
    private readonly keys: ApiKeysService,
    private readonly service: ServiceUrl,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  @Get()
  async list(@CurrentVisitor() visitor: SignedInVisitor) {
    const keys = await this.keys.ownKeys(visitor.user.id);
    const requests = await this.keys.countRequests(keys);
    return keysPage(keys, requests, this.clock.now(), this.service.url);
  }

  @Get('new')
  newForm(@CurrentVisitor() visitor: SignedInVisitor) {
    return newKeyPage(visitor, NEW_KEY, {});
  }

  @Post()
  async create(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const { draft, problems, key } = readKeyDraft(form, this.clock.now());
    if (hasProblems(problems)) return newKeyPage(visitor, draft, problems);
    const created = await this.keys.createOwn(visitor.user.id, key);
    if (!created) {
      const problem = `You have reached the limit of ${MAX_API_KEYS} keys. Revoke a key that you no longer use, and try again.`;
      return newKeyPage(visitor, draft, {}, problem);
    }
    this.audit.record({ event: 'api_key.created', ...visitor.by, api_key_id: created.id });
    const path = !key.scopes || covers(key.scopes, 'profile:me') ? '/profile' : '/credentials/info';
    return seeOther(API_KEYS_PATH, { made: created.key, path });
  }

  @Get(':key_id')
  async one(@PathId('key_id') key_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const key = await this.ownKey(visitor, key_id);
    return keyPage(visitor, key, this.clock.now(), key.label ?? '');
  }

  @Post(':key_id')
  async rename(
    @FormFields() form: Form,
    @PathId('key_id') key_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const key = await this.ownKey(visitor, key_id);
    const label = readLabel(form);
    const problem = problemOfLabel(label);
    if (problem) return keyPage(visitor, key, this.clock.now(), label, problem);
    if (!(await this.keys.rename(visitor.user.id, key.id, label))) throw noSuchKey();
    return seeOther(API_KEYS_PATH, { message: `The key was renamed to “${label}”.` });
  }

  @Get(':key_id/revoke')
  async confirm(@PathId('key_id') key_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    return revokeKeyPage(visitor, await this.ownKey(visitor, key_id));
  }

  @Post(':key_id/revoke')
  async revoke(@PathId('key_id') key_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const key = await this.ownKey(visitor, key_id);
    if (!(await this.keys.revoke(key.id, visitor.user.id))) throw noSuchKey();
    this.audit.record({ event: 'api_key.revoked', ...visitor.by, api_key_id: key.id });
    return seeOther(API_KEYS_PATH, { message: `The key “${keyName(key)}” was revoked.` });
  }

  private async ownKey({ user }: SignedInVisitor, key_id: number): Promise<ApiKey> {
    const key = await this.keys.ownKey(user.id, key_id);
    if (!key) throw noSuchKey();
    return key;
  }
}

const noSuchKey = () => apiError(404, 'This key doesn’t exist, or it was already revoked.');
