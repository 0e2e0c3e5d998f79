import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database';
import { longRead, read, type Statement } from '../platform/database/statement';
import { apiError } from '../platform/errors/api-error';
import { invalidGame } from '../games/errors';
import { canEdit } from '../games/visibility';
import type { ChannelsRequest } from './channel.dto';
import { type Downloader, isFor } from './uploads.service';
import { channelRow, type ChannelRow, type FlatChannelRow, selectChannels } from './upload.row';

/** Limit for the uploads of a game, one for each channel, and for the channels that are listed. */
export const MAX_CHANNELS = 500;
/** Maximum number of channels that a small read returns. */
const MAX_FEW_CHANNELS = 10;

/**
 * The game `g` with this ID, or of the owner with the slug, that the user can edit. Without the LIMIT, the
 * planner may read all games of the owner.
 */
const IS_EDITED_GAME = `g.id = coalesce($game_id, (
     SELECT o.id FROM users u
     JOIN LATERAL (SELECT id FROM games WHERE user_id = u.id AND slug = $slug LIMIT 1) o ON true
     WHERE lower_ascii(u.username) = lower_ascii($owner)))
   AND ${canEdit('g', '$user_id')}`;

const EDITED_GAME_ID = read<{ game_id: number }>(
  'edited_game',
  `SELECT g.id AS game_id FROM games g WHERE ${IS_EDITED_GAME}`,
);

/** A row of nulls: the game has no such channel. */
type FoundChannelRow = { edited_game_id: number } & (FlatChannelRow | { id: null });

/**
 * Channels without an upload, such as those of imported builds, are left out: existing clients read the upload of each
 * channel.
 */
const channelsOfGame = (condition: string, limit = '') =>
  `SELECT g.id AS edited_game_id, c.* FROM games g LEFT JOIN LATERAL (${selectChannels(condition, limit)}) c ON true
   WHERE ${IS_EDITED_GAME} ORDER BY c.channel_name`;

const CHANNEL = read<FoundChannelRow>('channel', channelsOfGame('channel_name = $channel_name'));
const FEW_CHANNELS = read<FoundChannelRow>(
  'few_channels',
  channelsOfGame('channel_name IS NOT NULL', ` LIMIT ${MAX_FEW_CHANNELS + 1}`),
);
const MANY_CHANNELS = longRead<FoundChannelRow>(
  'channels',
  channelsOfGame('channel_name IS NOT NULL', ` LIMIT ${MAX_CHANNELS}`),
  'user $user_id',
);

/** Channels of a game, for editors of the game. */
@Injectable()
export class ChannelsService {
  constructor(private readonly database: Database) {}

  async all(request: ChannelsRequest, credential: Downloader): Promise<ChannelRow[]> {
    const few = await this.find(FEW_CHANNELS, request, credential);
    return few.length <= MAX_FEW_CHANNELS ? few : this.find(MANY_CHANNELS, request, credential);
  }

  async one(request: ChannelsRequest, channel_name: string, credential: Downloader): Promise<ChannelRow> {
    const [channel] = await this.find(CHANNEL, request, credential, channel_name);
    if (!channel) throw apiError(404, 'invalid channel');
    return channel;
  }

  /** The ID of a game that the user can edit. */
  async game(request: ChannelsRequest, credential: Downloader): Promise<number> {
    const found = await this.database.row(EDITED_GAME_ID, gameValues(request, credential));
    if (!found || !isFor(credential, found.game_id)) throw invalidGame();
    return found.game_id;
  }

  private async find(
    statement: Statement<FoundChannelRow>,
    request: ChannelsRequest,
    credential: Downloader,
    channel_name?: string,
  ): Promise<ChannelRow[]> {
    const rows = await this.database.rows(statement, { ...gameValues(request, credential), channel_name });
    if (!rows[0] || !isFor(credential, rows[0].edited_game_id)) throw invalidGame();
    return rows.flatMap((row) => (row.id === null ? [] : channelRow(row)));
  }
}

function gameValues({ game_id, target = '' }: ChannelsRequest, { user_id }: Downloader) {
  const [owner, slug] = target.split('/');
  return slug === undefined
    ? { game_id: game_id ?? Number(owner), owner: null, slug: null, user_id }
    : { game_id: null, owner, slug, user_id };
}
