import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { Settings } from '../platform/config/settings';
import { StoreLinks } from '../platform/config/store-links';
import { gameUserResponse } from '../games/embedded-game.dto';
import { gameResponse } from '../games/game.dto';
import { GamesService } from '../games/games.service';
import { ListStreams, type LongResponse } from '../platform/output/list-streams';
import { userResponse } from '../users/user.dto';
import { UsersService } from '../users/users.service';
import { ProfileResponse, ProfileGamesResponse } from './profile.dto';

@ApiTags('Profile')
@Controller('profile')
export class ProfileController {
  constructor(
    private readonly users: UsersService,
    private readonly games: GamesService,
    private readonly lists: ListStreams,
    private readonly links: StoreLinks,
    private readonly settings: Settings,
  ) {}

  @Get()
  @ApiOperation({ summary: "Get the user's profile" })
  @Scopes('profile:me')
  @ApiOkResponse({ type: ProfileResponse })
  async profile(@CurrentCredential() credential: Credential): Promise<ProfileResponse> {
    return { user: userResponse(await this.users.findOwner(credential), this.links) };
  }

  @Get('games')
  @ApiOperation({ summary: 'List the games that the user can edit', description: 'Newest first.' })
  @Scopes('profile:games')
  @ApiOkResponse({ type: ProfileGamesResponse })
  async profileGames(
    @CurrentCredential() { user_id }: Credential,
  ): Promise<ProfileGamesResponse | LongResponse> {
    if (this.settings.LENIENT_CLIENTS) {
      const rows = await this.games.editableWithOwners(user_id);
      return this.lists.response('games', rows, (row) => ({
        ...gameResponse(row, this.links),
        user_id: row.owner_id,
        user: gameUserResponse(row, this.links),
      }));
    }
    const rows = await this.games.editableBy(user_id);
    return this.lists.response('games', rows, (row) => gameResponse(row, this.links));
  }
}
