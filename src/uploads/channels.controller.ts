import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { AnyCredential, Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { ChannelsService } from './channels.service';
import {
  ChannelRequest,
  channelResponse,
  ChannelsRequest,
  ChannelsResponse,
  OneChannelResponse,
  WharfStatusResponse,
} from './channel.dto';

@ApiTags('Builds')
@Controller('wharf')
export class ChannelsController {
  constructor(private readonly channels: ChannelsService) {}

  @Get('status')
  @ApiOperation({ summary: 'Check whether the credential is valid' })
  @AnyCredential()
  @ApiOkResponse({ type: WharfStatusResponse })
  status(): WharfStatusResponse {
    return { success: true };
  }

  @Get('channels')
  @ApiOperation({
    summary: "List a game's channels",
    description:
      'Only for users who can edit the game. At most 500 channels. Channels without an upload are omitted.',
  })
  @Scopes('game:view:uploads')
  @ApiOkResponse({ type: ChannelsResponse })
  @Fails(404, 'invalid game')
  async list(
    @Params() request: ChannelsRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<ChannelsResponse> {
    const rows = await this.channels.all(request, credential);
    return { channels: Object.fromEntries(rows.map((row) => [row.name, channelResponse(row)])) };
  }

  @Get('channels/:channel_name')
  @ApiOperation({
    summary: 'Get a channel of a game',
    description: 'Only for users who can edit the game.',
  })
  @Scopes('game:view:uploads')
  @ApiOkResponse({ type: OneChannelResponse })
  @Fails(404, 'invalid game', 'invalid channel')
  async one(
    @Params() request: ChannelRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<OneChannelResponse> {
    const row = await this.channels.one(request, request.channel_name, credential);
    return { channel: channelResponse(row) };
  }
}
