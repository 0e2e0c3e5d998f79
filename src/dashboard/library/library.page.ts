import { Injectable } from '@nestjs/common';
import { StoreLinks } from '../../platform/config/store-links';
import { formatMoney } from '../../platform/formats/money';
import {
  type BundledGame,
  OWNED_GAMES_ON_A_PAGE,
  type LibraryQuery,
  type LibraryRow,
} from '../../purchases/library/library.service';
import { withQuery } from '../../platform/input/form';
import { formatSize } from '../../platform/formats/sizes';
import type { UploadRow } from '../../uploads/upload.row';
import { MAX_SHOWN_FILES } from '../../uploads/uploads.service';
import { Covers } from '../layout/covers';
import { html, type Html } from '../layout/html';
import type { FormResult, Page } from '../layout/layout';
import { AS_TYPED, changeForm, field, selectField, filterForm } from '../layout/fields';
import {
  alert,
  confirmation,
  copyable,
  formatCount,
  day,
  done,
  linkButton,
  noMore,
  pageLinks,
  tag,
} from '../layout/components';
import { type Platform, PLATFORM_NAMES, platformNames } from '../layout/platforms';
import type { SignedInVisitor } from '../layout/visitor';
import { addPath, COLLECTIONS_PATH } from '../collections/collections.page';

export const LIBRARY_PATH = '/user/games';
const REDEEM_PATH = `${LIBRARY_PATH}/redeem`;
export const MAX_KEY = 512;
export const MAX_SEARCH = 100;

/** The page of a library, and the trait of files for the visitor's platform. */
interface LibraryView extends LibraryQuery {
  platform: Platform | undefined;
}

const SORTS = [
  ['recent', 'Recently added'],
  ['title', 'Title'],
] as const;

@Injectable()
export class LibraryPage {
  constructor(
    private readonly links: StoreLinks,
    private readonly covers: Covers,
  ) {}

  list(rows: LibraryRow[], files: UploadRow[], view: LibraryView): Page {
    const { page, search, sort } = view;
    const shown = rows.slice(0, OWNED_GAMES_ON_A_PAGE);
    const pageAt = (number: number) =>
      withQuery(LIBRARY_PATH, {
        search: search || undefined,
        sort: sort === 'recent' ? undefined : sort,
        page: number === 1 ? undefined : String(number),
      });
    const none =
      search === ''
        ? 'You don’t own any games yet. Games that you buy appear here.'
        : `No game’s title contains “${search}”.`;
    return {
      section: LIBRARY_PATH,
      title: 'Library',
      tables: true,
      main: (notice) =>
        html`<div class="head">
            <h1>Library</h1>
            <div class="buttons">
              ${linkButton(COLLECTIONS_PATH, 'Collections')}
              <a class="button" href="${REDEEM_PATH}">Redeem a key</a>
            </div>
          </div>
          ${done(notice.message)}
          ${
            (shown.length > 0 || page > 1 || search !== '') &&
            filterForm(
              LIBRARY_PATH,
              html`${field({ id: 'search', label: 'Find a game', type: 'search', value: search, maxlength: MAX_SEARCH })}
              ${selectField('sort', 'Sort by', SORTS, sort)}`,
            )
          }
          ${
            shown.length === 0
              ? html`<p class="empty">${noMore('games', page === 1, none)}</p>`
              : this.gameList(shown, files, view.platform)
          }
          ${pageLinks({
            Previous: page > 1 && pageAt(page - 1),
            Next: rows.length > OWNED_GAMES_ON_A_PAGE && pageAt(page + 1),
          })}`,
    };
  }

  /** A game with several keys is listed once. */
  private gameList(rows: LibraryRow[], files: UploadRow[], platform: LibraryView['platform']): Html {
    return html`<ul class="library">
      ${rows.map((row, index) => {
        if (row.bundle) return this.bundleRow(row, row.bundle);
        const isOfGame = ({ game_id }: { game_id: number | null }) => game_id === row.game_id;
        if (rows.findIndex(isOfGame) !== index) return '';
        const game = { ...row, game_id: row.game_id! };
        return this.game(game, files.filter(isOfGame), platform, rows.filter(isOfGame));
      })}
    </ul>`;
  }

