import { formatMoney } from '../../platform/formats/money';
import { withQuery } from '../../platform/input/form';
import { type Buyer, MAX_SALES_OF_BUYERS } from '../../purchases/sales/buyers.service';
import { html, type Html } from '../layout/html';
import { type Page, SALES_PATH } from '../layout/layout';
import { clipped, type Columns, formatCount, day, number, pageLinks, tableOr } from '../layout/components';
import { BUYERS_PATH, buyerPath, salesViews } from './sales-paths';

export const BUYERS_ON_A_PAGE = 50;

export function buyersPage(buyers: Buyer[], page: number, game?: { id: number; title: string }): Page {
  const name = game ? `Buyers of ${game.title}` : 'Buyers';
  const id = game && String(game.id);
  const count = buyers[0]?.buyers ?? 0;
  const first = (page - 1) * BUYERS_ON_A_PAGE + 1;
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
      ${salesViews('Buyers', id)}
      ${
        buyers.length > 0 &&
        html`<p class="muted">
          ${formatCount(first)} to ${formatCount(first + buyers.length - 1)} of
          ${count === 1 ? '1 buyer' : `${formatCount(count)} buyers`}, the last to buy
          first.${buyers[0]!.is_partial && ` Only the newest ${formatCount(MAX_SALES_OF_BUYERS)} sales are counted.`}
        </p>`
      }
      ${tableOr(page === 1 ? 'There are no buyers yet.' : 'There are no more buyers.', 'Buyers', COLUMNS, buyers, 'cards list')}
      ${pageLinks({
        Previous: page > 1 && pagePath(page - 1, id),
        Next: first + buyers.length <= count && pagePath(page + 1, id),
      })}`,
  };
}

const pagePath = (page: number, game: string | undefined) =>
  withQuery(BUYERS_PATH, { game, page: String(page) });

/** Leaves out currencies in which everything was refunded or free, if there are others. */
export function renderTotals(totals: Buyer['totals']): Html {
  const paid = totals.filter(({ amount }) => amount > 0);
  return html`${(paid.length > 0 ? paid : totals.slice(0, 1)).map(({ currency, amount }) => html`<div>${formatMoney(amount, currency)}</div> `)}`;
}

const COLUMNS: Columns<Buyer> = {
  Buyer: ({ last_sale, email, username }) =>
    html`${clipped(`buyer-${last_sale}`, email, buyerPath(last_sale))}
    ${username !== null && html`<small>${username}</small>`}`,
  Orders: number(({ orders }) => formatCount(orders)),
  Refunds: number(({ refunds }) => formatCount(refunds)),
  Total: number(({ totals }) => renderTotals(totals)),
  'First purchase': ({ first_at }) => day(first_at),
  'Last purchase': ({ last_at }) => day(last_at),
};
