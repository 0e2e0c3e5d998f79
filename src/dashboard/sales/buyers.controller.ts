import { Controller, Get, Param, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { formatMoney, plainMoney } from '../../platform/formats/money';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { apiError } from '../../platform/http/api-error';
import { LongLists } from '../../platform/http/long-lists';
import { GameSalesService, type Place, type SaleRow } from '../../purchases/game-sales.service';
import { queryOf, withQuery } from '../../platform/http/form';
import { html, type Html } from '../layout/html';
import { Layout } from '../layout/layout';
import { Pages } from '../layout/page';
import { day, idOf, pageLinks, table } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { type Cell, CsvResponse } from './csv';
import { PATH } from './sales-page.controller';
import { SalesReportService } from './sales-report.service';

const ON_A_PAGE = 50;
const MAX_FIND = 320;

/** The pages of who bought a game, for those who can edit it. */
@Pages()
@Controller('user/settings/sales/:game_id')
export class BuyersController {
  constructor(
    private readonly titles: SalesReportService,
    private readonly sales: GameSalesService,
    private readonly lists: LongLists,
    private readonly layout: Layout,
  ) {}

  @Get('buyers')
  @SignedIn()
  async list(
    @Req() req: Request,
    @Param('game_id') game_id: string,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const id = idOf(game_id);
    const title = await this.titleOf(id, visitor.user.id);
    const find = findOf(req);
    const after = placeIn(queryOf(req).text('after'));
    const page = { buyer: find, after, limit: ON_A_PAGE + 1 };
    const rows = (await this.sales.find(id, visitor.user.id, page)) as SaleRow[];
    const shown = rows.slice(0, ON_A_PAGE);
    const path = `${PATH}/${id}/buyers`;
    return this.layout.show(visitor, {
      section: PATH,
      title: `Buyers of ${title}`,
      main: html`<div class="head">
          <h1>Buyers of ${title}</h1>
          <div class="buttons">
            <a class="button quiet" href="${PATH}?game=${id}">Sales</a>
            <a class="button quiet" href="${withQuery(`${path}.csv`, { find })}">Download as CSV</a>
          </div>
        </div>
        <form action="${path}" class="card row" role="search">
          <label class="field" for="find"
            >E-mail or user name
            <input
              id="find"
              name="find"
              value="${find ?? ''}"
              maxlength="${MAX_FIND}"
              autocapitalize="none"
              autocomplete="off"
              spellcheck="false"
          /></label>
          <button>Find</button>
          ${find !== undefined && html`<a class="button quiet" href="${path}">Show all</a>`}
        </form>
        ${shown.length === 0 ? noBuyers(find, after) : table('Buyers, newest first', COLUMNS, shown.map(rowOf), 'cards buyers')}
        ${pageLinks({
          Newest: after !== undefined && withQuery(path, { find }),
          Older: rows.length > ON_A_PAGE && withQuery(path, { find, after: cursorOf(shown.at(-1)!) }),
        })}`,
    });
  }

  @Get('buyers.csv')
  @SignedIn()
  async download(
    @Req() req: Request,
    @Param('game_id') game_id: string,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const id = idOf(game_id);
    await this.titleOf(id, visitor.user.id);
    const rows = await this.sales.find(id, visitor.user.id, { buyer: findOf(req) });
    return new CsvResponse(this.lists, `buyers-of-game-${id}.csv`, Object.keys(CELLS), rows, (row) =>
      Object.values(CELLS).map((cell) => cell(row)),
    );
  }

  private async titleOf(game_id: number, user_id: number): Promise<string> {
    const title = await this.titles.titleOf(game_id, user_id);
    if (title === undefined) throw apiError(404, 'You have no such game.');
    return title;
  }
}

const CELLS: Record<string, (row: SaleRow) => Cell> = {
  purchase: ({ id }) => id,
  bought_at: ({ created_at }) => modernTimestamp(created_at),
  email: ({ email }) => email,
  user: ({ buyer }) => buyer?.username ?? null,
  currency: ({ currency }) => currency,
  price: ({ amount, currency }) => plainMoney(amount, currency),
  percent_off: ({ sale_rate }) => sale_rate,
  quantity: ({ quantity }) => quantity,
  type: ({ purchase_type }) => purchase_type,
  donation: ({ donation }) => donation,
  source: ({ source }) => source,
  status: ({ status }) => status,
  key: ({ key }) => key?.id ?? null,
  key_revoked: ({ key }) => key && key.revoked,
  key_claimed_by: ({ key }) => key?.claimed_by?.username ?? null,
  key_downloads: ({ key }) => key && key.downloads,
};

function findOf(req: Request): string | undefined {
  const find = queryOf(req).text('find')?.trim() ?? '';
  return find === '' ? undefined : find.slice(0, MAX_FIND);
}

// The timestamp is in PostgreSQL's own format.
const PLACE = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00),(\d{1,15})$/;

const cursorOf = ({ created_at, id }: Place) => `${created_at},${id}`;

/** Undefined: from the newest on. */
function placeIn(text: string | undefined): Place | undefined {
  const [, created_at, id] = PLACE.exec(text ?? '') ?? [];
  const isTime = created_at !== undefined && !Number.isNaN(Date.parse(created_at.replace('+00', 'Z')));
  return isTime ? { created_at, id: Number(id) } : undefined;
}

const noBuyers = (find: string | undefined, after: Place | undefined): Html =>
  html`<p class="empty">
    ${
      find === undefined
        ? after === undefined
          ? 'Nobody has bought it yet.'
          : 'There are no more.'
        : 'Nobody with exactly this address or user name has bought it.'
    }
  </p>`;

const COLUMNS = ['Buyer', 'Bought', { numbers: 'Price' }, 'Status', 'Key'];

const rowOf = ({ id, email, buyer, created_at, source, amount, currency, status, ...sale }: SaleRow): Html =>
  html`<tr>
    <th scope="row">${email}${buyer && html`<br /><small>${buyer.username}</small>`}</th>
    <td data-label="Bought">${day(created_at)} <small>No. ${id}, ${source}</small></td>
    <td class="number" data-label="Price">
      ${formatMoney(amount, currency)}
      ${sale.purchase_type !== 'game' && html`<span class="tag">${sale.purchase_type.replace('_', '-')}</span>`}
    </td>
    <td data-label="Status">
      ${status === 'complete' ? 'Complete' : html`<span class="tag">refunded</span>`}
    </td>
    <td data-label="Key">${keyOf(sale.key)}</td>
  </tr>`;

function keyOf(key: SaleRow['key']): Html {
  if (!key) return html`<span class="muted">no key</span>`;
  const downloads = key.downloads === 1 ? '1 download' : `${key.downloads.toLocaleString('en-US')} downloads`;
  return html`${
      key.claimed_by ? `Claimed by ${key.claimed_by.username}` : html`<span class="muted">Not claimed</span>`
    } <small>${downloads}${key.revoked && ', revoked'}</small>`;
}
