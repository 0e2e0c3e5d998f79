import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { ProfileCollectionsService } from '../../collections/profile-collections.service';
import { StoreLinks } from '../../platform/config/store-links';
import { apiError } from '../../platform/errors/api-error';
import { Form, withQuery } from '../../platform/input/form';
import { seeOther } from '../layout/layout';
import { FormFields, PageQuery, Pages, PathId } from '../layout/page';
import { parsePage } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { collectionsPage, PATH } from './collections.page';

@Pages()
@SignedIn()
@Controller('user/settings/collections')
export class ProfileCollectionsController {
  constructor(
    private readonly collections: ProfileCollectionsService,
    private readonly links: StoreLinks,
  ) {}

  @Get()
  async list(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const page = parsePage(query.text('page'));
    const found = await this.collections.listCollections(visitor.user.id, page);
    return collectionsPage(visitor, this.links, found, page);
  }

  @Post(':collection_id/on-profile')
  async change(
    @FormFields() form: Form,
    @PathId('collection_id') collection_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const on = form.text('on') === 'yes';
    const title = await this.collections.setOnProfile(visitor.user.id, collection_id, on);
    if (title === undefined) throw apiError(404, 'This collection doesn’t exist.');
    const page = parsePage(form.text('page'));
    return seeOther(page === 1 ? PATH : withQuery(PATH, { page: String(page) }), {
      done: `“${title}” is ${on ? 'now' : 'no longer'} on your profile.`,
    });
  }
}
