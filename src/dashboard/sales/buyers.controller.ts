import { Controller, Get } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { invalidGame } from '../../games/errors';
import { plainMoney } from '../../platform/formats/money';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { badRequest } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import { LongLists } from '../../platform/output/long-lists';
import { type GameSaleRow, GameSalesService, type Place } from '../../purchases/sales/game-sales.service';
import { PageQuery, Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { buyersPage } from './buyers.page';
import { type Cell, csvName, CsvResponse } from './csv';
import { dayAfter, type Dates, isDay } from './period';
import { SalesReportService } from './sales-report.service';

const ON_A_PAGE = 50;

/** The buyers of a game, for users who can edit it. */
@Pages()
@SignedIn()
@Controller('user/settings/games/:game_id')
export class BuyersController {
  constructor(
    private readonly titles: SalesReportService,
    private readonly sales: GameSalesService,
    private readonly lists: LongLists,
  ) {}

  @Get('buyers')
  async list(
    @PageQuery() query: Form,
    @PathId('game_id') game_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const title = await this.titleOf(game_id, visitor);
    const after = placeIn(query.text('after'));
    const rows = await this.sales.slice(game_id, visitor.user.id, { after, limit: ON_A_PAGE + 1 });
    const sales = rows.slice(0, ON_A_PAGE);
    const next = rows.length > ON_A_PAGE ? cursorOf(sales.at(-1)!) : undefined;
    return buyersPage({ game_id, title, sales, isFirstPage: after === undefined, next });
  }

  @Get('buyers.csv')
  async download(
    @PageQuery() query: Form,
    @PathId('game_id') game_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const title = await this.titleOf(game_id, visitor);
    const dates = datesIn(query);
    const within = dates && {
      since: startOf(dates.from),
      after: { created_at: startOf(dayAfter(dates.to)), id: 0 },
    };
    const rows = await this.sales.find(game_id, visitor.user.id, within ?? {});
    const name = csvName(dates ? 'sales' : 'buyers', { id: game_id, title }, dates);
    return new CsvResponse(this.lists, name, CELLS, rows);
  }

  private async titleOf(game_id: number, { user }: SignedInVisitor): Promise<string> {
    const title = await this.titles.titleOf(game_id, user.id);
    if (title === undefined) throw invalidGame();
    return title;
  }
}

const CELLS: Record<string, (row: GameSaleRow) => Cell> = {
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
  reference: ({ reference }) => reference,
};

/** Both dates of the query, or neither. */
function datesIn(query: Form): Dates | undefined {
  const [from, to] = [query.text('from') || undefined, query.text('to') || undefined];
  if (from === undefined && to === undefined) return undefined;
  if (!isDay(from) || !isDay(to)) throw badRequest('from and to must be dates such as 2026-01-31');
  return { from, to };
}

const startOf = (day: string) => `${day} 00:00:00+00`;

// The timestamp is in PostgreSQL's own format.
const PLACE = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00),(\d{1,15})$/;

const cursorOf = ({ created_at, id }: Place) => `${created_at},${id}`;

/** Undefined: from the newest on. */
function placeIn(text: string | undefined): Place | undefined {
  const [, created_at, id] = PLACE.exec(text ?? '') ?? [];
  const isTime = created_at !== undefined && !Number.isNaN(Date.parse(created_at.replace('+00', 'Z')));
  return isTime ? { created_at, id: Number(id) } : undefined;
}
