import { SALES_PATH } from '../layout/layout';
import { formatMoney } from '../../platform/formats/money';
import { withQuery } from '../../platform/input/form';
import type { GameSaleRow } from '../../purchases/sales/game-sales.service';
import { html, type Html } from '../layout/html';
import type { Page } from '../layout/layout';
import {
  type Columns,
  countOf,
  day,
  muted,
  number,
  pageLinks,
  tableOr,
  tag,
  unlabeled,
} from '../layout/parts';
import { buyersPath } from './sales.page';

interface Buyers {
  game_id: number;
  title: string;
  sales: GameSaleRow[];
  isFirstPage: boolean;
  next: string | undefined;
}

export function buyersPage({ game_id, title, sales, isFirstPage, next }: Buyers): Page {
  const path = buyersPath(game_id);
  return {
    section: SALES_PATH,
    title: `Buyers of ${title}`,
    main: html`<div class="head">
        <h1>Buyers of ${title}</h1>
        <div class="buttons">
          <a class="button quiet" href="${SALES_PATH}?game=${game_id}">Sales</a>
          <a class="button quiet" href="${path}.csv">Download as CSV</a>
        </div>
      </div>
      ${tableOr(isFirstPage ? 'There are no buyers yet.' : 'There are no more buyers.', 'Buyers, newest first', COLUMNS, sales, 'cards buyers')}
      ${pageLinks({
        Newest: !isFirstPage && path,
        Older: next !== undefined && withQuery(path, { after: next }),
      })}`,
  };
}

const TYPES = { game: 'Game', bundle: 'Bundle', sub_product: 'Sub-product' } as const;

const COLUMNS: Columns<GameSaleRow> = {
  Buyer: ({ email, buyer }) => html`${email}${buyer && html`<br /><small>${buyer.username}</small>`}`,
  Bought: unlabeled(
    ({ id, created_at, source, reference }) =>
      html`${day(created_at)}
        <small
          ><a href="${SALES_PATH}/${id}">Sale ${id}</a>,
          ${source}${reference !== null && `, ${reference}`}</small
        >`,
  ),
  Price: unlabeled(
    number(
      ({ amount, currency, purchase_type: type }) =>
        html`${formatMoney(amount, currency)} ${type !== 'game' && tag(TYPES[type])}`,
    ),
  ),
  Status: unlabeled(({ status }) => statusOf(status)),
  Key: unlabeled(({ key }) => keyOf(key)),
};

export const statusOf = (status: GameSaleRow['status']): Html =>
  status === 'complete' ? html`Complete` : tag('Refunded');

function keyOf(key: GameSaleRow['key']): Html {
  if (!key) return muted('No key');
  const downloads = key.downloads === 1 ? '1 download' : `${countOf(key.downloads)} downloads`;
  return html`${key.claimed_by ? `Claimed by ${key.claimed_by.username}` : muted('Not claimed')}
    <small>${downloads}${key.revoked && ', revoked'}</small>`;
}
