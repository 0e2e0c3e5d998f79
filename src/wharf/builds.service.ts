import { Injectable } from '@nestjs/common';
import { showsBuilds } from '../games/visibility';
import { Clock } from '../platform/config/clock';
import { Database } from '../platform/database/database';
import { LookupCache } from '../platform/database/lookup-cache';
import { read } from '../platform/database/statement';
import { apiError } from '../platform/errors/api-error';
import { type BodyWithEtag, withEtag } from '../platform/output/response';
import { type Build, isPublished } from './build.entity';
import type { LatestRequest, LatestResponse } from './latest.dto';

interface BuildRow extends Pick<Build, 'user_version'> {
  /** Whether the channel has a completed build. */
  found: boolean;
}

// A private game counts as missing.
const newestBuild = (game: string, channel_name: string) => `
  SELECT b.id IS NOT NULL AS found, b.user_version
  FROM ${game}
  LEFT JOIN LATERAL (
    SELECT o.id, o.user_version FROM builds o
    WHERE o.game_id = g.id AND o.channel_name = ${channel_name} AND ${isPublished('o')}
    ORDER BY o.id DESC LIMIT 1) b ON true
  WHERE ${showsBuilds('g')}`;

export const NEWEST_BY_GAME = read<BuildRow>(
  'newest_build_by_game',
  `${newestBuild('games g', '$channel_name')} AND g.id = $game_id`,
);

// Without LIMIT, the planner may read all games of the owner.
export const NEWEST_BY_TARGET = read<BuildRow>(
  'newest_build_by_target',
  `${newestBuild(
    `users u
  JOIN LATERAL (SELECT id, visibility FROM games WHERE user_id = u.id AND slug = $slug LIMIT 1) g ON true`,
    '$channel_name',
  )} AND lower_ascii(u.username) = lower_ascii($username)`,
);

const NEWEST_BUILD_TTL_MS = 1000;
// More than one replica serves within NEWEST_BUILD_TTL_MS.
const MAX_CACHED_BUILDS = 20_000;

const cacheKey = ({ game_id, target, channel_name }: LatestRequest) =>
  `${target ?? game_id}\n${channel_name}`;

/** SQL that deletes the builds of the games `t`, which the FROM item `games` selects. */
export const deleteBuilds = (games: string) => `DELETE FROM builds b USING ${games} WHERE b.game_id = t.id`;

@Injectable()
export class BuildsService {
  private readonly newest: LookupCache<BodyWithEtag>;

  constructor(
    private readonly database: Database,
    clock: Clock,
  ) {
    this.newest = new LookupCache(clock, { max: MAX_CACHED_BUILDS, ttl_ms: NEWEST_BUILD_TTL_MS });
  }

  /** Whether the cache has the response, or had it recently. */
  isCached(request: LatestRequest): boolean {
    return this.newest.getStale(cacheKey(request)) !== undefined;
  }

  /** The newest completed build of a channel, of a game that is not private. */
  latest(request: LatestRequest): Promise<BodyWithEtag> {
    return this.newest.find(cacheKey(request), async () => ({ value: await this.find(request) }));
  }

  // Missing builds aren't cached: a flood of invented names would displace the others.
  private async find({ game_id, target, channel_name }: LatestRequest): Promise<BodyWithEtag> {
    const [username, slug] = target?.split('/') ?? [];
    const build = await (target === undefined
      ? this.database.row(NEWEST_BY_GAME, { game_id, channel_name })
      : this.database.row(NEWEST_BY_TARGET, { username, slug, channel_name }));
    if (!build?.found) throw apiError(404, build ? 'invalid channel' : 'invalid game');
    return withEtag({ latest: build.user_version ?? undefined } satisfies LatestResponse);
  }
}
