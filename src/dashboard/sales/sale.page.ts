import { SALES_PATH } from '../layout/layout';
import { formatMoney } from '../../platform/formats/money';
import {
  type KeyState,
  type SellerSale,
  SHOWN_OF_SALE,
  SHOWN_SALES,
  type BuyerTotals,
} from '../../purchases/sales/seller-sales.service';
import { ERASED_ADDRESS } from '../../auth/accounts/erased-users';
import { isSuccess, type SubjectDelivery } from '../../operator/webhooks/webhook-attempts.service';
import type { KeyPages } from '../../platform/server/key-pages';
import { html, type Html } from '../layout/html';
import type { Page } from '../layout/layout';
import { checkbox } from '../layout/fields';
import {
  clipped,
  type Columns,
  confirmation,
  formatCount,
  day,
  done,
  descriptionList,
  inWords,
  muted,
  number,
  table,
  tag,
  timeElement,
  unlabeled,
} from '../layout/components';
import type { Visitor } from '../layout/visitor';
import { webhookName, result, WEBHOOKS_PATH, webhookPath } from '../webhooks/webhooks.page';
import { renderTotals } from './buyers.page';
import { buyerLink, statusBadge } from './sales.page';
import { buyerPath, salePath, salesPath } from './sales-paths';

export type Refunder = 'seller' | 'store' | 'store-because-shared';

interface SaleView {
  sale: SellerSale;
  pages: KeyPages;
  /** Deliveries to the seller's own webhooks. */
  deliveries: SubjectDelivery[];
  refunder: Refunder;
  store: string;
}

export function salePage({ sale, pages, deliveries, refunder, store }: SaleView): Page {
  const { id, status } = sale;
  return {
    section: SALES_PATH,
    title: `Sale ${id}`,
    tables: true,
    main: (notice) =>
      html`<div class="head">
          <h1>Sale ${id}</h1>
          ${
            status === 'complete' &&
            refunder === 'seller' &&
            html`<div class="buttons">
              <a class="button quiet danger" href="${salePath(id)}/refund">Refund</a>
            </div>`
          }
        </div>
        ${done(notice.message)} ${saleDetails(sale)}
        <h2>${sale.all_games === 1 ? 'Game' : 'Games'}</h2>
        <ul class="plain">
          ${sale.games.map((game) => html`<li><a href="${salesPath(game.id)}">${game.title}</a></li>`)}
        </ul>
        ${moreGames(sale)}
        <h2>Keys</h2>
        ${keyList(sale.keys, 'No keys came with this sale.', pages)}
        <h2>Timeline</h2>
        ${timeline(sale, deliveries)}
        ${status === 'complete' && refunder !== 'seller' && html`<p class="muted">${REFUNDERS[refunder](store)}</p>`}`,
  };
}

function saleDetails(sale: SaleView['sale']): Html {
  const { created_at, reference, email, username, amount, currency, source, status, sale_rate, quantity } =
    sale;
  return descriptionList(
    {
      Status: statusBadge(status),
      Time: timeElement(created_at),
      Buyer: html`${email === ERASED_ADDRESS ? muted('Erased') : clipped('buyer', email, buyerPath(sale.id))}
      ${username !== null && html`<small>${username}</small>`}`,
      Price: html`${formatMoney(amount, currency)}${sale_rate > 0 && html` <small>${sale_rate}% off</small>`}
      ${quantity > 1 && html` <small>for ${quantity} copies</small>`}`,
      Bundle: sale.bundle ?? false,
      Source: inWords(source),
      Reference: reference ?? muted('None'),
    },
    'facts card',
  );
}

const REFUNDERS: Record<Exclude<Refunder, 'seller'>, (store: string) => string> = {
  store: (store) => `To refund this sale, contact ${store}. Sellers can’t refund sales in this store.`,
  'store-because-shared': (store) =>
    `To refund this sale, contact ${store}. The sale includes games that you can’t edit.`,
};

