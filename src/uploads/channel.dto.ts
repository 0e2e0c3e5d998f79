import { ApiProperty } from '@nestjs/swagger';
import { ExactlyOneOf, Id, NonEmptyText, Pattern, Text } from '../platform/input/parameters';
import { NullableObject } from '../platform/openapi/fields';
import { BuildResponse, buildResponse } from './build.dto';
import { UploadResponse, uploadResponse } from './upload.dto';
import type { ChannelRow } from './upload.row';

@ExactlyOneOf('target', 'game_id')
export class ChannelsRequest {
  @Text('The game as owner/slug, or its ID', { example: 'ash-beetle/brave-arcade', required: false })
  @Pattern(/^([^/]+\/[^/]+|[1-9]\d{0,15})$/, '$property must be of the form user/game, or the ID of a game')
  target?: string;

  @Id('ID of the game', { required: false })
  game_id?: number;
}

export class ChannelRequest extends ChannelsRequest {
  @NonEmptyText('Name of the channel', { example: 'windows' })
  channel_name: string;
}

export class ChannelResponse {
  @ApiProperty({ example: 'windows', description: 'Name of the channel' })
  name: string;

  @ApiProperty({ example: 'windows', description: 'Platforms, separated by commas' })
  tags: string;

  @ApiProperty({ description: 'Upload that players see for the channel' })
  upload: UploadResponse;

  @NullableObject(BuildResponse, 'Newest completed build; null if there is none')
  head: BuildResponse | null;

  @NullableObject(BuildResponse, 'Newer build that is not completed; null if there is none')
  pending: BuildResponse | null;
}

export class ChannelsResponse {
  @ApiProperty({
    type: 'object',
    additionalProperties: { $ref: '#/components/schemas/ChannelResponse' },
    description: 'Channels by name',
  })
  channels: Record<string, ChannelResponse>;
}

export class OneChannelResponse {
  @ApiProperty({ description: 'The channel' })
  channel: ChannelResponse;
}

export class WharfStatusResponse {
  @ApiProperty({ example: true, description: 'Always true' })
  success: true;
}

export const channelResponse = ({ name, upload, head, pending }: ChannelRow): ChannelResponse => ({
  name,
  tags: upload.traits
    .filter((trait) => trait.startsWith('p_'))
    .map((trait) => trait.slice(2))
    .join(','),
  upload: uploadResponse(upload),
  head: head && buildResponse(head),
  pending: pending && buildResponse(pending),
});
