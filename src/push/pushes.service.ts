import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { bind, longRead, read, statement } from '../platform/database/statement';
import { apiError, tooMany } from '../platform/errors/api-error';
import { canEdit, editedBy } from '../games/visibility';
import { IdempotencyService, type RetryKey } from '../idempotency/idempotency.service';
import { ChannelsService, MAX_CHANNELS } from '../uploads/channels.service';
import { LOCK_FILE_OWNER } from '../uploads/lock-owner';
import { LOCK_EDITED_GAME } from '../uploads/upload-edits.service';
import { BUILD_ROW } from '../uploads/upload.row';
import { type Downloader, invalidBuild, isFor } from '../uploads/uploads.service';
import type { Build } from '../wharf/build.entity';
import { BuildFailures } from './build-failures.service';
import { traitsForChannel } from './channel-traits';
import {
  type CreateBuildRequest,
  type CreateBuildResponse,
  type FailBuildRequest,
  type ProfileBuildsRequest,
  type PushedBuildRow,
} from './push.dto';

const PUSH_LIFETIME_MS = 24 * 3600 * 1000;
/** Limit for builds of one owner's games that are started or processed. */
export const MAX_UNFINISHED = 50;

const QUOTA = statement<{ unfinished: number; channels: number }>(
  'push_quota',
  `SELECT (SELECT count(*) FROM games og JOIN builds b ON b.game_id = og.id AND b.expires_at IS NOT NULL
           WHERE og.user_id = g.user_id) AS unfinished,
     CASE WHEN EXISTS (SELECT FROM uploads WHERE game_id = g.id AND channel_name = $channel_name) THEN 0
       ELSE (SELECT count(*) FROM uploads WHERE game_id = g.id) END AS channels
   FROM games g WHERE g.id = $game_id`,
);

/** The newest build `b` that upload tools can compare with: its files are stored, and it has a signature. */
const PARENT = `SELECT b.id FROM builds b
   WHERE b.game_id = $game_id AND b.channel_name = $channel_name AND b.state = 'completed' AND b.file_key IS NOT NULL
     AND b.size <= $max_bytes AND EXISTS (
       SELECT FROM build_files f WHERE f.build_id = b.id AND f.type = 'signature' AND f.file_key IS NOT NULL)
   ORDER BY b.id DESC LIMIT 1`;

interface CreatedRow {
  id: number;
  upload_id: number;
  parent_build_id: number | null;
}

const CREATE_BUILD = statement<CreatedRow>(
  'create_pushed_build',
  `WITH build AS (
     INSERT INTO builds (game_id, channel_name, state, user_version, hidden, source, metadata, launch_analysis, expires_at,
       parent_build_id)
     VALUES ($game_id, $channel_name, 'started', $user_version, $hidden, $source, $metadata, $launch_analysis, $expires_at,
       (${PARENT})) RETURNING id, parent_build_id),
   old AS (SELECT min(id) AS id FROM uploads WHERE game_id = $game_id AND channel_name = $channel_name),
   upload AS (
     INSERT INTO uploads (game_id, channel_name, filename, traits, position)
     SELECT $game_id, $channel_name, left(g.slug || '-' || $channel_name, 251) || '.zip', $traits::text[],
       (SELECT coalesce(max(position) + 1, 0) FROM uploads WHERE game_id = $game_id)
     FROM games g CROSS JOIN old WHERE g.id = $game_id AND old.id IS NULL RETURNING id)
   SELECT build.id, build.parent_build_id, coalesce(old.id, upload.id) AS upload_id
   FROM build CROSS JOIN old LEFT JOIN upload ON true`,
);

interface PushedRow extends PushedBuildRow, Pick<Build, 'channel_name'> {
  slug: string;
}

const PUSHED_COLUMNS = `${BUILD_ROW}, b.hidden, b.error`;

const EDITED_BUILD = read<PushedRow>(
  'edited_build',
  `SELECT ${PUSHED_COLUMNS}, b.channel_name, g.slug
   FROM builds b JOIN games g ON g.id = b.game_id WHERE b.id = $build_id AND ${canEdit('g', '$user_id')}`,
);

const PUBLISH = statement<{ id: number }>(
  'publish_build',
  `UPDATE builds SET hidden = false, updated_at = CASE WHEN hidden THEN now() ELSE updated_at END
   WHERE id = $build_id AND state <> 'failed' RETURNING id`,
  'build $build_id',
);

