import { PER_PAGE, type ShownCollection } from '../../collections/profile-collections.service';
import type { StoreLinks } from '../../platform/config/store-links';
import { html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import { actions, type Columns, done, muted, noMore, numberedPages, tableOr, tag } from '../layout/parts';
import type { Visitor } from '../layout/visitor';

export const PATH = '/user/settings/collections';

export const collectionsPage = (
  visitor: Visitor,
  links: StoreLinks,
  found: ShownCollection[],
  page: number,
): Page => ({
  section: PATH,
  title: 'Collections',
  main: (notice) =>
    html`<h1>Collections</h1>
      <p class="lead">Collections that you own or administer. Choose the ones to show on your profile.</p>
      ${done(notice.done)}
      ${tableOr(
        noMore('collections', page),
        'Your collections',
        columns(visitor, links, page),
        found.slice(0, PER_PAGE),
      )}
      ${numberedPages(PATH, page, found.length > PER_PAGE, ['Back', 'More'])}`,
});

const columns = (visitor: Visitor, links: StoreLinks, page: number): Columns<ShownCollection> => ({
  Title: ({ id, title, own, ...collection }) =>
    html`${links.exist ? html`<a href="${links.collection(id, title)}">${title}</a>` : title}${collection.private && html` ${tag('Private')}`}${!own && html` ${tag('Admin')}`}`,
  Games: ({ games_count }) => games_count,
  Profile: ({ on_profile }) => (on_profile ? 'Shown' : muted('Not shown')),
  Change: actions(
    ({ id, title, on_profile }) =>
      html`<form method="post" action="${PATH}/${id}/on-profile">
        ${formToken(visitor)} ${page > 1 && html`<input type="hidden" name="page" value="${page}" />`}
        <button class="quiet" name="on" value="${on_profile ? 'no' : 'yes'}">
          ${on_profile ? 'Hide from profile' : 'Show on profile'}<span class="hidden"> ${title}</span>
        </button>
      </form>`,
  ),
});