function moreGames({ games, own_games, all_games }: SellerSale): Html {
  const parts = [
    ...(own_games > games.length ? [`${own_games - games.length} more of your games`] : []),
    ...(all_games > own_games ? [`${all_games - own_games} of other sellers`] : []),
  ];
  return html`${parts.length > 0 && html`<p class="muted">And ${parts.join(', and ')}.</p>`}`;
}

const keyState = ({ revoked, claimed_by }: KeyState): Html => {
  if (revoked) return tag('Revoked');
  return claimed_by === null ? muted('Not claimed') : html`Claimed by ${claimed_by}`;
};

const keyColumns = (pages: KeyPages): Columns<KeyState> => ({
  Key: ({ id, key, revoked }) => {
    const url = revoked ? null : pages.url(key);
    return url === null ? `Key ${id}` : html`<a href="${url}">Key ${id}</a>`;
  },
  Game: ({ title }) => title,
  State: keyState,
  Downloads: number(({ downloads }) => formatCount(downloads)),
});

const keyList = (keys: KeyState[], none: string, pages: KeyPages): Html =>
  keys.length === 0
    ? html`<p class="muted">${none}</p>`
    : html`${table('Keys', keyColumns(pages), keys.slice(0, SHOWN_OF_SALE))}
      ${keys.length > SHOWN_OF_SALE && html`<p class="muted">Only the first ${SHOWN_OF_SALE} keys are listed.</p>`}`;

interface Event {
  /** Null if the time wasn't recorded. */
  at: string | null;
  /** Undefined for a delivery that has ended. */
  isPending?: boolean;
  text: Html;
}

function timeline(sale: SellerSale, deliveries: SubjectDelivery[]): Html {
  const known = [...listEvents(sale), ...deliveries.map(deliveryEvent)].filter(
    (event): event is Event & { at: string } => event.at !== null,
  );
  const unknown = listEvents(sale).filter(({ at }) => at === null);
  const [pending, past] = [true, false].map((is) =>
    known
      .filter(({ isPending = false }) => isPending === is)
      .toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at)),
  );
  return html`<ol class="timeline card">
      ${past!.map(({ at, text }) => html`<li><span>${timeElement(at)}</span> <span>${text}</span></li> `)}
      ${unknown.map(({ text }) => html`<li>${muted('Time not recorded')} <span>${text}</span></li> `)}
      ${pending!.map(({ at, text }) => html`<li><span>Next attempt ${timeElement(at)}</span> <span>${text}</span></li> `)}
    </ol>
    ${
      deliveries.length === 0 &&
      html`<p class="muted">
        None of <a href="${WEBHOOKS_PATH}">your webhooks</a> has been notified of this sale.
      </p>`
    }`;
}

function listEvents({ created_at, amount, currency, source, status, refund, keys }: SellerSale): Event[] {
  const ofKeys = keys.slice(0, SHOWN_OF_SALE).flatMap((key): Event[] => [
    ...(key.claimed_by === null
      ? []
      : [{ at: key.claimed_at, text: html`${key.claimed_by} claimed key ${key.id} of ${key.title}` }]),
    ...(key.downloads === 0
      ? []
      : [
          {
            at: key.last_download_at,
            text: html`${formatDownloads(key.downloads)} with key ${key.id} of ${key.title}`,
          },
        ]),
  ]);
  return [
    { at: created_at, text: html`Sold for ${formatMoney(amount, currency)} (${inWords(source)})` },
    ...ofKeys,
    ...(status === 'refunded'
      ? [
          {
            at: refund?.refunded_at ?? null,
            text: html`Refunded${refund && ` by ${refund.refunded_by ?? 'the store'}`}`,
          },
        ]
      : []),
  ];
}

const formatDownloads = (count: number): string =>
  count === 1 ? 'Downloaded' : `The last of ${formatCount(count)} downloads`;

const deliveryEvent = ({ at, outcome, event, webhook_id, url }: SubjectDelivery): Event => ({
  at,
  isPending: outcome === null,
  text: html`<code>${event}</code>
    ${outcome === null ? 'to' : isSuccess({ status: outcome }) ? 'sent to' : 'not delivered to'}
    <a href="${webhookPath(webhook_id)}">${webhookName({ url })}</a>
    ${outcome === null ? tag('Pending') : result(outcome)}`,
});

