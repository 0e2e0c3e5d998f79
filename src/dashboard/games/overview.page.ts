import { Injectable } from '@nestjs/common';
import { formatMoney } from '../../platform/formats/money';
import { formatSize } from '../../platform/formats/sizes';
import { withQuery } from '../../platform/input/form';
import type { GameSaleRow } from '../../purchases/sales/game-sales.service';
import type { UploadRow } from '../../uploads/upload.row';
import { Covers } from '../layout/covers';
import { html, type Html, type Part } from '../layout/html';
import { formToken, type Page, SALES_PATH, gamePath } from '../layout/layout';
import {
  type Columns,
  formatCount,
  day,
  done,
  muted,
  number,
  tableOr,
  tag,
  unlabeled,
} from '../layout/components';
import { listPlatforms } from '../layout/platforms';
import type { SignedInVisitor } from '../layout/visitor';
import { buyerLink, statusBadge } from '../sales/sales.page';
import { GameFrame } from './game-frame';
import type { OwnGame } from '../../games/editing/own-games.service';
import type { CurrencySold } from '../../purchases/sales/sales-report.service';

/** Days that the figures of the overview cover. */
export const RECENT_DAYS = 30;
export const SALES_SHOWN = 5;
const FILES_SHOWN = 10;

export interface Overview {
  sold: CurrencySold[];
  sales: GameSaleRow[];
  uploads: UploadRow[];
}

/** The first page of a game, for users who can edit it. */
@Injectable()
export class OverviewPage {
  constructor(
    private readonly frame: GameFrame,
    private readonly covers: Covers,
  ) {}

  show(visitor: SignedInVisitor, game: OwnGame, { sold, sales, uploads }: Overview): Page {
    const { id, title, cover_url, short_text } = game;
    const figures: [name: string, value: Part, about: string][] = [
      ['Sales', formatCount(sold.reduce((sum, one) => sum + one.purchases, 0)), `last ${RECENT_DAYS} days`],
      ['Revenue', formatSums(sold), `last ${RECENT_DAYS} days`],
      ['Earnings', formatSums(listEarnings(game)), `${formatCount(game.purchases_count)} purchases in all`],
      ['Downloads', formatCount(game.downloads_count), 'in all'],
      ['Views', formatCount(game.views_count), 'in all'],
    ];
    return this.frame.page(game, 'overview', (notice) => [
      done(notice.message),
      this.nextSteps(visitor, game, uploads.length > 0),
      html`<section class="card about-game">
          ${this.covers.show(title, cover_url)}
          <div class="stack">
            <p>${short_text ?? muted('No short text yet.')}</p>
            <p class="muted">
              ${game.min_price === 0 ? 'Free' : `From ${formatMoney(game.min_price, 'USD')}`}
            </p>
          </div>
        </section>
        <dl class="figures">
          ${figures.map(
            ([name, value, about]) =>
              html`<div>
                <dt>${name}</dt>
                <dd><strong>${value}</strong> <small>${about}</small></dd>
              </div> `,
          )}
        </dl>
        <section class="stack" aria-labelledby="newest-sales">
          <div class="head">
            <h2 id="newest-sales">Newest sales</h2>
            <a href="${withQuery(SALES_PATH, { game: String(id) })}">All sales</a>
          </div>
          ${tableOr('There are no sales yet.', 'Newest sales', SALE_COLUMNS, sales)}
        </section>
        <section class="stack" aria-labelledby="files">
          <div class="head">
            <h2 id="files">Files</h2>
            <a href="${gamePath(id, 'files')}">All files</a>
          </div>
          ${tableOr('There are no files yet.', 'Files', FILE_COLUMNS, uploads.slice(0, FILES_SHOWN))}
        </section>`,
    ]);
  }

  /** What is left to do before players see the game. */
  private nextSteps(visitor: SignedInVisitor, game: OwnGame, hasFiles: boolean): Html {
    const isShown = game.published_at !== null && game.visibility !== 'private';
    const action = gamePath(game.id, 'publish');
    if (isShown)
      return html`<form method="post" action="${action}" class="row">
        ${formToken(visitor)}
        <button class="quiet" name="published" value="no">Unpublish</button>
      </form>`;
    return html`<section class="card fresh stack" aria-labelledby="next">
      <h2 id="next">Only editors can see this game</h2>
      <p>
        ${
          hasFiles
            ? 'It has files. Publish it when its details are complete.'
            : html`Upload its <a href="${gamePath(game.id, 'files')}">files</a>, complete its
                <a href="${gamePath(game.id, 'details')}">details</a>, and publish it.`
        }
      </p>
      <form method="post" action="${action}">
        ${formToken(visitor)}
        <button ${!hasFiles && html` class="quiet"`} name="published" value="yes">Publish</button>
      </form>
    </section>`;
  }
}

const listEarnings = ({ earnings }: OwnGame): CurrencySold[] =>
  earnings.map((earning) => ({
    currency: earning.slice(0, 3),
    purchases: 0,
    amount: Number(earning.slice(3)),
  }));

/** `$5.00, €3.00 and 2 more` currencies. */
function formatSums(sums: CurrencySold[]): string {
  if (sums.length === 0) return formatMoney(0, 'USD');
  const shown = sums.slice(0, 2).map(({ amount, currency }) => formatMoney(Math.round(amount), currency));
  return shown.join(', ') + (sums.length > 2 ? ` and ${sums.length - 2} more` : '');
}

const SALE_COLUMNS: Columns<GameSaleRow> = {
  Sale: ({ id, created_at }) =>
    html`<a href="${SALES_PATH}/${id}">Sale ${id}</a> <small>${day(created_at)}</small>`,
  Buyer: unlabeled(({ id, email, buyer }) => buyerLink({ id, email, username: buyer?.username ?? null })),
  Price: unlabeled(number(({ amount, currency }) => formatMoney(amount, currency))),
  Status: unlabeled(({ status }) => statusBadge(status)),
};

const FILE_COLUMNS: Columns<UploadRow> = {
  File: ({ filename, display_name, traits }) =>
    html`${display_name ?? filename} ${traits.includes('demo') && tag('Demo')}`,
  Platforms: unlabeled(({ traits }) => listPlatforms(traits)),
  Size: unlabeled(number(({ size }) => (size === null ? muted('External') : formatSize(size)))),
  Updated: unlabeled(({ updated_at }) => day(updated_at)),
};
