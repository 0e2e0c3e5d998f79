import { Controller, Get } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { OwnGamesService } from '../../games/editing/own-games.service';
import { invalidGame } from '../../games/errors';
import { plainMoney } from '../../platform/formats/money';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { Form } from '../../platform/input/form';
import { ListStreams } from '../../platform/output/list-streams';
import { type Buyer, BuyersService, placeOfBuyer } from '../../purchases/sales/buyers.service';
import { PageQuery, Pages } from '../layout/page';
import { parseId } from '../layout/components';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { BUYERS_ON_A_PAGE, buyersPage } from './buyers.page';
import { type Cell, csvName, CsvResponse } from './csv';
import { placeIn, toCursor } from './place';

/** The people who bought a seller's games. */
@Pages()
@SignedIn()
@Controller('user/settings')
export class BuyersController {
  constructor(
    private readonly buyers: BuyersService,
    private readonly games: OwnGamesService,
    private readonly lists: ListStreams,
  ) {}

  @Get('buyers')
  async list(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const game = await this.gameIn(query, visitor);
    const { direction = 'older', from } = placeIn(query) ?? {};
    const slice = await this.buyers.slice(visitor.user.id, game?.id, BUYERS_ON_A_PAGE, direction, from);
    const isNewer = direction === 'newer';
    const buyers = isNewer ? slice.buyers.toReversed() : slice.buyers;
    const next = slice.next && toCursor(slice.next);
    const [first, last] = [buyers[0], buyers.at(-1)];
    return buyersPage({
      game,
      buyers,
      isCounted: !slice.isPartial,
      // A page without buyers has no first or last buyer to continue from, so it uses its own cursor.
      newer: isNewer ? next : from && toCursor(first ? placeOfBuyer(first) : from),
      older: isNewer ? last && toCursor(placeOfBuyer(last)) : next,
      isFirst: !from,
    });
  }

  @Get('buyers.csv')
  async download(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const game = await this.gameIn(query, visitor);
    const rows = this.buyers.all(visitor.user.id, game?.id);
    return new CsvResponse(this.lists, csvName('buyers', game), CELLS, rows);
  }

  private async gameIn(query: Form, { user }: SignedInVisitor) {
    const text = query.text('game') || undefined;
    if (text === undefined) return undefined;
    const id = parseId(text);
    const title = await this.games.findTitle(id, user.id);
    if (title === undefined) throw invalidGame();
    return { id, title };
  }
}

const CELLS: Record<string, (row: Buyer) => Cell> = {
  email: ({ email }) => email,
  user: ({ username }) => username,
  orders: ({ orders }) => orders,
  refunds: ({ refunds }) => refunds,
  totals: ({ totals }) =>
    totals.map(({ currency, amount }) => `${plainMoney(amount, currency)} ${currency}`).join(' + '),
  first_bought_at: ({ first_at }) => modernTimestamp(first_at),
  last_bought_at: ({ last_at }) => modernTimestamp(last_at),
  last_purchase: ({ last_sale }) => last_sale,
};
