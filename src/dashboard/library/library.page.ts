import { Injectable } from '@nestjs/common';
import { StoreLinks } from '../../platform/config/store-links';
import { formatMoney } from '../../platform/formats/money';
import { GAMES_ON_A_PAGE, type LibraryRow } from '../../purchases/library/library.service';
import { sizeOf } from '../../platform/formats/sizes';
import type { UploadRow } from '../../uploads/upload.row';
import { MAX_SHOWN } from '../../uploads/uploads.service';
import { Covers } from '../layout/covers';
import { html, type Html } from '../layout/html';
import type { FormResult, Page } from '../layout/layout';
import { AS_TYPED, changeForm, field } from '../layout/fields';
import { alert, copyable, day, done, noMore, numberedPages, tag } from '../layout/parts';
import type { SignedInVisitor } from '../layout/visitor';

export const LIBRARY_PATH = '/user/games';
const REDEEM_PATH = `${LIBRARY_PATH}/redeem`;
export const MAX_KEY = 512;

const PLATFORMS: Record<string, string> = {
  p_windows: 'Windows',
  p_linux: 'Linux',
  p_osx: 'macOS',
  p_android: 'Android',
};

export const platformsOf = (traits: readonly string[]) => traits.flatMap((trait) => PLATFORMS[trait] ?? []);

@Injectable()
export class LibraryPage {
  constructor(
    private readonly links: StoreLinks,
    private readonly covers: Covers,
  ) {}

  list(rows: LibraryRow[], files: UploadRow[], page: number): Page {
    const shown = rows.slice(0, GAMES_ON_A_PAGE);
    return {
      section: LIBRARY_PATH,
      title: 'My games',
      main: (notice) =>
        html`<div class="head">
            <h1>My games</h1>
            <div class="buttons"><a class="button" href="${REDEEM_PATH}">Redeem a key</a></div>
          </div>
          ${done(notice.done)}
          ${
            shown.length === 0
              ? html`<p class="empty">
                  ${noMore('games', page, 'You don’t own any games yet. Games that you buy appear here.')}
                </p>`
              : html`<ul class="library">
                  ${[...new Set(shown.map(({ game_id }) => game_id))].map((id) => {
                    const isOfGame = ({ game_id }: { game_id: number }) => game_id === id;
                    return this.game(shown.filter(isOfGame), files.filter(isOfGame));
                  })}
                </ul>`
          }
          ${numberedPages(LIBRARY_PATH, page, rows.length > GAMES_ON_A_PAGE)}`,
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

  /** One game, with all keys and receipts of the page. */
  private game(owned: LibraryRow[], files: UploadRow[]): Html {
    const { title, slug, owner_name, developer, traits, cover_url } = owned[0]!;
    const platforms = platformsOf(traits);
    return html`<li class="card stack">
      ${this.covers.show(title, cover_url)}
      <div>
        <h2>
          ${this.links.exist ? html`<a href="${this.links.game(owner_name, slug)}">${title}</a>` : title}
        </h2>
        <p class="muted">by ${developer}${platforms.length > 0 && ` · ${platforms.join(', ')}`}</p>
      </div>
      ${files.length > 0 && filesOf(title, files)} ${owned.map(receiptOf)}
    </li> `;
  }
}

function receiptOf({ key, purchase, created_at, game_id }: LibraryRow, index: number): Html {
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

const filesOf = (title: string, files: UploadRow[]): Html =>
  html`<ul class="files" aria-label="Files of ${title}">
      ${files.slice(0, MAX_SHOWN).map(fileOf)}
    </ul>
    ${files.length > MAX_SHOWN && html`<p class="muted">Only the first ${MAX_SHOWN} files are listed.</p>`}`;

export const detailsOf = ({ traits, external_url, size, build }: UploadRow): string[] => [
  ...platformsOf(traits),
  ...(traits.includes('demo') ? ['demo'] : []),
  ...(build?.user_version ? [`version ${build.user_version}`] : []),
  external_url === null ? sizeOf(size!) : `opens ${new URL(external_url).host}`,
];

function fileOf(file: UploadRow): Html {
  const { id, filename, display_name } = file;
  const details = detailsOf(file);
  return html`<li>
    <a href="${LIBRARY_PATH}/downloads/${id}">${display_name ?? filename}</a>
    <small class="muted">${details.join(' · ')}</small>
  </li> `;
}
