import { Injectable } from '@nestjs/common';
import { formatMoney } from '../../platform/formats/money';
import { Covers } from '../layout/covers';
import { html, type Html } from '../layout/html';
import { GAMES_PATH, type Page, gamePath } from '../layout/layout';
import {
  formatCount,
  day,
  done,
  lastShown,
  linkButton,
  newestFirstPages,
  noMore,
} from '../layout/components';
import { buyersPath, salesPath } from '../sales/sales-paths';
import { EDITED_GAMES_ON_A_PAGE } from '../../games/edited-games';
import {
  type GameReport,
  MAX_SHOWN_CHANNELS,
  MAX_COUNTED_UPLOADS,
} from '../../games/editing/own-games.service';

const NOT_A_DEVELOPER = 'To create games here, ask the store to make you a developer.';

@Injectable()
export class GamesPage {
  constructor(private readonly covers: Covers) {}

  list(rows: GameReport[], isFirst: boolean, mayCreate: boolean): Page {
    const games = rows.slice(0, EDITED_GAMES_ON_A_PAGE);
    return {
      section: GAMES_PATH,
      title: 'Games',
      main: (notice) =>
        html`<div class="head">
            <h1>Games</h1>
            ${mayCreate && html`<a class="button" href="${GAMES_PATH}/new">New game</a>`}
          </div>
          ${done(notice.message)}
          ${
            games.length === 0
              ? html`<p class="empty">
                  ${noMore('games', isFirst)} ${isFirst && !mayCreate && NOT_A_DEVELOPER}
                </p>`
              : html`<ul class="plain games">
                  ${games.map((game) => this.game(game))}
                </ul>`
          }
          ${newestFirstPages(GAMES_PATH, isFirst, lastShown(rows, EDITED_GAMES_ON_A_PAGE))}`,
    };
  }

  private game(game: GameReport): Html {
    const { id, title, cover_url, min_price, uploads } = game;
    return html`<li class="card">
      ${this.covers.show(title, cover_url)}
      <div class="stack">
        <div>
          <h2>
            <a href="${gamePath(id)}">${title}</a>
          </h2>
          <p class="muted">
            ${min_price === 0 ? 'Free' : formatMoney(min_price, 'USD')} · ${gameState(game)}
          </p>
        </div>
        <dl class="counts">
          ${count('Views', game.views_count)} ${count('Downloads', game.downloads_count)}
          ${count('Purchases', game.purchases_count)} ${count('Files', uploads, MAX_COUNTED_UPLOADS)}
        </dl>
        ${buildsLink(game)}
        <div class="buttons">
          ${linkButton(gamePath(id, 'files'), 'Files', `of ${title}`)}
          ${linkButton(salesPath(id), 'Sales', `of ${title}`)}
          ${linkButton(buyersPath(id), 'Buyers', `of ${title}`)}
          ${linkButton(`${GAMES_PATH}/${id}/keys`, 'Download keys', `of ${title}`)}
        </div>
      </div>
    </li> `;
  }
}

const STATES = { public: 'Public', restricted: 'Restricted', private: 'Private' } as const;

export const gameState = ({ visibility, published_at }: Pick<GameReport, 'visibility' | 'published_at'>) =>
  html`${STATES[visibility]},
  ${published_at === null ? 'not published' : html`published ${day(published_at)}`}`;

const count = (name: string, value: number, most?: number): Html =>
  html`<div>
    <dt>${name}</dt>
    <dd>${formatCount(value, most)}</dd>
  </div>`;

function buildsLink({ builds, title }: GameReport): Html {
  if (builds === null) return html`<p class="muted">No builds yet.</p>`;
  return html`<ul class="builds" aria-label="Latest builds of ${title}">
    ${builds.slice(0, MAX_SHOWN_CHANNELS).map(
      ({ channel_name, user_version, created_at }) =>
        html`<li>
          <strong>${channel_name}</strong> ${user_version ?? ''}
          <small>${day(created_at)}</small>
        </li> `,
    )}
    ${builds.length > MAX_SHOWN_CHANNELS && html`<li><small>and more channels</small></li>`}
  </ul>`;
}