  bundle(
    { id, title, games }: { id: number; title: string; games: BundledGame[] },
    files: UploadRow[],
    { page, search, platform }: Omit<LibraryView, 'sort'>,
  ): Page {
    const path = bundlePath(id);
    const pageAt = (number: number) => withQuery(path, { search: search || undefined, page: String(number) });
    const none = search === '' ? 'This bundle has no games.' : `No game’s title contains “${search}”.`;
    return {
      section: LIBRARY_PATH,
      title,
      tables: true,
      main: html`<h1>${title}</h1>
        <form method="get" action="${path}" role="search" aria-label="Games of the bundle" class="filter">
          ${field({ id: 'search', label: 'Find a game', type: 'search', value: search, maxlength: MAX_SEARCH })}
          <button class="quiet">Search</button>
        </form>
        ${
          games.length === 0
            ? html`<p class="empty">${noMore('games', page === 1, none)}</p>`
            : html`<ul class="library">
                ${games.slice(0, OWNED_GAMES_ON_A_PAGE).map((game) =>
                  this.game(
                    game,
                    files.filter(({ game_id }) => game_id === game.game_id),
                    platform,
                  ),
                )}
              </ul>`
        }
        ${pageLinks({
          Previous: page > 1 && pageAt(page - 1),
          Next: games.length > OWNED_GAMES_ON_A_PAGE && pageAt(page + 1),
        })}
        <p><a href="${LIBRARY_PATH}">Library</a></p>`,
    };
  }

  redeem(visitor: SignedInVisitor, key = '', { problem, ...response }: FormResult = {}): Page {
    return {
      section: LIBRARY_PATH,
      title: 'Redeem a key',
      ...response,
      single: true,
      main: html`<h1>Redeem a key</h1>
        ${problem && alert(problem)}
        ${changeForm(
          visitor,
          { action: REDEEM_PATH, button: 'Redeem key', back: LIBRARY_PATH },
          field({
            id: 'key',
            label: 'Download key',
            value: key,
            ...AS_TYPED,
            maxlength: MAX_KEY,
            autofocus: true,
          }),
        )}
        <p class="muted">
          Redeeming a key adds the game to your account. You can also paste a download link, which ends with
          the key.
        </p>`,
    };
  }

  /** Asks a player who already owns the game, because redeeming the key gives them nothing. */
  redeemAgain(visitor: SignedInVisitor, key: string, title: string): Page {
    return confirmation(visitor, {
      section: LIBRARY_PATH,
      title: 'You already own this game',
      question: `You already own ${title}. Redeem this key, too?`,
      details: html`<p>The key works only once. Instead, you can give it to a friend.</p>`,
      fields: html`<input type="hidden" name="key" value="${key}" />
        <input type="hidden" name="again" value="yes" />`,
      action: REDEEM_PATH,
      button: 'Redeem anyway',
      back: LIBRARY_PATH,
    });
  }

  private bundleRow(row: LibraryRow, { id, games }: NonNullable<LibraryRow['bundle']>): Html {
    return html`<li class="card owned">
      ${this.covers.show(row.title, row.cover_url)}
      <div class="stack">
        <div>
          <h2><a href="${bundlePath(id)}">${row.title}</a></h2>
          <p class="muted">
            Bundle of ${formatCount(games)} ${games === 1 ? 'game' : 'games'} by ${row.developer}
          </p>
        </div>
        ${receiptSection(row.title, [row])}
      </div>
    </li> `;
  }

