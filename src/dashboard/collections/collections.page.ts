import { Injectable } from '@nestjs/common';
import { MAX_COLLECTION_TITLE_CHARACTERS } from '../../collections/collection.dto';
import {
  type CollectedGame,
  type EditableCollection,
  LAST_MOVABLE,
  PER_PAGE,
  type ShownCollection,
} from '../../collections/profile-collections.service';
import { StoreLinks } from '../../platform/config/store-links';
import { type Cursor, formatCursor } from '../../platform/input/cursor';
import { withQuery } from '../../platform/input/form';
import type { LibraryRow } from '../../purchases/library/library.service';
import { Covers } from '../layout/covers';
import { changeForm, checkbox, field, selectField } from '../layout/fields';
import { html, type Html, type Part } from '../layout/html';
import { type FormResult, formToken, type Page } from '../layout/layout';
import {
  actions,
  alert,
  type Columns,
  confirmation,
  continuedPages,
  done,
  formatCount,
  lastShown,
  linkButton,
  muted,
  noMore,
  numberedPages,
  tableOr,
  tag,
} from '../layout/components';
import type { Visitor } from '../layout/visitor';

export const COLLECTIONS_PATH = '/user/settings/collections';
/** The path of the list that begins after the collection `after`. */
export const collectionsPath = (after: Cursor | undefined) =>
  withQuery(COLLECTIONS_PATH, { after: after && formatCursor(after) });
export const collectionPath = (id: number) => `${COLLECTIONS_PATH}/${id}`;
export const addPath = (game_id: number) =>
  withQuery(`${COLLECTIONS_PATH}/add`, { game_id: String(game_id) });
export const MAX_FIND = 100;

/** What a player enters about a collection. */
export interface CollectionDraft {
  title: string;
  isPrivate: boolean;
  isOnProfile: boolean;
}

export const EMPTY_DRAFT: CollectionDraft = { title: '', isPrivate: false, isOnProfile: false };

interface CollectionView {
  collection: EditableCollection;
  /** The games of the page, and one more if there is a next page. */
  games: CollectedGame[];
  page: number;
  /** The search term; undefined without a search. */
  find: string | undefined;
  found: LibraryRow[];
  draft: CollectionDraft;
  result: FormResult;
}

@Injectable()
export class CollectionsPage {
  constructor(
    private readonly links: StoreLinks,
    private readonly covers: Covers,
  ) {}

  list(visitor: Visitor, found: ShownCollection[], after: Cursor | undefined): Page {
    const last = lastShown(found, PER_PAGE);
    const next = last && formatCursor({ at: last.updated_at, id: last.id });
    return {
      section: COLLECTIONS_PATH,
      title: 'Collections',
      main: (notice) =>
        html`<div class="head">
            <h1>Collections</h1>
            <div class="buttons">
              <a class="button" href="${COLLECTIONS_PATH}/new">New collection</a>
            </div>
          </div>
          <p class="lead">Collections that you own or administer. Choose the ones to show on your profile.</p>
          ${done(notice.message)}
          ${tableOr(
            noMore('collections', !after),
            'Your collections',
            columns(visitor, after),
            found.slice(0, PER_PAGE),
          )}
          ${continuedPages(COLLECTIONS_PATH, !after, next, ['First', 'Next'])}`,
    };
  }

  create(visitor: Visitor, draft: CollectionDraft, { problem, ...response }: FormResult = {}): Page {
    return {
      section: COLLECTIONS_PATH,
      title: 'New collection',
      ...response,
      single: true,
      main: html`<h1>New collection</h1>
        ${changeForm(
          visitor,
          { action: COLLECTIONS_PATH, button: 'Create collection', back: COLLECTIONS_PATH },
          draftFields(draft, problem),
        )}`,
    };
  }

