import { Controller, Get, Param, Post } from '@nestjs/common';
import { Public, SignedIn } from '../../auth/access/access';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { Audit } from '../../audit/audit';
import { parseKeyExpiry } from '../../auth/keys/key-expiry';
import { Clock } from '../../platform/config/clock';
import { apiError } from '../../platform/errors/api-error';
import { ServiceUrl } from '../../platform/server/service-url';
import { ApiDescription } from '../../platform/openapi/api-description';
import { type Asset, Assets } from '../layout/assets';
import type { Html } from '../layout/html';
import { type Page, seeOther } from '../layout/layout';
import { Pages } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';
import { endpointList, endpointPage, renderEndpoints } from './endpoints.page';
import {
  OPERATOR_REFERENCE,
  REFERENCE_PATH,
  publicReference,
  type Reference,
  referencePage,
} from './reference.page';

@Pages()
@Controller('docs')
export class ReferencePageController {
  /** Every reader gets the same endpoints, so browsers cache them. */
  private readonly endpoints: () => Asset;
  private list: Html | undefined;

  constructor(
    private readonly description: ApiDescription,
    private readonly assets: Assets,
    private readonly keys: ApiKeysService,
    private readonly service: ServiceUrl,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {
    this.endpoints = assets.rendered('reference.html', () =>
      renderEndpoints(description.document('everybody')).toString(),
    );
  }

  @Get()
  @Public()
  page(@CurrentVisitor() visitor: Visitor): Page {
    const source = this.endpoints().path;
    this.list ??= endpointList(this.description.document('everybody'));
    return this.showing(publicReference(visitor, source, this.list));
  }

  /** Shows one endpoint to readers without JavaScript. */
  @Get('endpoints/:id')
  @Public()
  endpoint(@Param('id') id: string): Page {
    const page = endpointPage(this.description.document('everybody'), id);
    if (!page) throw apiError(404, 'This endpoint doesn’t exist.');
    return { section: REFERENCE_PATH, styles: [this.assets.referenceStyle], ...page };
  }

  @Get('operator')
  @Public()
  operatorPage(): Page {
    return this.showing(OPERATOR_REFERENCE);
  }

  /** Creates a key for the signed-in reader that is valid for a day. */
  @Post('key')
  @SignedIn()
  async makeKey(@CurrentVisitor() visitor: SignedInVisitor) {
    const created = await this.keys.createOwn(visitor.user.id, {
      label: 'API reference',
      scopes: ['profile:me'],
      expires_at: parseKeyExpiry('1', this.clock.now()),
    });
    if (created) this.audit.record({ event: 'api_key.created', ...visitor.by, api_key_id: created.id });
    const problem = 'You have too many keys. Revoke one that you no longer use first.';
    return seeOther(REFERENCE_PATH, created ? { made: created.key } : { problem });
  }

  private showing(reference: Reference): Page {
    return {
      section: REFERENCE_PATH,
      title: reference.title,
      styles: [this.assets.referenceStyle],
      scripts: [this.assets.referenceScript],
      sendsRequests: true,
      main: (notice) => referencePage(reference, this.service.url, notice),
    };
  }
}
