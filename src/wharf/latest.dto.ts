import { ApiPropertyOptional } from '@nestjs/swagger';
import { Matches } from 'class-validator';
import {
  ExactlyOneOf,
  IntegerParameter,
  SelectorParameter,
  TextParameter,
} from '../platform/http/parameters';

@ExactlyOneOf('game_id', 'target')
export class LatestRequest {
  @SelectorParameter('Name of the channel', { required: true, example: 'windows' })
  channel_name: string;

  @IntegerParameter('Id of the game')
  game_id?: number;

  @TextParameter('The game by its owner and slug; the name of the owner in any case', {
    example: 'ash-beetle/brave-arcade',
  })
  @Matches(/^[^/]+\/[^/]+$/, { message: 'target must be of the form user/game' })
  target?: string;
}

export class LatestResponse {
  @ApiPropertyOptional({
    description: 'Version of the newest finished build, as its developer named it; absent when it has none',
    example: '1.2.0',
  })
  latest?: string;
}
