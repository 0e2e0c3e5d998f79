import { Controller, Get } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { parseCursor } from '../../platform/input/cursor';
import { Form } from '../../platform/input/form';
import { CreatedKeysService } from '../../purchases/keys/created-keys.service';
import { PageQuery, Pages } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { OwnGamesService } from '../../games/editing/own-games.service';
import { GamesPage } from './games.page';
import { gamesWithKeysPage } from './keys.page';

/** The games that a seller owns or administers, and those with their download keys. */
@Pages()
@SignedIn()
@Controller('user/settings')
export class SellerGamesController {
  constructor(
    private readonly games: OwnGamesService,
    private readonly createdKeys: CreatedKeysService,
    private readonly page: GamesPage,
  ) {}

  @Get('games')
  async list(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const after = parseCursor(query.text('after'));
    return this.page.list(await this.games.page(visitor.user.id, after), !after, visitor.user.developer);
  }

  @Get('download-keys')
  async keys(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const after = parseCursor(query.text('after'));
    return gamesWithKeysPage(await this.createdKeys.games(visitor.user.id, after), !after);
  }
}
