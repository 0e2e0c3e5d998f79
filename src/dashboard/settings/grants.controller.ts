import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { Audit } from '../../audit/audit';
import { GrantsService } from '../../auth/oauth/grants.service';
import { apiError } from '../../platform/errors/api-error';
import { seeOther } from '../layout/layout';
import { Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { grantsPage, GRANTS_PATH, revokeGrantPage } from './grants.page';

@Pages()
@SignedIn()
@Controller('user/settings/authorized-apps')
export class GrantsController {
  constructor(
    private readonly grants: GrantsService,
    private readonly keys: ApiKeysService,
    private readonly audit: Audit,
  ) {}

  @Get()
  async list(@CurrentVisitor() visitor: SignedInVisitor) {
    return grantsPage(visitor, await this.grants.listGrants(visitor.user.id));
  }

  @Post('game-tokens/revoke')
  async revokeTokens(@CurrentVisitor() visitor: SignedInVisitor) {
    await this.keys.revokeAllTokens(visitor.user.id);
    this.audit.record({ event: 'jwt.revoked', ...visitor.by });
    return seeOther(GRANTS_PATH, { message: 'The tokens of all games that you started were revoked.' });
  }

  @Get(':grant_id/revoke')
  async confirm(@PathId('grant_id') grant_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const grant = await this.grants.findGrant(visitor.user.id, grant_id);
    if (!grant) throw noSuchGrant();
    return revokeGrantPage(visitor, grant);
  }

  @Post(':grant_id/revoke')
  async revoke(@PathId('grant_id') grant_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const shown = await this.grants.findGrant(visitor.user.id, grant_id);
    const grant = await this.grants.revoke(visitor.user.id, grant_id);
    if (!shown || !grant) throw noSuchGrant();
    this.audit.record({ event: 'grant.revoked', ...visitor.by, client_id: grant.client_id });
    return seeOther(GRANTS_PATH, { message: `${shown.name} can no longer act on your behalf.` });
  }
}

const noSuchGrant = () => apiError(404, 'This app doesn’t exist, or its access was already revoked.');
