import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { Form } from '../../platform/input/form';
import { readInteger } from '../../platform/input/readers';
import { PushesService } from '../../push/pushes.service';
import { invalidBuild } from '../../uploads/uploads.service';
import { seeOther } from '../layout/layout';
import { PageQuery, Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { BuildsPage, buildsPath } from './builds.page';
import { BuildsListService } from '../../wharf/builds-list.service';
import { OwnGamesService } from '../../games/editing/own-games.service';

/** The builds of a game's channels, for users who can edit it. */
@Pages()
@SignedIn()
@Controller('user/settings/games/:game_id/builds')
export class GameBuildsController {
  constructor(
    private readonly games: OwnGamesService,
    private readonly builds: BuildsListService,
    private readonly pushes: PushesService,
    private readonly page: BuildsPage,
  ) {}

  @Get()
  async list(
    @PathId('game_id') game_id: number,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const game = await this.games.one(game_id, visitor.user.id);
    const channel = query.text('channel');
    const after = readInteger(query.text('after') ?? '');
    const shown = { channel, after: typeof after === 'number' ? after : undefined };
    const builds = await this.builds.page(game_id, visitor.user.id, shown);
    return this.page.list(visitor, game, builds, shown);
  }

  @Post(':build_id/publish')
  async publish(
    @PathId('game_id') game_id: number,
    @PathId('build_id') build_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const editor = { user_id: visitor.user.id, game_id: undefined };
    const build = await this.pushes.require(build_id, editor);
    if (build.game_id !== game_id) throw invalidBuild();
    await this.pushes.publish({ build_id }, editor, undefined);
    const { channel_name, version } = build;
    return seeOther(buildsPath(game_id), { message: `Version ${version} of ${channel_name} was published.` });
  }
}
