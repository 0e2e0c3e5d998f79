import { Controller, Get } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { OwnGamesService } from '../../games/editing/own-games.service';
import { invalidGame } from '../../games/errors';
import { Clock } from '../../platform/config/clock';
import { plainMoney } from '../../platform/formats/money';
import { dayAfter } from '../../platform/formats/days';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { Form } from '../../platform/input/form';
import { ListStreams } from '../../platform/output/list-streams';
import {
  type ListedSale,
  MAX_OF_SALE,
  type SalesFilter,
  SalesListService,
} from '../../purchases/sales/sales-list.service';
import { PageQuery, Pages } from '../layout/page';
import { parseId } from '../layout/components';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { type Cell, csvName, CsvResponse } from './csv';
import { type Period, parsePeriod } from './period';
import { toCursor, placeIn } from './place';
import {
  SALES_QUERY,
  MAX_FILTER_GAMES,
  SALES_ON_A_PAGE,
  type SalesQuery,
  salesPage,
  STATUSES,
} from './sales.page';
import { SalesReportService } from '../../purchases/sales/sales-report.service';

/** The sales of all games that a seller can edit, newest first. */
@Pages()
@SignedIn()
@Controller('user/settings')
export class SalesPageController {
  constructor(
    private readonly sales: SalesListService,
    private readonly reports: SalesReportService,
    private readonly games: OwnGamesService,
    private readonly clock: Clock,
    private readonly lists: ListStreams,
  ) {}

  @Get('sales')
  async show(@PageQuery() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const { query, title, period, filter } = await this.read(form, visitor);
    const { id } = visitor.user;
    const { direction = 'older', from } = placeIn(form) ?? {};
    const [slice, games, totals] = await Promise.all([
      this.sales.slice(id, filter, SALES_ON_A_PAGE, direction, from),
      this.sales.gameTitles(id, MAX_FILTER_GAMES + 1),
      this.reports.totals(id, period, filter.game_id ?? null),
    ]);
    const isNewer = direction === 'newer';
    const sales = isNewer ? slice.sales.toReversed() : slice.sales;
    const next = slice.next && toCursor(slice.next);
    const cursorAt = ({ created_at, id }: ListedSale) => toCursor({ sold_at: created_at, purchase_id: id });
    const [first, last] = [sales[0], sales.at(-1)];
    return salesPage({
      query,
      title,
      period,
      games,
      totals,
      sales,
      isPartial: slice.next !== undefined && sales.length < SALES_ON_A_PAGE,
      // A page without sales has no first or last sale to continue from, so it uses its own cursor.
      newer: isNewer ? next : from && (first ? cursorAt(first) : toCursor(from)),
      older: isNewer ? last && cursorAt(last) : next,
      isFirst: !from,
    });
  }

  @Get('sales.csv')
  async download(@PageQuery() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const { period, filter, title } = await this.read(form, visitor);
    const game = title === undefined ? undefined : { id: filter.game_id!, title };
    const name = csvName('sales', game, filter.since === undefined ? undefined : period);
    return new CsvResponse(this.lists, name, CELLS, this.sales.all(visitor.user.id, filter));
  }

  private async read(form: Form, visitor: SignedInVisitor) {
    const query: SalesQuery = Object.fromEntries(
      SALES_QUERY.map((name) => [name, form.text(name)?.trim() || undefined]),
    );
    if (query.range !== 'custom') query.from = query.to = undefined;
    const game_id = query.game === undefined ? undefined : parseId(query.game);
    const title = game_id === undefined ? undefined : await this.games.findTitle(game_id, visitor.user.id);
    if (game_id !== undefined && title === undefined) throw invalidGame();
    const period = parsePeriod(query, new Date(this.clock.now()), 'all');
    return { query, title, period, filter: readFilter(query, period, game_id) };
  }
}

function readFilter(query: SalesQuery, period: Period, game_id: number | undefined): SalesFilter {
  const isAll = period.range === 'all' || period.problem !== undefined;
  return {
    game_id,
    since: isAll ? undefined : dayStart(period.from),
    until: isAll ? undefined : dayStart(dayAfter(period.to)),
    currency: query.currency,
    status: STATUSES.find(([value]) => value === query.status)?.[0],
    source: query.source,
  };
}

const dayStart = (day: string) => `${day} 00:00:00+00`;

const CELLS: Record<string, (row: ListedSale) => Cell> = {
  purchase: ({ id }) => id,
  bought_at: ({ created_at }) => modernTimestamp(created_at),
  game_ids: ({ games }) =>
    games
      .slice(0, MAX_OF_SALE)
      .map(({ id }) => id)
      .join(' '),
  games: ({ games }) =>
    games
      .slice(0, MAX_OF_SALE)
      .map(({ title }) => title)
      .join(' + '),
  email: ({ email }) => email,
  user: ({ username }) => username,
  currency: ({ currency }) => currency,
  price: ({ amount, currency }) => plainMoney(amount, currency),
  percent_off: ({ sale_rate }) => sale_rate,
  quantity: ({ quantity }) => quantity,
  type: ({ purchase_type }) => purchase_type,
  donation: ({ donation }) => donation,
  source: ({ source }) => source,
  status: ({ status }) => status,
  keys: ({ keys }) => Math.min(keys, MAX_OF_SALE),
  keys_claimed: ({ claimed }) => Math.min(claimed, MAX_OF_SALE),
  downloads: ({ downloads }) => downloads,
  reference: ({ reference }) => reference,
  bundle: ({ bundle }) => bundle,
};