  one(visitor: Visitor, view: CollectionView): Page {
    const { collection, games, page, draft, result } = view;
    const { problem, ...response } = result;
    const { id, title, games_count } = collection;
    const path = collectionPath(id);
    return {
      section: COLLECTIONS_PATH,
      title,
      ...response,
      main: (notice) =>
        html`<div class="head">
            <h1>${title}</h1>
            <div class="buttons">
              ${this.links.exist && linkButton(this.links.collection(id, title), 'Open in the store')}
              ${linkButton(`${path}/delete`, 'Delete', 'the collection')}
            </div>
          </div>
          <p class="muted">
            ${formatCount(games_count)} ${games_count === 1 ? 'game' : 'games'} ·
            <a href="${COLLECTIONS_PATH}">All collections</a>
          </p>
          ${done(notice.message)} ${notice.problem !== undefined && alert(notice.problem)}
          ${
            games.length === 0
              ? html`<p class="empty">${noMore('games', page === 1, 'This collection has no games yet.')}</p>`
              : html`<ol class="entries">
                  ${games.slice(0, PER_PAGE).map((game) => this.entry(visitor, path, page, games_count, game))}
                </ol>`
          }
          ${numberedPages(path, page, games.length > PER_PAGE, ['Previous', 'Next'])}
          ${this.search(visitor, path, view)}
          <h2>Settings</h2>
          ${changeForm(visitor, { action: path, button: 'Save' }, draftFields(draft, problem))}`,
    };
  }

  remove(visitor: Visitor, { id, title, games_count }: EditableCollection): Page {
    return confirmation(visitor, {
      section: COLLECTIONS_PATH,
      title: 'Delete collection',
      question: `Delete “${title}”?`,
      details: html`<p>
        Its list of ${formatCount(games_count)} ${games_count === 1 ? 'game' : 'games'} is deleted with all
        notes. The games stay in your library.
      </p>`,
      action: `${collectionPath(id)}/delete`,
      button: 'Delete collection',
      back: collectionPath(id),
    });
  }

  /** Chooses a collection for a game. */
  add(
    visitor: Visitor,
    game: { id: number; title: string },
    collections: ShownCollection[],
    draft: { collection: string; title: string },
    { problem, ...response }: FormResult = {},
  ): Page {
    const others = collections.filter(({ has_game }) => !has_game).slice(0, PER_PAGE);
    const having = collections.filter(({ has_game }) => has_game);
    return {
      section: COLLECTIONS_PATH,
      title: 'Add to a collection',
      ...response,
      single: true,
      main: html`<h1>Add ${game.title} to a collection</h1>
        ${
          having.length > 0 &&
          html`<p>
            It is already in
            ${having.map(({ id, title }, i) => html`${i > 0 && ', '}<a href="${collectionPath(id)}">${title}</a>`)}.
          </p>`
        }
        ${changeForm(
          visitor,
          { action: `${COLLECTIONS_PATH}/add`, button: 'Add game', back: '/user/games' },
          html`<input type="hidden" name="game_id" value="${game.id}" /> ${selectField(
              'collection',
              'Collection',
              [
                ...others.map(({ id, title }) => [String(id), title] as const),
                ['new', 'A new collection'] as const,
              ],
              draft.collection,
            )}
            ${field({
              id: 'title',
              label: 'Title of a new collection',
              value: draft.title,
              problem,
              maxlength: MAX_COLLECTION_TITLE_CHARACTERS,
            })}`,
        )}
        ${collections.length > PER_PAGE && html`<p class="muted">Only your ${PER_PAGE} most recently changed collections are listed.</p>`}`,
    };
  }

