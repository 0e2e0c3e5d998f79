import { Injectable } from '@nestjs/common';
import { Settings } from '../config/settings';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { ApiKeyUses } from './api-key-uses';
import { hashApiKey } from './api-key-hash';
import { mayBeApiKey } from './api-key';
import type { Credential } from './credential';
import { ROOT_SCOPES } from './scopes';

/** Whether a row of api_keys opens anything, as a condition for a WHERE clause. */
export const isLive = (key: string) =>
  `${key}.revoked_at IS NULL AND (${key}.expires_at IS NULL OR ${key}.expires_at > now())`;

export const LIVE_KEYS = statement(
  'live_api_keys',
  `SELECT k.key_hash::text AS hash, k.id, k.user_id, k.scopes,
          k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute' AS use_is_news
   FROM api_keys k WHERE k.key_hash = ANY ($1) AND ${isLive('k')}`,
);

interface LiveKey {
  hash: string;
  id: number;
  user_id: number;
  scopes: string[] | null;
  use_is_news: boolean;
}

interface Question {
  /** Under the current pepper first. */
  hashes: string[];
  resolve: (key: LiveKey | undefined) => void;
  reject: (error: unknown) => void;
}

/** Finds keys by their text: one statement, shared by all requests that ask in the same turn of the event loop. */
@Injectable()
export class ApiKeyLookup {
  private readonly peppers: Buffer[];
  private questions: Question[] = [];

  constructor(
    private readonly database: Database,
    private readonly uses: ApiKeyUses,
    settings: Settings,
  ) {
    this.peppers = [settings.API_KEY_PEPPER ?? '', ...settings.API_KEY_PEPPER_PREVIOUS].map((pepper) =>
      Buffer.from(pepper),
    );
  }

  async credentialOf(text: string): Promise<Credential | undefined> {
    if (!mayBeApiKey(text)) return undefined;
    const hashes = this.peppers.map((pepper) => asBytea(hashApiKey(text, pepper)));
    const key = await this.liveKey(hashes);
    if (!key) return undefined;
    const { hash, id, user_id, scopes, use_is_news } = key;
    if (use_is_news) this.uses.used(id);
    if (hash !== hashes[0]) this.uses.rehash(id, hashes[0]!);
    return {
      type: 'key',
      api_key_id: id,
      user_id,
      scopes: scopes ? [...new Set(scopes)].sort() : ROOT_SCOPES,
    };
  }

  private liveKey(hashes: string[]): Promise<LiveKey | undefined> {
    return new Promise((resolve, reject) => {
      if (this.questions.length === 0) setImmediate(() => void this.ask());
      this.questions.push({ hashes, resolve, reject });
    });
  }

  private async ask(): Promise<void> {
    const questions = this.questions;
    this.questions = [];
    try {
      const hashes = questions.flatMap((question) => question.hashes);
      const keys = await this.database.rows<LiveKey & { id: number }>(LIVE_KEYS, [hashes]);
      const found = new Map(keys.map((key) => [key.hash, key]));
      for (const { hashes, resolve } of questions)
        resolve(hashes.map((hash) => found.get(hash)).find((key) => key !== undefined));
    } catch (error) {
      for (const { reject } of questions) reject(error);
    }
  }
}

const asBytea = (hash: Buffer) => `\\x${hash.toString('hex')}`;
