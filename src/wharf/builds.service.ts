import { Injectable } from '@nestjs/common';
import { Batch } from '../database/batch';
import { Database } from '../database/database';
import { type Statement, statement } from '../database/statement';
import { type Cacheable, cacheable } from '../http/cacheable';
import { failure } from '../http/failure';
import { LatestAnswer, LatestRequest } from './latest.dto';
import { lasting, ShortMemory } from '../database/short-memory';
import { UnderWay } from '../database/under-way';
import { BuildChanges } from './build-changes';

// Of many questions at once, the n-th of which is row n of `asked`. A private game is no game.
const newestFinishedBuilds = (arrays: string, columns: string, games: string) => `
  SELECT asked.n, b.id IS NOT NULL AS found, b.user_version
  FROM unnest(${arrays}) WITH ORDINALITY AS asked (${columns}, n)
  ${games}
  LEFT JOIN LATERAL (
    SELECT id, user_version FROM builds
    WHERE game_id = g.id AND channel_name = asked.channel_name AND state = 'completed'
    ORDER BY id DESC LIMIT 1) b ON true
  WHERE g.visibility <> 'private'`;

export const NEWEST_BY_GAME = statement(
  'newest_builds_by_game',
  newestFinishedBuilds(
    '$1::bigint[], $2::text[]',
    'game_id, channel_name',
    'JOIN games g ON g.id = asked.game_id',
  ),
);

export const NEWEST_BY_TARGET = statement(
  'newest_builds_by_target',
  newestFinishedBuilds(
    '$1::text[], $2::text[], $3::text[]',
    'username, slug, channel_name',
    // LIMIT: else the planner may read all games of the owner.
    `JOIN users u ON lower(u.username) = lower(asked.username)
  JOIN LATERAL (
    SELECT id, visibility FROM games WHERE user_id = u.id AND slug = asked.slug LIMIT 1) g ON true`,
  ),
);

interface BuildRow {
  n: number;
  found: boolean;
  user_version: string | null;
}

type Missing = 'invalid game' | 'invalid channel';

// In bytes: every installed copy of every game asks, and most of the questions were asked before.
const MOST_REMEMBERED = 48 * 1024 * 1024;
// Measured: what the table and its objects take beside the texts.
const BYTES_AN_ENTRY = 330;
const bytesOf = (address: string, { body, etag }: Cacheable) =>
  BYTES_AN_ENTRY + address.length + body.length + etag.length;
// In milliseconds: what is missing may appear with a new game or user, of which nobody is told.
const MISSING_REMEMBERED = 700;
// Enough for the longest names of a game and a channel, unless most of their characters are escaped.
const LONGEST_ADDRESS = 600;

@Injectable()
export class BuildsService {
  private readonly found: ShortMemory<Cacheable>;
  // Apart, so that questions for what does not exist displace no answer.
  private readonly missing = new ShortMemory<Missing>(lasting(MISSING_REMEMBERED), 1000);
  private readonly underWay = new UnderWay<Cacheable | Missing>();
  private readonly byGame = new Batch((asked: unknown[][]) =>
    this.newestFinishedBuilds(NEWEST_BY_GAME, asked),
  );
  private readonly byTarget = new Batch((asked: unknown[][]) =>
    this.newestFinishedBuilds(NEWEST_BY_TARGET, asked),
  );

  constructor(
    private readonly database: Database,
    changes: BuildChanges,
  ) {
    this.found = new ShortMemory(changes, MOST_REMEMBERED, bytesOf);
  }

  /** The answer to a question that was asked in the same words before. */
  remembered(address: string): Cacheable | undefined {
    return this.found.get(address, performance.now());
  }

  /**
   * The newest finished build of a channel, for anyone: of a game that is not private. `address` is the whole question as
   * it was asked, by which the answer is remembered; undefined: it is not.
   */
  async latest(request: LatestRequest, address: string | undefined): Promise<Cacheable> {
    const answer =
      address === undefined ? await this.newestFinishedBuild(request) : await this.answerTo(request, address);
    if (typeof answer === 'string') throw failure(404, answer);
    return answer;
  }

  private answerTo(
    request: LatestRequest,
    address: string,
  ): Cacheable | Missing | Promise<Cacheable | Missing> {
    return (
      this.remembered(address) ??
      this.missing.get(address, performance.now()) ??
      this.underWay.ask(address, () => this.learn(request, address))
    );
  }

  private async learn(request: LatestRequest, address: string): Promise<Cacheable | Missing> {
    const asked = performance.now();
    const answer = await this.newestFinishedBuild(request);
    if (address.length > LONGEST_ADDRESS) return answer;
    if (typeof answer === 'string') this.missing.set(address, answer, asked);
    else this.found.set(address, answer, asked);
    return answer;
  }

  private newestFinishedBuild({ game_id, target, channel_name }: LatestRequest) {
    if (target === undefined) return this.byGame.ask([game_id, channel_name]);
    return this.byTarget.ask([...target.split('/'), channel_name]);
  }

  private async newestFinishedBuilds(
    statement: Statement,
    questions: unknown[][],
  ): Promise<(Cacheable | Missing)[]> {
    const columns = questions[0]!.map((_, i) => questions.map((question) => question[i]));
    const answers = questions.map((): Cacheable | Missing => 'invalid game');
    const rows = await this.database.rows<BuildRow & { n: number }>(statement, columns);
    for (const { n, found, user_version } of rows)
      answers[n - 1] = found
        ? cacheable({ latest: user_version ?? undefined } satisfies LatestAnswer)
        : 'invalid channel';
    return answers;
  }
}
