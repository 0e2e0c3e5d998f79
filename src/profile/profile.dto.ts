import { ApiProperty } from '@nestjs/swagger';
import { GameResponse } from '../games/game.dto';
import { UserResponse } from '../users/user.dto';

export class ProfileResponse {
  @ApiProperty({ type: UserResponse, description: 'User of the credential' })
  user: UserResponse;
}

export class ProfileGamesResponse {
  @ApiProperty({ type: [GameResponse], description: 'Newest first' })
  games: GameResponse[];
}
