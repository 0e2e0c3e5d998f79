import { formatMoney } from '../../platform/formats/money';
import { withQuery } from '../../platform/input/form';
import { type ListedSale, MAX_OF_SALE } from '../../purchases/sales/sales-list.service';
import { ERASED_ADDRESS } from '../../auth/accounts/erased-users';
import { html, type Html } from '../layout/html';
import { type Page, SALES_PATH } from '../layout/layout';
import { field, problemAt, selectField, filterForm } from '../layout/fields';
import {
  clipped,
  type Columns,
  day,
  formatCount,
  inWords,
  muted,
  number,
  pageLinks,
  tableOr,
  tag,
  unlabeled,
} from '../layout/components';
import { formatSales } from './chart';
import { dateFields } from './filter';
import type { Period } from './period';
import { RANGES } from './period';
import { buyerPath, salePath } from './sales-paths';
import { salesViews } from './sales-views';
import type { Sold } from '../../purchases/sales/recent-sales';

export const SALES_ON_A_PAGE = 50;
export const MAX_FILTER_GAMES = 200;
const LIST_FILE = `${SALES_PATH}.csv`;

export const STATUSES = [
  ['complete', 'Complete'],
  ['refunded', 'Refunded'],
] as const;

export const SALES_QUERY = ['game', 'status', 'currency', 'range', 'from', 'to', 'source'] as const;
export type SalesQuery = Partial<Record<(typeof SALES_QUERY)[number], string>>;

interface SalesView {
  query: SalesQuery;
  /** The title of the game, if the page shows only one. */
  title: string | undefined;
  period: Period;
  /** The games to choose from, at most one more than MAX_FILTER_GAMES. */
  games: { id: number; title: string }[];
  totals: (Sold & { currency: string })[];
  sales: ListedSale[];
  /** Whether the page has few sales because matches are rare, not because there are no more. */
  isPartial: boolean;
  /** Cursors of the adjacent pages. */
  newer: string | undefined;
  older: string | undefined;
  isFirst: boolean;
}

export function salesPage(view: SalesView): Page {
  const { query, title, sales, newer, older, isFirst, isPartial } = view;
  const name = title === undefined ? 'Sales' : `Sales of ${title}`;
  return {
    section: SALES_PATH,
    title: name,
    tables: true,
    main: html`<div class="head">
        <h1>${name}</h1>
        <div class="buttons">
          <a class="button quiet" href="${withQuery(LIST_FILE, query)}">Download sales as CSV</a>
        </div>
      </div>
      ${salesViews('sales', query.game)} ${filters(view)} ${summary(view)}
      ${tableOr(emptyText(view), 'Sales, newest first', LISTED_SALE_COLUMNS, sales, 'cards list')}
      ${isPartial && html`<p class="muted">These are the matches among the sales that were searched so far. There are older ones.</p>`}
      ${pageLinks({
        Newest: !isFirst && withQuery(SALES_PATH, { ...query }),
        Newer: newer !== undefined && withQuery(SALES_PATH, { ...query, before: newer }),
        Older: older !== undefined && withQuery(SALES_PATH, { ...query, after: older }),
      })}`,
  };
}

const hasFilter = ({ game: _, ...query }: SalesQuery) =>
  Object.values(query).some((value) => value !== undefined && value !== 'all');

function emptyText({ query, isFirst, isPartial, games }: SalesView): Html | string {
  if (games.length === 0) return 'You have no games yet.';
  if (isPartial) return 'No sale matches among those that were searched so far.';
  if (!isFirst) return 'There are no more sales.';
  if (!hasFilter(query)) return 'There are no sales yet.';
  return html`No sale matches. <a href="${withQuery(SALES_PATH, { game: query.game })}">Show all sales</a>`;
}

