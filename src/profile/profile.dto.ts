import { ApiProperty } from '@nestjs/swagger';
import { GameAnswer } from '../games/game.dto';
import { UserAnswer } from '../users/user.dto';

export class ProfileAnswer {
  @ApiProperty({ type: UserAnswer, description: 'Whom the credential acts for' })
  user: UserAnswer;
}

export class ProfileGamesAnswer {
  @ApiProperty({ type: [GameAnswer], description: 'Newest first' })
  games: GameAnswer[];
}
