import { createHash, timingSafeEqual } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, type Repository } from 'typeorm';
import { CREDENTIAL_TTL_MS } from '../../auth/keys/credential-cache';
import { LookupCache } from '../../platform/database/lookup-cache';
import { MINUTE_MS } from '../../platform/formats/durations';
import { OperatorError } from '../../platform/errors/operator-error';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { read, statement } from '../../platform/database/statement';
import type { Operator } from '../../platform/server/request';
import { hashApiKey, keyHint, newOperatorToken, listPeppers } from '../../auth/keys/api-key';
import { OperatorToken } from './operator-token.entity';
import { ALL_PERMISSIONS, type OperatorPermission } from './operator-may';

/** All live tokens are kept in memory. */
export const MAX_LIVE = 100;
const MAX_LISTED_TOKENS = 1000;

interface LiveToken extends Operator {
  id: number;
  hash: string;
  /** Null: never used. */
  unused_ms: number | null;
}

interface LiveTokens {
  /** Time at which the tokens were requested, by `Clock.monotonic()`. */
  readAt: number;
  byHash: Map<string, LiveToken>;
}

const LIVE_TOKENS = read<LiveToken>(
  'live_operator_tokens',
  `SELECT id, name, rights AS permissions, encode(token_hash, 'hex') AS hash,
          (extract(epoch FROM now() - last_used_at) * 1000)::float8 AS unused_ms
   FROM operator_tokens WHERE revoked_at IS NULL ORDER BY id LIMIT ${MAX_LIVE}`,
);

const LOCK_TOKENS = statement(
  'lock_operator_tokens',
  'LOCK TABLE operator_tokens IN SHARE ROW EXCLUSIVE MODE',
);

@Injectable()
export class OperatorTokensService {
  private readonly log = new Logger(OperatorTokensService.name);
  private readonly peppers: string[];
  private readonly setting: Buffer | undefined;
  /** All live tokens, under one key. */
  private readonly live: LookupCache<LiveTokens>;
  /** The time when a use was last written, by ID. */
  private readonly uses = new Map<number, number>();

  constructor(
    private readonly database: Database,
    @InjectRepository(OperatorToken) private readonly tokens: Repository<OperatorToken>,
    private readonly clock: Clock,
    settings: Settings,
  ) {
    const { OPERATOR_TOKEN } = settings;
    this.setting = OPERATOR_TOKEN === undefined ? undefined : computeDigest(OPERATOR_TOKEN);
    this.peppers = listPeppers(settings);
    this.live = new LookupCache(clock, { max: 1, ttl_ms: CREDENTIAL_TTL_MS });
  }

  async exist(): Promise<boolean> {
    return this.setting !== undefined || (await this.liveTokens()).byHash.size > 0;
  }

  async find(text: string): Promise<Operator | undefined> {
    if (text === '') return undefined;
    if (this.setting && timingSafeEqual(computeDigest(text), this.setting))
      return { id: null, name: 'OPERATOR_TOKEN', permissions: ALL_PERMISSIONS };
    const { byHash, readAt } = await this.liveTokens();
    if (byHash.size === 0) return undefined;
    const hashes = this.peppers.map((pepper) => hashApiKey(text, pepper));
    const token = hashes.map((hash) => byHash.get(hash.toString('hex'))).find(Boolean);
    if (token) this.used(token, readAt, hashes[0]!);
    return token;
  }

  /** Returns the only copy of the token: only its hash is stored. */
  async create(name: string, permissions: readonly OperatorPermission[]): Promise<string> {
    const token = newOperatorToken();
    await this.database.transaction(async (db) => {
      await this.database.rows(LOCK_TOKENS, {}, db);
      if (await db.existsBy(OperatorToken, { name, revoked_at: IsNull() }))
        throw new OperatorError(`A token named ${name} already exists. Revoke it, or choose another name.`);
      if ((await db.countBy(OperatorToken, { revoked_at: IsNull() })) >= MAX_LIVE)
        throw new OperatorError(
          `There are already ${MAX_LIVE} tokens, which is the limit. Revoke one that is no longer used.`,
        );
      await db.insert(OperatorToken, {
        name,
        token_hash: hashApiKey(token, this.peppers[0]!),
        hint: keyHint(token),
        permissions: [...permissions],
      });
    });
    this.live.clear();
    return token;
  }

  /** Newest first, revoked ones included. */
  list(): Promise<OperatorToken[]> {
    return this.tokens.find({ order: { id: 'DESC' }, take: MAX_LISTED_TOKENS });
  }

  async revoke(name: string): Promise<boolean> {
    const { affected } = await this.tokens.update(
      { name, revoked_at: IsNull() },
      { revoked_at: () => 'now()' },
    );
    this.live.clear();
    return affected === 1;
  }

  private liveTokens(): Promise<LiveTokens> {
    return this.live.find('', async () => {
      const readAt = this.clock.monotonic();
      const rows = await this.database.rows(LIVE_TOKENS, {});
      return { value: { readAt, byHash: new Map(rows.map((row) => [row.hash, row])) } };
    });
  }

  /** Uses are recorded to the minute, and with them the hash under the current pepper. */
  private used({ id, unused_ms }: LiveToken, readAt: number, token_hash: Buffer): void {
    const now = this.clock.monotonic();
    if (now - (this.uses.get(id) ?? readAt - (unused_ms ?? Infinity)) < MINUTE_MS) return;
    this.uses.set(id, now);
    this.tokens
      .update({ id }, { last_used_at: () => 'now()', token_hash })
      .catch(({ message }: Error) =>
        this.log.warn(`The use of an operator token was not written: ${message}`),
      );
  }
}

// Tokens are compared by digest, because timingSafeEqual needs equal lengths.
const computeDigest = (token: string) => createHash('sha256').update(token).digest();
