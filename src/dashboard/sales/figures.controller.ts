import { Controller, Get } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { OwnGamesService } from '../../games/editing/own-games.service';
import { invalidGame } from '../../games/errors';
import { Clock } from '../../platform/config/clock';
import { plainMoney } from '../../platform/formats/money';
import { badRequest } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import { ListStreams } from '../../platform/output/list-streams';
import { PageQuery, Pages } from '../layout/page';
import { parseId, parsePage } from '../layout/components';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { type Cell, csvName, CsvResponse } from './csv';
import { type Period, parsePeriod } from './period';
import {
  columnsWith,
  FIGURES_QUERY,
  RANKED_GAMES_ON_A_PAGE,
  type FiguresQuery,
  figuresPage,
} from './figures.page';
import type { Sold } from '../../purchases/sales/recent-sales';
import { type Report, SalesReportService } from '../../purchases/sales/sales-report.service';

const MAX_GAMES_IN_FILE = 10_000;

type FigureRow = Sold & { of: string; id?: number };
type Found = { period: Period; report: Report };

/** The figures of a seller's sales: sums of a period, over time, by game and by source. */
@Pages()
@SignedIn()
@Controller('user/settings/sales')
export class FiguresController {
  constructor(
    private readonly sales: SalesReportService,
    private readonly games: OwnGamesService,
    private readonly clock: Clock,
    private readonly lists: ListStreams,
  ) {}

  @Get('figures')
  async show(@PageQuery() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const page = parsePage(form.text('page'));
    const found = await this.read(form, visitor, {
      limit: RANKED_GAMES_ON_A_PAGE + 1,
      offset: (page - 1) * RANKED_GAMES_ON_A_PAGE,
    });
    return figuresPage({ ...found, page });
  }

  @Get('figures.csv')
  async download(@PageQuery() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const of = form.text('of');
    const found = await this.read(form, visitor, { limit: of === 'game' ? MAX_GAMES_IN_FILE : 0 });
    const { report, period, game_id, title } = found;
    const currency = report.chosen?.currency ?? '';
    const rows = figureRows(of, found);
    const name = csvName(
      `sales-by-${of === 'time' ? period.unit : of}`,
      title === undefined ? undefined : { id: game_id!, title },
      period,
    );
    const columns: Record<string, (row: FigureRow) => Cell> = {
      ...(of === 'game' && { game_id: ({ id }: FigureRow) => id ?? null }),
      [of === 'time' ? period.unit : of!]: (row) => row.of,
      sales: ({ purchases }) => purchases,
      currency: () => currency,
      revenue: ({ amount }) => plainMoney(amount, currency),
    };
    return new CsvResponse(this.lists, name, columns, rows);
  }

  private async read(form: Form, visitor: SignedInVisitor, games: { limit: number; offset?: number }) {
    const query: FiguresQuery = Object.fromEntries(
      FIGURES_QUERY.map((name) => [name, form.text(name) || undefined]),
    );
    if (query.range !== 'custom') query.from = query.to = undefined;
    const game_id = query.game === undefined ? null : parseId(query.game);
    const title = game_id === null ? undefined : await this.games.findTitle(game_id, visitor.user.id);
    if (game_id !== null && title === undefined) throw invalidGame();
    const requested = parsePeriod(query, new Date(this.clock.now()));
    const filter = { game_id, currency: query.currency };
    const report = await this.sales.report(visitor.user.id, requested, filter, games);
    const period =
      requested.range === 'all' ? { ...requested, from: firstColumn(report) ?? requested.to } : requested;
    return { query, game_id, title, period, report };
  }
}

function figureRows(of: string | undefined, { report, period }: Found): FigureRow[] {
  if (of === 'source') return report.sources.map((one) => ({ ...one, of: one.source }));
  if (of === 'time')
    return report.chosen ? columnsWith(report, period).map((one) => ({ ...one, of: one.first })) : [];
  if (of !== 'game') throw badRequest('of must be time, game or source');
  return report.games.filter(({ purchases }) => purchases > 0).map((one) => ({ ...one, of: one.title }));
}

const firstColumn = ({ columns }: Report): string | undefined => [...columns.keys()].sort()[0];
