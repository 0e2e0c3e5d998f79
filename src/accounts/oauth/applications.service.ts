import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { ApiKeysService } from '../../auth/api-keys.service';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';

export interface Application {
  client_id: string;
  name: string;
  redirect_uris: string[];
  scopes: string[];
  implicit_allowed: boolean;
  created_at: string;
  /** Whose application it is. */
  owner: string;
}

export type ApplicationFields = Pick<Application, 'name' | 'redirect_uris' | 'scopes' | 'implicit_allowed'>;

export const MAX_APPLICATIONS = 50;

const COLUMNS = `a.client_id, a.name, a.redirect_uris, a.scopes, a.implicit_allowed, a.created_at, u.username AS owner`;
const FROM = 'oauth_applications a JOIN users u ON u.id = a.user_id';
const APPLICATION = statement<Application>(
  'oauth_application',
  `SELECT ${COLUMNS} FROM ${FROM} WHERE a.client_id = $1`,
);
const APPLICATIONS_OF = statement<Application>(
  'oauth_applications_of',
  `SELECT ${COLUMNS} FROM ${FROM} WHERE a.user_id = $1 ORDER BY a.created_at DESC, a.client_id LIMIT 1000`,
);
const APPLICATION_OF = statement<Application>(
  'oauth_application_of',
  `SELECT ${COLUMNS} FROM ${FROM} WHERE a.client_id = $2 AND a.user_id = $1`,
);
const MAKE = statement(
  'make_oauth_application',
  `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes, implicit_allowed)
   VALUES ($1, $2, $3, $4, $5, $6)`,
);
const CHANGE = statement(
  'change_oauth_application',
  `UPDATE oauth_applications SET name = $3, redirect_uris = $4, scopes = $5, implicit_allowed = $6
   WHERE client_id = $2 AND user_id = $1 RETURNING client_id`,
);

/** What people registered to act for others. */
@Injectable()
export class ApplicationsService {
  constructor(
    private readonly database: Database,
    private readonly keys: ApiKeysService,
  ) {}

  application(client_id: string): Promise<Application | undefined> {
    return this.database.row(APPLICATION, [client_id]);
  }

  applicationsOf(user_id: number): Promise<Application[]> {
    return this.database.rows(APPLICATIONS_OF, [user_id]);
  }

  applicationOf(user_id: number, client_id: string): Promise<Application | undefined> {
    return this.database.row(APPLICATION_OF, [user_id, client_id]);
  }

  async make(user_id: number, fields: ApplicationFields): Promise<string> {
    const client_id = randomBytes(16).toString('hex');
    await this.database.rows(MAKE, [client_id, user_id, ...valuesOf(fields)]);
    return client_id;
  }

  async change(user_id: number, client_id: string, fields: ApplicationFields): Promise<boolean> {
    return (await this.database.row(CHANGE, [user_id, client_id, ...valuesOf(fields)])) !== undefined;
  }

  /** With all that was granted to it: its tokens open nothing from then on. */
  async delete(user_id: number, client_id: string): Promise<boolean> {
    const deleted = await this.database.transaction(async (db) => {
      const owned: unknown[] = await db.query(
        'SELECT FROM oauth_applications WHERE client_id = $2 AND user_id = $1 FOR UPDATE',
        [user_id, client_id],
      );
      if (owned.length === 0) return false;
      // Tokens are made by whoever holds the grant: none is being made now, and none can be any more.
      await db.query('SELECT FROM oauth_grants WHERE client_id = $1 ORDER BY id FOR UPDATE', [client_id]);
      await db.query(
        `UPDATE api_keys SET revoked_at = now() WHERE revoked_at IS NULL
         AND grant_id IN (SELECT id FROM oauth_grants WHERE client_id = $1)`,
        [client_id],
      );
      await db.query('DELETE FROM oauth_applications WHERE client_id = $1', [client_id]);
      return true;
    });
    this.keys.forget();
    return deleted;
  }
}

const valuesOf = ({ name, redirect_uris, scopes, implicit_allowed }: ApplicationFields) => [
  name,
  redirect_uris,
  scopes,
  implicit_allowed,
];
