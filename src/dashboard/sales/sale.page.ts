import { SALES_PATH } from '../layout/layout';
import { formatMoney } from '../../platform/formats/money';
import {
  type KeyState,
  type SellerSale,
  SHOWN_OF_SALE,
  SHOWN_SALES,
} from '../../purchases/sales/seller-sales.service';
import { ERASED_ADDRESS } from '../../users/erased-users';
import type { SubjectDelivery } from '../../operator/webhooks/webhook-attempts.service';
import type { KeyPages } from '../../platform/server/key-pages';
import { html, type Html } from '../layout/html';
import type { Page } from '../layout/layout';
import { checkbox } from '../layout/fields';
import {
  type Columns,
  confirmation,
  countOf,
  day,
  done,
  facts,
  muted,
  number,
  table,
  tag,
  timeOf,
  unlabeled,
  wrapped,
} from '../layout/parts';
import type { Visitor } from '../layout/visitor';
import { nameOf, result, WEBHOOKS_PATH, webhookPath } from '../webhooks/webhooks.page';
import { statusOf } from './buyers.page';

export type Refunder = 'seller' | 'store' | 'store, as games are of others';

const pathOf = ({ id }: Pick<SellerSale, 'id'>) => `${SALES_PATH}/${id}`;

interface SaleView {
  sale: SellerSale;
  pages: KeyPages;
  /** To the seller's own webhooks. */
  deliveries: SubjectDelivery[];
  refunder: Refunder;
  store: string;
}

export function salePage({ sale, pages, deliveries, refunder, store }: SaleView): Page {
  const {
    id,
    created_at,
    reference,
    email,
    username,
    amount,
    currency,
    source,
    status,
    sale_rate,
    quantity,
  } = sale;
  return {
    section: SALES_PATH,
    title: `Sale ${id}`,
    main: (notice) =>
      html`<div class="head">
          <h1>Sale ${id}</h1>
          ${
            status === 'complete' &&
            refunder === 'seller' &&
            html`<div class="buttons">
              <a class="button quiet danger" href="${pathOf(sale)}/refund">Refund</a>
            </div>`
          }
        </div>
        ${done(notice.done)}
        ${facts(
          {
            Status: statusOf(status),
            Time: timeOf(created_at),
            Buyer: html`${email === ERASED_ADDRESS ? muted('Erased') : html`<a href="${pathOf(sale)}/buyer">${email}</a>`}
            ${username !== null && html`<small>${username}</small>`}`,
            Price: html`${formatMoney(amount, currency)}${sale_rate > 0 && html` <small>${sale_rate}% off</small>`}
            ${quantity > 1 && html` <small>for ${quantity} copies</small>`}`,
            Source: source,
            Reference: reference ?? muted('None'),
          },
          'facts card',
        )}
        <h2>${sale.all_games === 1 ? 'Game' : 'Games'}</h2>
        <ul class="plain">
          ${sale.games.map((game) => html`<li><a href="${SALES_PATH}?game=${game.id}">${game.title}</a></li>`)}
        </ul>
        ${moreGames(sale)}
        <h2>Keys</h2>
        ${keyList(sale.keys, 'No keys came with this sale.', pages)}
        <h2>Webhook deliveries</h2>
        ${deliveryList(deliveries)}
        ${status === 'complete' && refunder !== 'seller' && html`<p class="muted">${REFUNDERS[refunder](store)}</p>`}`,
  };
}

const REFUNDERS: Record<Exclude<Refunder, 'seller'>, (store: string) => string> = {
  store: (store) => `To refund this sale, contact ${store}. Sellers can’t refund sales in this store.`,
  'store, as games are of others': (store) =>
    `To refund this sale, contact ${store}. The sale includes games that you can’t edit.`,
};

function moreGames({ games, own_games, all_games }: SellerSale): Html {
  const parts = [
    ...(own_games > games.length ? [`${own_games - games.length} more of your games`] : []),
    ...(all_games > own_games ? [`${all_games - own_games} of other sellers`] : []),
  ];
  return html`${parts.length > 0 && html`<p class="muted">And ${parts.join(', and ')}.</p>`}`;
}

const stateOf = ({ revoked, claimed_by }: KeyState): Html => {
  if (revoked) return tag('Revoked');
  return claimed_by === null ? muted('Not claimed') : html`Claimed by ${claimed_by}`;
};

