import { Controller, Get, Param, Req, Post } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { StoreLinks } from '../../platform/config/store-links';
import { apiError } from '../../platform/http/api-error';
import {
  PER_PAGE,
  ProfileCollectionsService,
  type ShownCollection,
} from '../../collections/profile-collections.service';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { formOf, queryOf } from '../../platform/http/form';
import { html, type Html } from '../layout/html';
import { formToken, Layout, seeOther } from '../layout/layout';
import { Pages } from '../layout/page';
import { done, idOf, pageLinks, pageOf, table } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';

const PATH = '/user/settings/collections';

@Pages()
@Controller('user/settings/collections')
export class ProfileCollectionsController {
  constructor(
    private readonly collections: ProfileCollectionsService,
    private readonly sessions: SessionsService,
    private readonly layout: Layout,
    private readonly links: StoreLinks,
  ) {}

  @Get()
  @SignedIn()
  async list(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor) {
    const page = pageOf(queryOf(req).text('page'));
    const found = await this.collections.collectionsOf(visitor.user.id, page);
    const notice = await this.sessions.takeNotice(visitor.token);
    const row = (collection: ShownCollection) => this.row(visitor, collection, page);
    return this.layout.show(visitor, {
      section: PATH,
      title: 'Collections',
      main: html`<h1>Collections</h1>
        <p class="lead">Collections that you own or administer. Choose the ones to show on your profile.</p>
        ${done(notice.done)}
        ${
          found.length === 0
            ? html`<p class="empty">
                ${page === 1 ? 'You have no collections yet.' : 'There are no more collections.'}
              </p>`
            : table(
                'Your collections',
                ['Title', 'Games', 'Profile', { buttons: 'Change' }],
                found.slice(0, PER_PAGE).map(row),
              )
        }
        ${pageLinks({ Back: page > 1 && pathOf(page - 1), More: found.length > PER_PAGE && pathOf(page + 1) })}`,
    });
  }

  @Post(':collection_id/on-profile')
  @SignedIn()
  async change(
    @Req() req: Request,
    @Param('collection_id') collection_id: string,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const form = await formOf(req);
    const on = form.text('on') === 'yes';
    const title = await this.collections.setOnProfile(visitor.user.id, idOf(collection_id), on);
    if (title === undefined) throw apiError(404, 'This collection doesn’t exist.');
    await this.sessions.setNotice(visitor.token, {
      done: `“${title}” is ${on ? 'now' : 'no longer'} on your profile.`,
    });
    const page = pageOf(form.text('page'));
    return seeOther(page === 1 ? PATH : pathOf(page));
  }

  private row(
    visitor: Visitor,
    { id, title, own, on_profile, games_count, ...collection }: ShownCollection,
    page: number,
  ): Html {
    return html`<tr>
      <th scope="row">
        ${this.links.exist ? html`<a href="${this.links.collection(id, title)}">${title}</a>` : title}${collection.private && html` <span class="tag">private</span>`}${!own && html` <span class="tag">admin</span>`}
      </th>
      <td data-label="Games">${games_count}</td>
      <td data-label="Profile">${on_profile ? 'Shown' : html`<span class="muted">Not shown</span>`}</td>
      <td class="actions">
        <form method="post" action="${PATH}/${id}/on-profile">
          ${formToken(visitor)} ${page > 1 && html`<input type="hidden" name="page" value="${page}" />`}
          <button class="quiet" name="on" value="${on_profile ? 'no' : 'yes'}">
            ${on_profile ? 'Hide from profile' : 'Show on profile'}<span class="hidden"> ${title}</span>
          </button>
        </form>
      </td>
    </tr>`;
  }
}

const pathOf = (page: number) => `${PATH}?page=${page}`;
