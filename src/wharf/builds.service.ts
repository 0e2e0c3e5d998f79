import { Injectable } from '@nestjs/common';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { type Cacheable, cacheable } from '../http/cacheable';
import { failure } from '../http/failure';
import { LatestAnswer, LatestRequest } from './latest.dto';
import { ShortMemory } from '../database/short-memory';

const newestFinishedBuild = (game: string, channel_name: string) => `
  SELECT b.id IS NOT NULL AS found, b.user_version
  FROM ${game}
  LEFT JOIN LATERAL (
    SELECT id, user_version FROM builds
    WHERE game_id = g.id AND channel_name = ${channel_name} AND state = 'completed'
    ORDER BY id DESC LIMIT 1) b ON true
  WHERE g.visibility <> 'private'`;

export const NEWEST_BY_GAME = statement(
  'newest_build_by_game',
  `${newestFinishedBuild('games g', '$2')} AND g.id = $1`,
);

export const NEWEST_BY_TARGET = statement(
  'newest_build_by_target',
  `${newestFinishedBuild('users u JOIN games g ON g.user_id = u.id', '$3')}
    AND lower(u.username) = lower($1) AND g.slug = $2`,
);

interface BuildRow {
  found: boolean;
  user_version: string | null;
}

type Missing = 'invalid game' | 'invalid channel';

// Every installed copy of every game asks: most questions were asked a moment ago. Half a second of memory and the time
// of one statement stay under the second in which a new build is to be seen.
const REMEMBERED = 500;
const MOST_REMEMBERED = 20_000;
// No game and no channel has a longer name.
const LONGEST_NAME = 400;

@Injectable()
export class BuildsService {
  private readonly found = new ShortMemory<Cacheable>(REMEMBERED, MOST_REMEMBERED);
  // Apart, so that questions for what does not exist displace no answer.
  private readonly missing = new ShortMemory<Missing>(REMEMBERED, 1000);
  private readonly asked = new Map<string, Promise<Cacheable | Missing>>();

  constructor(private readonly database: Database) {}

  /** The newest finished build of a channel, for anyone: of a game that is not private. */
  async latest(request: LatestRequest): Promise<Cacheable> {
    const name = `${request.game_id ?? request.target}\0${request.channel_name}`;
    const now = performance.now();
    const answer =
      this.found.get(name, now) ?? this.missing.get(name, now) ?? (await this.ask(name, request));
    if (typeof answer === 'string') throw failure(404, answer);
    return answer;
  }

  /** One question at a time, however many wait for its answer. */
  private ask(name: string, request: LatestRequest): Promise<Cacheable | Missing> {
    let answer = this.asked.get(name);
    if (!answer) {
      answer = this.learn(name, request).finally(() => this.asked.delete(name));
      this.asked.set(name, answer);
    }
    return answer;
  }

  private async learn(name: string, request: LatestRequest): Promise<Cacheable | Missing> {
    const asked = performance.now();
    const answer = await this.newestFinishedBuild(request);
    if (typeof answer !== 'string') this.found.set(name, answer, asked);
    else if (name.length <= LONGEST_NAME) this.missing.set(name, answer, asked);
    return answer;
  }

  private async newestFinishedBuild({ game_id, target, channel_name }: LatestRequest) {
    const build = await (target === undefined
      ? this.database.row<BuildRow>(NEWEST_BY_GAME, [game_id, channel_name])
      : this.database.row<BuildRow>(NEWEST_BY_TARGET, [...target.split('/'), channel_name]));
    if (!build) return 'invalid game';
    if (!build.found) return 'invalid channel';
    return cacheable({ latest: build.user_version ?? undefined } satisfies LatestAnswer);
  }
}
