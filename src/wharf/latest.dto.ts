import { ApiPropertyOptional } from '@nestjs/swagger';
import { ExactlyOneOf, IntegerParameter, parameter, SelectorParameter } from '../http/parameters';
import { readText, type Reader, Unreadable } from '../http/readers';

const TARGET = /^[^/]+\/[^/]+$/;

const readTarget: Reader<string> = (given) => {
  const text = readText(given);
  return text instanceof Unreadable || TARGET.test(text)
    ? text
    : new Unreadable('must be of the form user/game');
};

const TargetParameter = parameter(readTarget, { type: 'string', pattern: TARGET.source });

@ExactlyOneOf('game_id', 'target')
export class LatestRequest {
  @SelectorParameter('Name of the channel', { required: true, example: 'windows' })
  channel_name: string;

  @IntegerParameter('Id of the game')
  game_id?: number;

  @TargetParameter('The game by its owner and slug; the name of the owner in any case', {
    example: 'leaf/x-moon',
  })
  target?: string;
}

export class LatestAnswer {
  @ApiPropertyOptional({
    description: 'Version of the newest finished build, as its developer named it; absent when it has none',
    example: '1.2.0',
  })
  latest?: string;
}
