import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ApiKeysService } from '../../auth/api-keys.service';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';
import { failure } from '../../http/failure';

/** A user's consent to an application, as it stands. */
export interface Grant {
  id: number;
  user_id: number;
  client_id: string;
  scopes: string[];
}

export interface GrantRow {
  id: number;
  client_id: string;
  name: string;
  owner: string;
  scopes: string[];
  created_at: string;
  last_used_at: string | null;
}

const GRANT = statement<Grant>(
  'oauth_grant',
  'SELECT id, user_id, client_id, scopes FROM oauth_grants WHERE user_id = $1 AND client_id = $2 AND revoked_at IS NULL',
);
const LISTED = `
  SELECT g.id, g.client_id, a.name, u.username AS owner, g.scopes, g.created_at,
         (SELECT max(k.last_used_at) FROM api_keys k WHERE k.grant_id = g.id) AS last_used_at
  FROM oauth_grants g JOIN oauth_applications a USING (client_id) JOIN users u ON u.id = a.user_id
  WHERE g.user_id = $1 AND g.revoked_at IS NULL`;
const GRANTS_OF = statement<GrantRow>('oauth_grants_of', `${LISTED} ORDER BY g.id DESC LIMIT 1000`);
const GRANT_OF = statement<GrantRow>('oauth_grant_of', `${LISTED} AND g.id = $2`);

@Injectable()
export class GrantsService {
  constructor(
    private readonly database: Database,
    private readonly keys: ApiKeysService,
  ) {}

  grantTo(user_id: number, client_id: string): Promise<Grant | undefined> {
    return this.database.row(GRANT, [user_id, client_id]);
  }

  grantsOf(user_id: number): Promise<GrantRow[]> {
    return this.database.rows(GRANTS_OF, [user_id]);
  }

  grantOf(user_id: number, id: number): Promise<GrantRow | undefined> {
    return this.database.row(GRANT_OF, [user_id, id]);
  }

  /** Adds to what was granted before, and holds the row until the transaction ends. */
  async give(db: EntityManager, user_id: number, client_id: string, scopes: string[]): Promise<Grant> {
    // From the application's row, which may have been deleted while its user was thinking.
    const [grant] = await db.query<Grant[]>(
      `INSERT INTO oauth_grants AS given (user_id, client_id, scopes)
       SELECT $1, client_id, $3 FROM oauth_applications WHERE client_id = $2
       ON CONFLICT (user_id, client_id) WHERE revoked_at IS NULL DO UPDATE
       SET scopes = ARRAY(SELECT DISTINCT unnest(given.scopes || excluded.scopes) ORDER BY 1)
       RETURNING id, user_id, client_id, scopes`,
      [user_id, client_id, scopes],
    );
    if (!grant) throw failure(404, 'This application is no longer registered.');
    return grant;
  }

  /** What hangs on a grant is made and taken back by whoever holds its row: one after the other. */
  async hold(db: EntityManager, id: number): Promise<Grant | undefined> {
    const [grant] = await db.query<Grant[]>(
      'SELECT id, user_id, client_id, scopes FROM oauth_grants WHERE id = $1 AND revoked_at IS NULL FOR NO KEY UPDATE',
      [id],
    );
    return grant;
  }

  /** All tokens that the application holds by it open nothing from then on. */
  async revoke(user_id: number, id: number): Promise<Grant | undefined> {
    const revoked = await this.database.transaction(async (db) => {
      const grant = await this.hold(db, id);
      if (grant?.user_id !== user_id) return undefined;
      await db.query('UPDATE oauth_grants SET revoked_at = now() WHERE id = $1', [id]);
      await db.query('UPDATE api_keys SET revoked_at = now() WHERE grant_id = $1 AND revoked_at IS NULL', [
        id,
      ]);
      await db.query('DELETE FROM oauth_refresh_tokens WHERE grant_id = $1', [id]);
      return grant;
    });
    this.keys.forget();
    return revoked;
  }
}