  private entry(visitor: Visitor, path: string, page: number, count: number, game: CollectedGame): Html {
    const { game_id, title, owner_name, slug, cover_url, position } = game;
    const action = `${path}/games/${game_id}`;
    const move = (to: string, words: string) =>
      html`<button class="quiet" name="to" value="${to}">
        ${words}<span class="hidden"> ${title}</span>
      </button>`;
    return html`<li class="card" value="${position}">
      ${this.covers.show(title, cover_url)}
      <div>
        <h2>
          ${this.links.exist ? html`<a href="${this.links.game(owner_name, slug)}">${title}</a>` : title}
        </h2>
        <p class="muted">${formatCount(position)} of ${formatCount(count)}</p>
      </div>
      <div class="buttons">
        <form method="post" action="${action}/move" class="buttons">
          ${formToken(visitor)} ${pageField(page)}
          ${position > 1 && position <= LAST_MOVABLE && move('up', 'Up')}
          ${position < count && position <= LAST_MOVABLE && move('down', 'Down')}
          ${position > 2 && move('top', 'To the top')}
        </form>
        <form method="post" action="${action}/remove">
          ${formToken(visitor)} ${pageField(page)}
          <button class="quiet">Remove<span class="hidden"> ${title}</span></button>
        </form>
      </div>
    </li> `;
  }

  /** Finds a game in the player's library. */
  private search(visitor: Visitor, path: string, { find, found }: CollectionView): Html {
    return html`<h2 id="add">Add a game</h2>
      <form method="get" action="${path}#add" role="search" aria-labelledby="add" class="filter">
        ${field({ id: 'find', label: 'Title of a game in your library', type: 'search', value: find ?? '', required: true, maxlength: MAX_FIND })}
        <button class="quiet">Search</button>
      </form>
      ${find !== undefined && this.results(visitor, path, find, found)}`;
  }

  private results(visitor: Visitor, path: string, find: string, found: LibraryRow[]): Part {
    // Several keys of a game are several rows.
    const games = found.filter(
      ({ game_id }, i) => game_id !== null && found.findIndex((row) => row.game_id === game_id) === i,
    );
    if (games.length === 0)
      return html`<p class="empty">
        No game in your library matches “${find}”. Games of a bundle are on the bundle’s page, which
        <a href="/user/games">your library</a> links to.
      </p>`;
    return html`<ul class="entries">
      ${games.map(
        ({ game_id, title, cover_url }) =>
          html`<li class="card">
            ${this.covers.show(title, cover_url)}
            <div><h3>${title}</h3></div>
            <form method="post" action="${path}/games">
              ${formToken(visitor)}
              <input type="hidden" name="game_id" value="${game_id}" />
              <button class="quiet">Add<span class="hidden"> ${title}</span></button>
            </form>
          </li> `,
      )}
    </ul>`;
  }
}

const draftFields = ({ title, isPrivate, isOnProfile }: CollectionDraft, problem: string | undefined): Html =>
  html`${field({ id: 'title', label: 'Title', value: title, problem, required: true, maxlength: MAX_COLLECTION_TITLE_CHARACTERS })}
  ${checkbox('private', isPrivate, html`Private: only people who can edit it see it`)}
  ${checkbox('on_profile', isOnProfile, html`Show on my profile`)}`;

/** The page of the list to return to. */
const pageField = (page: number): Html =>
  html`${page > 1 && html`<input type="hidden" name="page" value="${page}" />`}`;

const columns = (visitor: Visitor, after: Cursor | undefined): Columns<ShownCollection> => ({
  Title: ({ id, title, own, ...collection }) =>
    html`<a href="${collectionPath(id)}">${title}</a
      >${collection.private && html` ${tag('Private')}`}${!own && html` ${tag('Admin')}`}`,
  Games: ({ games_count }) => games_count,
  Profile: ({ on_profile }) => (on_profile ? 'Shown' : muted('Not shown')),
  Change: actions(
    ({ id, title, on_profile }) =>
      html`<form method="post" action="${collectionPath(id)}/on-profile">
        ${formToken(visitor)}
        ${after && html`<input type="hidden" name="after" value="${formatCursor(after)}" />`}
        <button class="quiet" name="on" value="${on_profile ? 'no' : 'yes'}">
          ${on_profile ? 'Hide from profile' : 'Show on profile'}<span class="hidden"> ${title}</span>
        </button>
      </form>`,
  ),
});