function filters({ query, title, period, games, totals, sales }: SalesView): Html {
  const { game = '', status = '', currency = '' } = query;
  const listed = games.slice(0, MAX_FILTER_GAMES);
  const others =
    title !== undefined && !listed.some(({ id }) => String(id) === game) ? [[game, title] as const] : [];
  const currencies = [...new Set([...totals.map((one) => one.currency), ...(currency ? [currency] : [])])];
  const sources = [...new Set(sales.map(({ source }) => inWords(source)))].sort();
  return html`${filterForm(
    SALES_PATH,
    html`${selectField('game', 'Game', [['', 'All games'], ...others, ...listed.map(({ id, title }) => [String(id), title] as const)], game)}
      ${selectField(
        'range',
        'Period',
        Object.entries(RANGES).map(([value, { name }]) => [value, name]),
        period.range,
      )}
      ${dateFields(query, period)}
      ${selectField('status', 'Status', [['', 'Any status'], ...STATUSES], status)}
      ${selectField('currency', 'Currency', [['', 'All currencies'], ...currencies.map((one) => [one, one] as const)], currency)}
      ${field({ id: 'source', label: 'Source', value: query.source ?? '', placeholder: 'Any source', maxlength: 50, list: 'sources' })}
      <datalist id="sources">
        ${sources.map((source) => html`<option value="${source}"></option>`)}
      </datalist>`,
  )}
  ${problemAt('dates', period.problem)}`;
}

/** The summary is hidden for a source and for refunds, because the totals can't be limited to either. */
function summary({ query, period, totals, sales }: SalesView): Html {
  const shown = totals.filter(
    ({ currency, purchases }) => purchases > 0 && currency === (query.currency ?? currency),
  );
  if (shown.length === 0 || query.source !== undefined || query.status === 'refunded') return html``;
  return html`<p class="lead summary">
    ${period.range === 'all' || period.problem !== undefined ? 'All time' : html`${day(period.from)} to ${day(period.to)}`}:
    ${shown.map(
      ({ currency, purchases, amount }, i) =>
        html`${i > 0 && ', '}<strong>${formatMoney(amount, currency)}</strong> from ${formatSales(purchases)}`,
    )}${sales.some(({ games }) => games.length > 1) && html`. <small>A bundle counts as a sale of each of its games.</small>`}
  </p>`;
}

export const statusBadge = (status: ListedSale['status']): Html =>
  status === 'complete' ? html`Complete` : tag('Refunded');

const TYPES = { game: 'Game', bundle: 'Bundle', sub_product: 'Sub-product' } as const;

const gameTitles = ({ games }: ListedSale): string =>
  games.length > 1
    ? `${games[0]!.title} and ${formatCount(games.length - 1, MAX_OF_SALE - 1)} more`
    : (games[0]?.title ?? '');

function keysCell({ keys, claimed }: ListedSale): Html {
  if (keys === 0) return muted('No key');
  if (keys > MAX_OF_SALE) return html`${formatCount(keys, MAX_OF_SALE)} keys`;
  if (keys > 1) return html`${claimed} of ${keys} claimed`;
  return claimed > 0 ? html`Claimed` : muted('Not claimed');
}

export const buyerLink = ({ id, email, username }: Pick<ListedSale, 'id' | 'email' | 'username'>): Html =>
  email === ERASED_ADDRESS
    ? muted('Erased')
    : html`${clipped(`buyer-${id}`, email, buyerPath(id))}${username !== null && html` <small>${username}</small>`}`;

const LISTED_SALE_COLUMNS: Columns<ListedSale> = {
  Sale: ({ id, created_at }) =>
    html`<a href="${salePath(id)}">Sale ${id}</a> <small>${day(created_at)}</small>`,
  Buyer: unlabeled(buyerLink),
  Game: unlabeled(
    (sale) =>
      html`<span class="wrap">${gameTitles(sale)}</span>
        ${sale.purchase_type !== 'game' && tag(TYPES[sale.purchase_type])}
        ${sale.bundle !== null && html`<small>in ${sale.bundle}</small>`}
        ${sale.reference !== null && html`<small>${sale.reference}</small>`}`,
  ),
  Price: unlabeled(number(({ amount, currency }) => formatMoney(amount, currency))),
  Status: unlabeled(({ status }) => statusBadge(status)),
  Source: unlabeled(({ source }) => html`<span class="wrap">${inWords(source)}</span>`),
  Key: unlabeled(keysCell),
};
