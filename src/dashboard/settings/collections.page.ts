import { PER_PAGE, type ShownCollection } from '../../collections/profile-collections.service';
import type { StoreLinks } from '../../platform/config/store-links';
import { html, type Html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import { done, muted, noMore, numberedPages, tableOr, tag } from '../layout/parts';
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
        ['Title', 'Games', 'Profile', { buttons: 'Change' }],
        found.slice(0, PER_PAGE).map((one) => row(visitor, links, one, page)),
      )}
      ${numberedPages(PATH, page, found.length > PER_PAGE, ['Back', 'More'])}`,
});

const row = (
  visitor: Visitor,
  links: StoreLinks,
  { id, title, own, on_profile, games_count, ...collection }: ShownCollection,
  page: number,
): Html =>
  html`<tr>
    <th scope="row">
      ${links.exist ? html`<a href="${links.collection(id, title)}">${title}</a>` : title}${collection.private && html` ${tag('Private')}`}${!own && html` ${tag('Admin')}`}
    </th>
    <td data-label="Games">${games_count}</td>
    <td data-label="Profile">${on_profile ? 'Shown' : muted('Not shown')}</td>
    <td class="actions">
      <form method="post" action="${PATH}/${id}/on-profile">
        ${formToken(visitor)} ${page > 1 && html`<input type="hidden" name="page" value="${page}" />`}
        <button class="quiet" name="on" value="${on_profile ? 'no' : 'yes'}">
          ${on_profile ? 'Hide from profile' : 'Show on profile'}<span class="hidden"> ${title}</span>
        </button>
      </form>
    </td>
  </tr>`;