// Reads only the newest builds of each game, because a game can have many.
const OF_PROFILE = longRead<PushedBuildRow>(
  'profile_builds',
  `SELECT ${PUSHED_COLUMNS} FROM (${editedBy('$user_id')}) g (id) CROSS JOIN LATERAL (
     SELECT * FROM builds o
     WHERE o.game_id = g.id
       AND (o.state <> 'started' OR $state = 'started' OR o.id = ANY ($started_build_ids::bigint[]))
       AND CASE $state WHEN '' THEN true WHEN 'live' THEN o.state = 'completed' AND NOT o.hidden
         WHEN 'processing' THEN o.state IN ('started', 'processing') ELSE o.state = $state END
     ORDER BY o.id DESC LIMIT $offset::bigint + $limit::bigint) b
   ORDER BY b.id DESC OFFSET $offset LIMIT $limit`,
  'user $user_id',
);

/** Builds that upload tools push: a patch against the channel's newest build, and a signature of the new one. */
@Injectable()
export class PushesService {
  constructor(
    private readonly database: Database,
    private readonly channels: ChannelsService,
    private readonly failures: BuildFailures,
    private readonly idempotency: IdempotencyService,
    private readonly clock: Clock,
    private readonly settings: Settings,
  ) {}

  async create(
    request: CreateBuildRequest,
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<CreateBuildResponse> {
    const game_id = await this.channels.game({ target: request.target }, credential);
    const { channel, user_version, hidden = false, source, metadata, launch_analysis } = request;
    const { FILES_MAX_BYTES: max_bytes } = this.settings;
    const expires_at = new Date(this.clock.now() + PUSH_LIFETIME_MS);
    return this.idempotency.once(key, request, (manager) =>
      this.database.transaction(
        async (db) => {
          const quota = await this.database.execute(
            [
              bind(LOCK_EDITED_GAME, { game_id, user_id: credential.user_id }),
              bind(LOCK_FILE_OWNER, { game_id }),
              bind(QUOTA, { game_id, channel_name: channel }),
            ],
            db,
          );
          const [{ unfinished = 0, channels = 0 } = {}] = quota(QUOTA);
          if (unfinished >= MAX_UNFINISHED) throw tooMany('too many unfinished builds');
          if (channels >= MAX_CHANNELS) throw tooMany('too many channels');
          const values = {
            game_id,
            channel_name: channel,
            user_version: user_version || null,
            hidden,
            source: source ?? null,
            metadata: metadata ?? null,
            launch_analysis: launch_analysis ?? null,
            expires_at,
            traits: traitsForChannel(channel),
            max_bytes,
          };
          const { id, upload_id, parent_build_id } = (await this.database.row(CREATE_BUILD, values, db))!;
          const parent_build = parent_build_id === null ? undefined : { id: parent_build_id };
          return { build: { id, upload_id, ...(parent_build && { parent_build }) } };
        },
        { manager, concurrencyKey: `user ${credential.user_id}` },
      ),
    );
  }

  /** A build of a game that the user can edit. */
  async require(build_id: number, credential: Downloader): Promise<PushedRow> {
    const build = await this.database.row(EDITED_BUILD, { build_id, user_id: credential.user_id });
    if (!build || !isFor(credential, build.game_id)) throw invalidBuild();
    return build;
  }

  async ofProfile(
    { page, per_page: limit, state, started_build_ids: started = '' }: ProfileBuildsRequest,
    { user_id }: Downloader,
  ): Promise<PushedBuildRow[]> {
    const offset = (page - 1) * limit;
    const started_build_ids = (started.match(/\d+/g) ?? []).map(Number);
    return this.database.rows(OF_PROFILE, { user_id, state: state ?? '', started_build_ids, offset, limit });
  }

  async fail(request: FailBuildRequest, credential: Downloader, key: RetryKey | undefined): Promise<void> {
    const { build_id, message } = request;
    await this.require(build_id, credential);
    await this.idempotency.storedAfter(key, request, async () => {
      await this.failures.fail(build_id, message, { concurrencyKey: `user ${credential.user_id}` });
      return { success: true };
    });
  }

  /** Makes a hidden build the head of its channel, now or when it is completed. */
  async publish(
    request: { build_id: number },
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<void> {
    const { build_id } = request;
    await this.require(build_id, credential);
    await this.idempotency.once(key, request, async (manager) => {
      if (!(await this.database.row(PUBLISH, { build_id }, manager)))
        throw apiError(409, 'the build has failed');
      return { success: true };
    });
  }
}
