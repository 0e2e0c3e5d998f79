import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/config/clock';
import { batched } from '../platform/database/batched';
import { Database } from '../platform/database/database';
import { read, type Statement } from '../platform/database/statement';
import { type Cacheable, cacheable } from '../platform/output/response';
import { apiError } from '../platform/errors/api-error';
import { LatestResponse, LatestRequest } from './latest.dto';
import { showsBuilds } from '../games/visibility';
import { ExpiringCache, maxAge, SingleFlight } from '../platform/cache/expiring-cache';
import type { Build } from './build.entity';
import { BuildChanges } from './build-changes';

// Serves many requests at once; `n` is the index of a request in the arrays. A private game counts as missing.
const newestFinishedBuilds = (arrays: string, columns: string, games: string) => `
  SELECT asked.n, b.id IS NOT NULL AS found, b.user_version
  FROM unnest(${arrays}) WITH ORDINALITY AS asked (${columns}, n)
  ${games}
  LEFT JOIN LATERAL (
    SELECT id, user_version FROM builds
    WHERE game_id = g.id AND channel_name = asked.channel_name AND state = 'completed'
    ORDER BY id DESC LIMIT 1) b ON true
  WHERE ${showsBuilds('g')}`;

export const NEWEST_BY_GAME = read<BuildRow>(
  'newest_builds_by_game',
  newestFinishedBuilds(
    '$1::bigint[], $2::text[]',
    'game_id, channel_name',
    'JOIN games g ON g.id = asked.game_id',
  ),
);

export const NEWEST_BY_TARGET = read<BuildRow>(
  'newest_builds_by_target',
  newestFinishedBuilds(
    '$1::text[], $2::text[], $3::text[]',
    'username, slug, channel_name',
    // LIMIT: otherwise the planner may read all games of the owner.
    `JOIN users u ON lower_ascii(u.username) = lower_ascii(asked.username)
  JOIN LATERAL (
    SELECT id, visibility FROM games WHERE user_id = u.id AND slug = asked.slug LIMIT 1) g ON true`,
  ),
);

interface BuildRow extends Pick<Build, 'user_version'> {
  n: number;
  found: boolean;
}

interface NewestBuild {
  version: Build['user_version'];
}

type Missing = 'invalid game' | 'invalid channel';

// In bytes.
const CACHE_SIZE = 48 * 1024 * 1024;
// Measured: the memory of an entry without its texts.
const BYTES_PER_ENTRY = 160;
const bytesOf = (url: string, version: string | null) =>
  BYTES_PER_ENTRY + url.length + (version?.length ?? 0);
// Few, because most games number their versions in the same way.
const MAX_CACHED = 5000;
// In milliseconds. Short, because new games and users are not recorded as changes.
const MISSING_MAX_AGE = 700;
// The length of URLs that are cached: enough for the longest names without escapes.
const MAX_URL = 600;

@Injectable()
export class BuildsService {
  // Versions and not responses, which would double the memory of an entry.
  private readonly found: ExpiringCache<string | null>;
  // Separate, so that requests for unknown games evict no responses.
  private readonly missing = new ExpiringCache<Missing>(maxAge(MISSING_MAX_AGE), 1000);
  private readonly responses = new ExpiringCache<Cacheable>(maxAge(Infinity), MAX_CACHED);
  private readonly loading = new SingleFlight<NewestBuild | Missing>();
  private readonly byGame = batched((asked: readonly unknown[][]) =>
    this.newestFinishedBuilds(NEWEST_BY_GAME, asked),
  );
  private readonly byTarget = batched((asked: readonly unknown[][]) =>
    this.newestFinishedBuilds(NEWEST_BY_TARGET, asked),
  );

  constructor(
    private readonly database: Database,
    changes: BuildChanges,
    private readonly clock: Clock,
  ) {
    this.found = new ExpiringCache(changes, CACHE_SIZE, bytesOf);
  }

  /** The cached response to a request with the same URL. */
  cached(url: string): Cacheable | undefined {
    const version = this.found.get(url, this.clock.monotonic());
    return version === undefined ? undefined : this.responseOf(version);
  }

  /** The newest completed build of a channel, of a game that is not private. `url`: the key of the cache, if any. */
  async latest(request: LatestRequest, url: string | undefined): Promise<Cacheable> {
    const cached = url === undefined ? undefined : this.cached(url);
    if (cached) return cached;
    const build = await (url === undefined
      ? this.newestFinishedBuild(request)
      : (this.missing.get(url, this.clock.monotonic()) ??
        this.loading.run(url, () => this.load(request, url))));
    if (typeof build === 'string') throw apiError(404, build);
    return this.responseOf(build.version);
  }

  private async load(request: LatestRequest, url: string): Promise<NewestBuild | Missing> {
    const since = this.clock.monotonic();
    const build = await this.newestFinishedBuild(request);
    if (url.length > MAX_URL) return build;
    if (typeof build === 'string') this.missing.set(url, build, since);
    else this.found.set(url, build.version, since);
    return build;
  }

  /** Responses depend only on the version, so they never expire. An empty text stands for no version. */
  private responseOf(version: string | null): Cacheable {
    const known = this.responses.peek(version ?? '');
    if (known) return known;
    const response = cacheable({ latest: version ?? undefined } satisfies LatestResponse);
    this.responses.set(version ?? '', response, this.clock.monotonic());
    return response;
  }

  private newestFinishedBuild({ game_id, target, channel_name }: LatestRequest) {
    if (target === undefined) return this.byGame.load([game_id, channel_name]);
    return this.byTarget.load([...target.split('/'), channel_name]);
  }

  private async newestFinishedBuilds(
    statement: Statement<BuildRow>,
    requests: readonly unknown[][],
  ): Promise<(NewestBuild | Missing)[]> {
    const columns = requests[0]!.map((_, i) => requests.map((request) => request[i]));
    const builds = requests.map((): NewestBuild | Missing => 'invalid game');
    const rows = await this.database.rows(statement, columns);
    for (const { n, found, user_version } of rows)
      builds[n - 1] = found ? { version: user_version } : 'invalid channel';
    return builds;
  }
}
