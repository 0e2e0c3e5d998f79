import { Injectable } from '@nestjs/common';
import { Settings } from '../config/settings';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { hashApiKey } from './api-key-hash';
import type { Credential } from './credential';
import { ROOT_SCOPES } from './scopes';

const LIVE_KEY = statement(
  'live_api_key',
  'SELECT id, user_id, scopes FROM api_keys WHERE key_hash = $1 AND revoked_at IS NULL',
);

@Injectable()
export class ApiKeysService {
  private readonly pepper: Buffer;

  constructor(
    private readonly database: Database,
    settings: Settings,
  ) {
    this.pepper = Buffer.from(settings.API_KEY_PEPPER ?? '');
  }

  async credentialOf(key: string): Promise<Credential | undefined> {
    const row = await this.database.row<{ id: number; user_id: number; scopes: string[] | null }>(LIVE_KEY, [
      hashApiKey(key, this.pepper),
    ]);
    if (!row) return undefined;
    return {
      type: 'key',
      api_key_id: row.id,
      user_id: row.user_id,
      scopes: row.scopes ? row.scopes.toSorted() : ROOT_SCOPES,
    };
  }
}