const keyColumns = (pages: KeyPages): Columns<KeyState> => ({
  Key: ({ id, key, revoked }) => {
    const url = revoked ? null : pages.url(key);
    return url === null ? `Key ${id}` : html`<a href="${url}">Key ${id}</a>`;
  },
  Game: ({ title }) => title,
  State: stateOf,
  Downloads: number(({ downloads }) => countOf(downloads)),
});

const keyList = (keys: KeyState[], none: string, pages: KeyPages): Html =>
  keys.length === 0
    ? html`<p class="muted">${none}</p>`
    : html`${table('Keys', keyColumns(pages), keys.slice(0, SHOWN_OF_SALE))}
      ${keys.length > SHOWN_OF_SALE && html`<p class="muted">Only the first ${SHOWN_OF_SALE} keys are listed.</p>`}`;

const DELIVERY_COLUMNS: Columns<SubjectDelivery> = {
  Time: ({ at, outcome }) => html`${outcome === null && 'Next attempt '}${timeOf(at)}`,
  Webhook: wrapped(
    ({ webhook_id, url }) => html`<a href="${webhookPath(webhook_id)}">${nameOf({ url })}</a>`,
  ),
  Event: ({ event }) => html`<code>${event}</code>`,
  Result: ({ outcome }) => (outcome === null ? tag('Pending') : result(outcome)),
};

const deliveryList = (deliveries: SubjectDelivery[]): Html =>
  deliveries.length === 0
    ? html`<p class="muted">
        None of <a href="${WEBHOOKS_PATH}">your webhooks</a> has been notified of this sale.
      </p>`
    : table('Webhook deliveries, pending ones first', DELIVERY_COLUMNS, deliveries);

export const refundPage = (visitor: Visitor, sale: SellerSale): Page =>
  confirmation(visitor, {
    section: SALES_PATH,
    title: `Refund sale ${sale.id}`,
    question: `Refund sale ${sale.id}?`,
    facts: html`<p>
      This marks the sale of ${formatMoney(sale.amount, sale.currency)} to ${sale.email} as refunded and
      subtracts it from your revenue. It can’t be undone. Return the money through your payment provider.
    </p>`,
    fields: checkbox('keep_keys', false, html`Let the buyer keep the download keys`),
    action: `${pathOf(sale)}/refund`,
    button: 'Refund',
    back: pathOf(sale),
  });

export const buyerPage = (
  sale: SellerSale,
  sales: SellerSale[],
  keys: KeyState[],
  pages: KeyPages,
): Page => ({
  section: SALES_PATH,
  title: `Buyer of sale ${sale.id}`,
  main: html`<h1>${sale.email}</h1>
    ${sale.username !== null && html`<p class="muted">Username: ${sale.username}</p>`}
    <h2>Purchases of your games</h2>
    ${saleList(sales, false)}
    ${
      keys.length > 0 &&
      html`<h2>Keys without a purchase</h2>
        ${keyList(keys, '', pages)}`
    }`,
});

export const searchPage = (term: string, sales: SellerSale[]): Page => ({
  section: SALES_PATH,
  title: 'Search',
  search: term,
  main: html`<h1>Search</h1>
    ${
      sales.length === 0
        ? html`<p class="empty">
            ${term !== '' && 'No sale of your games matches. '}Enter the beginning of an email address, or a
            complete username, reference, sale ID or key ID.
          </p>`
        : saleList(sales)
    }`,
});

const saleColumns = (withBuyer: boolean): Columns<SellerSale> => ({
  Sale: (sale) => html`<a href="${pathOf(sale)}">Sale ${sale.id}</a><br />${day(sale.created_at)}`,
  ...(withBuyer && {
    Buyer: wrapped(
      ({ email, username }: SellerSale) =>
        html`${email}${username !== null && html` <small>${username}</small>`}`,
    ),
  }),
  Games: ({ games, own_games, reference }) =>
    html`${games[0]!.title}${own_games > 1 && ` and ${own_games - 1} more`}${reference !== null && html` <small>${reference}</small>`}`,
  Price: unlabeled(number(({ amount, currency }) => formatMoney(amount, currency))),
  Status: unlabeled(({ status }) => statusOf(status)),
  Keys: ({ keys }) =>
    keys.length === 0
      ? muted('None')
      : keys.slice(0, 3).map((key) => html`<div>${key.id}: ${stateOf(key)}</div>`),
});

const saleList = (sales: SellerSale[], withBuyer = true): Html =>
  html`${table('Sales, newest first', saleColumns(withBuyer), sales.slice(0, SHOWN_SALES), 'cards buyers')}
  ${sales.length > SHOWN_SALES && html`<p class="muted">Only the newest ${SHOWN_SALES} sales are listed.</p>`}`;
