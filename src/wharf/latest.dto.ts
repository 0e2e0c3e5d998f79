import { ApiPropertyOptional } from '@nestjs/swagger';
import { ExactlyOneOf, Id, NonEmptyText, Pattern, Text } from '../platform/http/parameters';

@ExactlyOneOf('game_id', 'target')
export class LatestRequest {
  @NonEmptyText('Name of the channel', { example: 'windows' })
  channel_name: string;

  @Id('Id of the game', { required: false })
  game_id?: number;

  @Text('The game by its owner and slug; the name of the owner in any case', {
    example: 'ash-beetle/brave-arcade',
    required: false,
  })
  @Pattern(/^[^/]+\/[^/]+$/, '$property must be of the form user/game')
  target?: string;
}

export class LatestResponse {
  @ApiPropertyOptional({
    description: 'Version of the newest finished build, as its developer named it; absent when it has none',
    example: '1.2.0',
  })
  latest?: string;
}
