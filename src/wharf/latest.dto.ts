import { ApiPropertyOptional } from '@nestjs/swagger';
import { ExactlyOneOf, Id, NonEmptyText, Pattern, Text } from '../platform/input/parameters';

@ExactlyOneOf('game_id', 'target')
export class LatestRequest {
  @NonEmptyText('Name of the channel', { example: 'windows' })
  channel_name: string;

  @Id('ID of the game', { required: false })
  game_id?: number;

  @Text('Game as `owner/slug`; the username is case-insensitive', {
    example: 'ash-beetle/brave-arcade',
    required: false,
  })
  @Pattern(/^[^/]+\/[^/]+$/, '$property must be of the form user/game')
  target?: string;
}

export class LatestResponse {
  @ApiPropertyOptional({
    description: 'Version of the newest completed build; absent if it has none',
    example: '1.2.0',
  })
  latest?: string;
}