export const refundPage = (visitor: Visitor, sale: SellerSale): Page =>
  confirmation(visitor, {
    section: SALES_PATH,
    title: `Refund sale ${sale.id}`,
    question: `Refund sale ${sale.id}?`,
    details: html`<p>
      This marks the sale of ${formatMoney(sale.amount, sale.currency)} to ${sale.email} as refunded and
      subtracts it from your revenue. It can’t be undone. Refund the payment through your payment provider.
    </p>`,
    fields: checkbox('keep_keys', false, html`Let the buyer keep the download keys`),
    action: `${salePath(sale.id)}/refund`,
    button: 'Refund',
    back: salePath(sale.id),
  });

interface BuyerView {
  sale: SellerSale;
  totals: BuyerTotals[];
  sales: SellerSale[];
  /** Keys without a purchase. */
  keys: KeyState[];
  pages: KeyPages;
}

export const buyerPage = ({ sale, totals, sales, keys, pages }: BuyerView): Page => ({
  section: SALES_PATH,
  title: `Buyer of sale ${sale.id}`,
  tables: true,
  main: html`<h1>${sale.username ?? sale.email}</h1>
    ${descriptionList(
      {
        ...(sale.username !== null && { 'Email address': clipped('buyer', sale.email) }),
        Orders: formatCount(addUp(totals, 'orders')),
        Refunds: formatCount(addUp(totals, 'refunds')),
        Total: renderTotals(totals),
        'First purchase': day(totals.map(({ first_at }) => first_at).sort()[0] ?? null),
        'Last purchase': day(
          totals
            .map(({ last_at }) => last_at)
            .sort()
            .at(-1) ?? null,
        ),
      },
      'facts card',
    )}
    <h2>Purchases of your games</h2>
    ${saleList(sales)}
    ${
      keys.length > 0 &&
      html`<h2>Keys without a purchase</h2>
        ${keyList(keys, '', pages)}`
    }`,
});

const addUp = (totals: BuyerTotals[], field: 'orders' | 'refunds') =>
  totals.reduce((sum, one) => sum + one[field], 0);

export const searchPage = (term: string, sales: SellerSale[]): Page => ({
  section: SALES_PATH,
  title: 'Search',
  search: term,
  tables: true,
  main: html`<h1>Search</h1>
    ${
      sales.length === 0
        ? html`<p class="empty">
            ${term !== '' && 'No sale of your games matches. '}Enter a part of an email address or a name (at
            least three characters), a complete reference, sale ID or key ID, or a download key or its link.
          </p>`
        : saleList(sales)
    }`,
});

const FOUND_SALE_COLUMNS: Columns<SellerSale> = {
  Sale: ({ id, created_at }) =>
    html`<a href="${salePath(id)}">Sale ${id}</a> <small>${day(created_at)}</small>`,
  Buyer: unlabeled(buyerLink),
  Games: unlabeled(
    ({ games, own_games, bundle, reference }) =>
      html`${games[0]!.title}${own_games > 1 && ` and ${own_games - 1} more`}
      ${bundle !== null && html`<small>in ${bundle}</small>`}
      ${reference !== null && html`<small>${reference}</small>`}`,
  ),
  Price: unlabeled(number(({ amount, currency }) => formatMoney(amount, currency))),
  Status: unlabeled(({ status }) => statusBadge(status)),
  Keys: ({ keys }) =>
    keys.length === 0
      ? muted('None')
      : keys.slice(0, 3).map((key) => html`<div>${key.id}: ${keyState(key)}</div>`),
};

const saleList = (sales: SellerSale[]): Html =>
  html`${table('Sales, newest first', FOUND_SALE_COLUMNS, sales.slice(0, SHOWN_SALES), 'cards list')}
  ${sales.length > SHOWN_SALES && html`<p class="muted">Only the newest ${SHOWN_SALES} sales are listed.</p>`}`;