  /** One game, with all keys and receipts of the page. */
  private game(
    game: BundledGame,
    files: UploadRow[],
    platform: Platform | undefined,
    rows: LibraryRow[] = [],
  ): Html {
    const { game_id, title, slug, owner_name, developer, traits, cover_url } = game;
    const platforms = platformNames(traits);
    return html`<li class="card owned">
      ${this.covers.show(title, cover_url)}
      <div class="stack">
        <div>
          <h2>
            ${this.links.exist ? html`<a href="${this.links.game(owner_name, slug)}">${title}</a>` : title}
          </h2>
          <p class="muted">by ${developer}${platforms.length > 0 && ` · ${platforms.join(', ')}`}</p>
        </div>
        ${files.length > 0 && fileSection(title, files, platform)}
        ${rows.length > 0 && receiptSection(title, rows)}
        <p>
          <a href="${addPath(game_id)}">Add to a collection<span class="hidden">: ${title}</span></a>
        </p>
      </div>
    </li> `;
  }
}

const bundlePath = (id: number) => `${LIBRARY_PATH}/bundles/${id}`;

function receiptItem({ key, purchase, created_at, game_id }: LibraryRow, index = 0): Html {
  return html`${key !== null && copyable(`key-${game_id}-${index + 1}`, 'Download key', key)}
    <p class="muted">
      ${
        purchase
          ? html`Bought ${day(purchase.created_at)} for ${formatMoney(purchase.amount, purchase.currency)},
            receipt ${purchase.id}${purchase.status === 'refunded' && html` ${tag('Refunded')}`}`
          : html`Added ${day(created_at)}`
      }
    </p>`;
}

const receiptSection = (title: string, rows: LibraryRow[]): Html => {
  const [hasKey, hasReceipt] = [rows.some(({ key }) => key !== null), rows.some(({ purchase }) => purchase)];
  return html`<details>
    <summary>
      ${hasKey ? (hasReceipt ? 'Key and receipt' : 'Key') : 'Receipt'}<span class="hidden">: ${title}</span>
    </summary>
    ${rows.map(receiptItem)}
  </details>`;
};

/** A button for the visitor's platform, and below it all files. */
function fileSection(title: string, files: UploadRow[], platform: Platform | undefined): Html {
  const matching = platform === undefined ? [] : files.filter(({ traits }) => traits.includes(platform));
  const isDemo = ({ traits }: UploadRow) => traits.includes('demo');
  const best = matching.find((file) => !isDemo(file)) ?? matching[0];
  return html`${best && downloadButton(title, best, isDemo(best), platform!)}
  ${
    (!best || files.length > 1) &&
    html`<details ${!best && html` open`}>
      <summary>
        ${best ? `All files (${files.length > MAX_SHOWN_FILES ? `${MAX_SHOWN_FILES}+` : files.length})` : 'Files'}<span
          class="hidden"
          >: ${title}</span
        >
      </summary>
      <ul class="files" aria-label="Files of ${title}">
        ${files.slice(0, MAX_SHOWN_FILES).map(fileItem)}
      </ul>
      ${files.length > MAX_SHOWN_FILES && html`<p class="muted">Only the first ${MAX_SHOWN_FILES} files are listed.</p>`}
    </details>`
  }`;
}

const downloadButton = (title: string, file: UploadRow, isDemo: boolean, platform: Platform): Html =>
  html`<p class="download">
    <a class="button" href="${downloadPath(file)}"
      >Download ${isDemo && 'demo '}for ${PLATFORM_NAMES[platform]}<span class="hidden">: ${title}</span></a
    >
    <small class="muted">${versionAndSize(file).join(' · ')}</small>
  </p>`;

const downloadPath = ({ id }: UploadRow) => `${LIBRARY_PATH}/downloads/${id}`;

export const fileDetails = (file: UploadRow): string[] => [
  ...platformNames(file.traits),
  ...(file.traits.includes('demo') ? ['demo'] : []),
  ...versionAndSize(file),
];

const versionAndSize = ({ build, external_url, size }: UploadRow): string[] => [
  ...(build?.user_version ? [`version ${build.user_version}`] : []),
  external_url === null ? formatSize(size!) : `opens ${new URL(external_url).host}`,
];

function fileItem(file: UploadRow): Html {
  const { filename, display_name } = file;
  const details = fileDetails(file);
  return html`<li>
    <a href="${downloadPath(file)}">${display_name ?? filename}</a>
    <small class="muted">${details.join(' · ')}</small>
  </li> `;
}
