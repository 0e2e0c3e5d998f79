import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { forbidden } from '../../auth/access/errors';
import { CreateGameRequest, UpdateGameRequest } from '../../games/editing/game-edits.dto';
import { GameEditsService } from '../../games/editing/game-edits.service';
import { Clock } from '../../platform/config/clock';
import { ApiError } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import { ParameterPipe } from '../../platform/input/parameter.pipe';
import { PARAMETERS, type RequestClass } from '../../platform/input/params.decorator';
import { GameSalesService } from '../../purchases/sales/game-sales.service';
import { SalesReportService } from '../../purchases/sales/sales-report.service';
import { UploadsService } from '../../uploads/uploads.service';
import { hasProblems } from '../layout/fields';
import { GAMES_PATH, seeOther, gamePath } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { draftIn, toGameDraft, messagesByField, NEW_GAME, toParameters, sentence } from './game-draft';
import { GamePage } from './game.page';
import { OwnGamesService } from '../../games/editing/own-games.service';
import { OverviewPage, RECENT_DAYS, SALES_SHOWN } from './overview.page';
import { formatDay } from '../../platform/formats/days';
import { DAY_MS } from '../../platform/formats/durations';

/** Games that a seller creates, changes and deletes. */
@Pages()
@SignedIn()
@Controller('user/settings/games')
export class GameController {
  constructor(
    private readonly games: OwnGamesService,
    private readonly edits: GameEditsService,
    private readonly sales: GameSalesService,
    private readonly reports: SalesReportService,
    private readonly uploads: UploadsService,
    private readonly page: GamePage,
    private readonly overviewPage: OverviewPage,
    private readonly parameters: ParameterPipe,
    private readonly clock: Clock,
  ) {}

  @Get('new')
  newForm(@CurrentVisitor() visitor: SignedInVisitor) {
    if (!visitor.user.developer) throw notADeveloper();
    return this.page.newGame(visitor, NEW_GAME);
  }

  @Post()
  async create(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    if (!visitor.user.developer) throw notADeveloper();
    const draft = { ...draftIn(form), published: false, visibility: 'private' };
    const { parameters, problems } = toParameters({ ...draft, price: draft.price || '0' });
    if (hasProblems(problems)) return this.page.newGame(visitor, draft, { problems });
    const created = await this.attempt(async () =>
      this.edits.create(await this.validated(parameters, CreateGameRequest), visitor.by),
    );
    if (created instanceof ApiError)
      return this.page.newGame(visitor, draft, messagesByField(created.errors));
    return seeOther(gamePath(created.game.id), { message: `${created.game.title} was created.` });
  }

  @Get(':game_id')
  async overview(@PathId('game_id') game_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const user_id = visitor.user.id;
    const game = await this.games.one(game_id, user_id);
    const since = formatDay(new Date(this.clock.now() - (RECENT_DAYS - 1) * DAY_MS));
    const [sold, sales, uploads] = await Promise.all([
      this.reports.salesSince(since, game_id, user_id),
      this.sales.slice(game_id, user_id, { limit: SALES_SHOWN }),
      this.uploads.list({ game_id }, { user_id }),
    ]);
    return this.overviewPage.show(visitor, game, { sold, sales, uploads });
  }

  @Get(':game_id/details')
  async details(@PathId('game_id') game_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const game = await this.games.one(game_id, visitor.user.id);
    return this.page.details(visitor, game, toGameDraft(game));
  }

  @Post(':game_id/details')
  async update(
    @PathId('game_id') game_id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const game = await this.games.one(game_id, visitor.user.id);
    const draft = draftIn(form);
    const { parameters, problems } = toParameters(draft, game);
    if (draft.slug === '') problems.slug = 'Enter a short name.';
    if (hasProblems(problems)) return this.page.details(visitor, game, draft, { problems });
    const updated = await this.attempt(async () =>
      this.edits.update(
        await this.validated({ ...parameters, game_id: String(game_id) }, UpdateGameRequest),
        visitor.by,
      ),
    );
    if (updated instanceof ApiError)
      return this.page.details(visitor, game, draft, messagesByField(updated.errors));
    const hasMoved = draft.slug !== game.slug;
    return seeOther(gamePath(game_id, 'details'), {
      message: `Your changes were saved.${hasMoved ? ` The URL with ${game.slug} no longer works.` : ''}`,
    });
  }

  @Post(':game_id/publish')
  async publish(
    @PathId('game_id') game_id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const { title, visibility } = await this.games.one(game_id, visitor.user.id);
    const published = form.text('published') === 'yes';
    const shown = published && visibility === 'private' ? 'public' : undefined;
    await this.edits.update({ game_id, published, visibility: shown }, visitor.by);
    return seeOther(gamePath(game_id), {
      message: published ? `${title} was published.` : `${title} is no longer published.`,
    });
  }

  @Get(':game_id/delete')
  async confirmDeletion(@PathId('game_id') game_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const game = await this.games.one(game_id, visitor.user.id);
    if (!game.owned) throw notTheOwner();
    return this.page.deletion(visitor, game);
  }

  @Post(':game_id/delete')
  async delete(@PathId('game_id') game_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const game = await this.games.one(game_id, visitor.user.id);
    if (!game.owned) throw notTheOwner();
    const deleted = await this.attempt(() => this.edits.delete({ game_id }, visitor.by));
    if (deleted instanceof ApiError) return this.page.deletion(visitor, game, sentence(deleted.errors[0]!));
    return seeOther(GAMES_PATH, { message: `${game.title} was deleted.` });
  }

  /** Validates parameters like those of an API request. */
  private validated<Request extends object>(
    parameters: Record<string, unknown>,
    metatype: new () => Request,
  ): Promise<Request> {
    const metadata = {
      type: 'custom',
      metatype: metatype as RequestClass,
      data: PARAMETERS as never,
    } as const;
    return this.parameters.transform(parameters, metadata) as Promise<Request>;
  }

  /** Returns errors about values, because the form shows them. */
  private async attempt<Result>(work: () => Promise<Result>): Promise<Result | ApiError> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ApiError && error.statusCode === 400) return error;
      throw error;
    }
  }
}

const notADeveloper = () =>
  forbidden('Only developers can create games. Ask the store to make you a developer.');
const notTheOwner = () => forbidden('Only the owner of a game can delete it.');
