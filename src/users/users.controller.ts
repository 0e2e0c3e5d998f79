import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access/access';
import { StoreLinks } from '../platform/config/store-links';
import { Params } from '../platform/input/params.decorator';
import { Fails } from '../platform/server/routes';
import { OneUserResponse, userResponse, UserRequest } from './user.dto';
import { UsersService } from './users.service';

@ApiTags('Users')
@Controller('users')
export class UsersController {
  constructor(
    private readonly users: UsersService,
    private readonly links: StoreLinks,
  ) {}

  @Get(':user_id')
  @ApiOperation({ summary: 'Get the public profile of a user' })
  @Scopes('profile:me')
  @ApiOkResponse({ type: OneUserResponse })
  @Fails(404, 'invalid user')
  async user(@Params() { user_id }: UserRequest): Promise<OneUserResponse> {
    return { user: userResponse(await this.users.find(user_id), this.links) };
  }
}
