import { formatMoney } from '../../platform/formats/money';
import { withQuery } from '../../platform/input/form';
import { type Buyer, MAX_SALES_COUNTED } from '../../purchases/sales/buyers.service';
import { html, type Html } from '../layout/html';
import { type Page, SALES_PATH } from '../layout/layout';
import { clipped, type Columns, formatCount, day, number, pageLinks, tableOr } from '../layout/components';
import { BUYERS_PATH, buyerPath } from './sales-paths';
import { salesViews } from './sales-views';

export const BUYERS_ON_A_PAGE = 50;

interface BuyersView {
  /** Undefined if the page shows the buyers of all games. */
  game: { id: number; title: string } | undefined;
  buyers: Buyer[];
  /** Whether all sales of these buyers are counted. */
  isCounted: boolean;
  /** Cursors of the adjacent pages. */
  newer: string | undefined;
  older: string | undefined;
  isFirst: boolean;
}

export function buyersPage({ game, buyers, isCounted, newer, older, isFirst }: BuyersView): Page {
  const name = game ? `Buyers of ${game.title}` : 'Buyers';
  const id = game && String(game.id);
  const isShort = older !== undefined && buyers.length < BUYERS_ON_A_PAGE;
  return {
    section: SALES_PATH,
    title: name,
    tables: true,
    main: html`<div class="head">
        <h1>${name}</h1>
        <div class="buttons">
          ${game && html`<a class="button quiet" href="${BUYERS_PATH}">All games</a>`}
          <a class="button quiet" href="${withQuery(`${BUYERS_PATH}.csv`, { game: id })}"
            >Download buyers as CSV</a
          >
        </div>
      </div>
      ${salesViews('buyers', id)}
      ${
        buyers.length > 0 &&
        html`<p class="muted">
          Buyers with the most recent purchases are listed
          first.${!isCounted && ` Only ${formatCount(MAX_SALES_COUNTED)} sales of these buyers are counted.`}
        </p>`
      }
      ${tableOr(isFirst ? 'There are no buyers yet.' : 'There are no more buyers.', 'Buyers', BUYER_COLUMNS, buyers, 'cards list')}
      ${isShort && html`<p class="muted">Older sales may have more buyers.</p>`}
      ${pageLinks({
        Newest: !isFirst && withQuery(BUYERS_PATH, { game: id }),
        Newer: newer !== undefined && withQuery(BUYERS_PATH, { game: id, before: newer }),
        Older: older !== undefined && withQuery(BUYERS_PATH, { game: id, after: older }),
      })}`,
  };
}

/** Leaves out currencies in which everything was refunded or free, if there are others. */
export function renderTotals(totals: Buyer['totals']): Html {
  const paid = totals.filter(({ amount }) => amount > 0);
  return html`${(paid.length > 0 ? paid : totals.slice(0, 1)).map(({ currency, amount }) => html`<div>${formatMoney(amount, currency)}</div> `)}`;
}

const BUYER_COLUMNS: Columns<Buyer> = {
  Buyer: ({ last_sale, email, username }) =>
    html`${clipped(`buyer-${last_sale}`, email, buyerPath(last_sale))}
    ${username !== null && html`<small>${username}</small>`}`,
  Orders: number(({ orders }) => formatCount(orders)),
  Refunds: number(({ refunds }) => formatCount(refunds)),
  Total: number(({ totals }) => renderTotals(totals)),
  'First purchase': ({ first_at }) => day(first_at),
  'Last purchase': ({ last_at }) => day(last_at),
};
