import { Controller, Get } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { Form } from '../../platform/input/form';
import { PageQuery, Pages } from '../layout/page';
import { parsePage } from '../layout/components';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { GamesReportService } from './games-report.service';
import { GamesPage } from './games.page';
import { gamesWithKeysPage } from './keys.page';

/** The games that a seller owns or administers, and those with their download keys. */
@Pages()
@SignedIn()
@Controller('user/settings')
export class SellerGamesController {
  constructor(
    private readonly games: GamesReportService,
    private readonly page: GamesPage,
  ) {}

  @Get('games')
  async list(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const page = parsePage(query.text('page'));
    return this.page.list(await this.games.page(visitor.user.id, page), page, visitor.user.developer);
  }

  @Get('download-keys')
  async keys(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const page = parsePage(query.text('page'));
    return gamesWithKeysPage(await this.games.keysPage(visitor.user.id, page), page);
  }
}
