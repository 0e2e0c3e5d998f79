import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database';
import { longRead, read } from '../platform/database/statement';
import { apiError } from '../platform/errors/api-error';
import { invalidGame } from '../games/errors';
import { isPublished } from '../wharf/build.entity';
import { canEdit } from '../games/visibility';
import type { ChannelsRequest } from './channel.dto';
import { type Downloader, isFor } from './uploads.service';
import {
  BUILD_ROW,
  type BuildRow,
  type ChannelRow,
  type FlatUploadRow,
  uploadRow,
  uploadsWith,
} from './upload.row';

const MAX_CHANNELS = 500;

const GAME_BY_ID = read<{ id: number }>(
  'edited_game',
  `SELECT g.id FROM games g WHERE g.id = $1 AND ${canEdit('g', '$2')}`,
);

const GAME_BY_TARGET = read<{ id: number }>(
  'edited_game_by_target',
  // LIMIT: otherwise the planner may read all games of the owner.
  `SELECT g.id FROM users u
   JOIN LATERAL (SELECT id, user_id FROM games WHERE user_id = u.id AND slug = $3 LIMIT 1) g ON true
   WHERE lower_ascii(u.username) = lower_ascii($1) AND ${canEdit('g', '$2')}`,
);

/**
 * $2: one channel; null: all. Channels without an upload, such as those of imported builds, are left out: existing
 * clients read the upload of each channel.
 */
const UPLOADS = longRead<{ name: string } & FlatUploadRow>(
  'channel_uploads',
  `SELECT c.channel_name AS name, f.*
   FROM (SELECT DISTINCT channel_name FROM uploads
         WHERE game_id = $1 AND channel_name IS NOT NULL AND ($2::text IS NULL OR channel_name = $2)
         ORDER BY 1 LIMIT ${MAX_CHANNELS}) c
   CROSS JOIN LATERAL (
     ${uploadsWith('f.game_id = $1 AND f.channel_name = c.channel_name')} ORDER BY f.id LIMIT 1) f
   ORDER BY 1`,
  'game $1',
);

const newestBuild = (condition: string) =>
  `SELECT * FROM builds o
   WHERE o.game_id = $1 AND o.channel_name = c.channel_name AND ${condition} ORDER BY o.id DESC LIMIT 1`;

/** The newest completed build of each channel, and a newer one that isn't. */
const BUILDS = longRead<BuildRow & { channel_name: string }>(
  'channel_heads',
  `SELECT b.channel_name, ${BUILD_ROW}
   FROM unnest($2::text[]) AS c (channel_name)
   LEFT JOIN LATERAL (${newestBuild(isPublished('o'))}) head ON true
   LEFT JOIN LATERAL (${newestBuild(`o.state IN ('started', 'processing')`)}) pending ON true
   JOIN builds b ON b.id = head.id OR (b.id = pending.id AND pending.id > coalesce(head.id, 0))`,
  'game $1',
);

/** Channels of a game, for editors of the game. */
@Injectable()
export class ChannelsService {
  constructor(private readonly database: Database) {}

  async all(request: ChannelsRequest, credential: Downloader): Promise<ChannelRow[]> {
    return this.channels(await this.game(request, credential), null);
  }

  async one(request: ChannelsRequest, channel_name: string, credential: Downloader): Promise<ChannelRow> {
    const [channel] = await this.channels(await this.game(request, credential), channel_name);
    if (!channel) throw apiError(404, 'invalid channel');
    return channel;
  }

  /** The ID of a game that the caller can edit. */
  async game(
    { game_id, target = '' }: Pick<ChannelsRequest, 'game_id' | 'target'>,
    credential: Downloader,
  ): Promise<number> {
    const { user_id } = credential;
    const [owner, slug] = target.split('/');
    const found =
      slug === undefined
        ? await this.database.row(GAME_BY_ID, [game_id ?? Number(owner), user_id])
        : await this.database.row(GAME_BY_TARGET, [owner, user_id, slug]);
    if (!found || !isFor(credential, found.id)) throw invalidGame();
    return found.id;
  }

  private async channels(game_id: number, channel_name: string | null): Promise<ChannelRow[]> {
    const uploads = await this.database.rows(UPLOADS, [game_id, channel_name]);
    const builds = await this.database.rows(BUILDS, [game_id, uploads.map(({ name }) => name)]);
    return uploads.map((row) => {
      const own = builds.filter((build) => build.channel_name === row.name);
      return {
        name: row.name,
        upload: uploadRow(row),
        head: own.find(({ state }) => state === 'completed') ?? null,
        pending: own.find(({ state }) => state !== 'completed') ?? null,
      };
    });
  }
}
