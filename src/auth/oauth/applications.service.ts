import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Raw, type Repository } from 'typeorm';
import { ApiKeysService } from '../keys/api-keys.service';
import { Database } from '../../platform/database/database';
import { statement } from '../../platform/database/statement';
import { lockUser } from '../accounts/lock-user';
import { OauthApplication } from '../accounts/oauth-application.entity';

export type ApplicationFields = Pick<
  OauthApplication,
  'name' | 'redirect_uris' | 'scopes' | 'implicit_allowed' | 'may_start_games'
>;

export const MAX_APPLICATIONS = 50;
const MAX_LISTED_APPLICATIONS = 1000;

const LOCK_GRANTS = statement(
  'lock_grants_of_application',
  'SELECT FROM oauth_grants WHERE client_id = $client_id ORDER BY id FOR UPDATE',
);

/** The owner of the app to which an API key was issued; NULL: the key is the user's own. */
export const selectApplicationOwner = (api_key_id: string) => `(
  SELECT a.user_id FROM api_keys k
  JOIN oauth_grants gr ON gr.id = k.grant_id
  JOIN oauth_applications a ON a.client_id = gr.client_id
  WHERE k.id = ${api_key_id})`;

@Injectable()
export class ApplicationsService {
  constructor(
    private readonly database: Database,
    @InjectRepository(OauthApplication) private readonly applications: Repository<OauthApplication>,
    private readonly keys: ApiKeysService,
  ) {}

  /** Finds an app, with the username of its owner. */
  application(client_id: string): Promise<OauthApplication | null> {
    return this.applications
      .createQueryBuilder('a')
      .innerJoin('a.user', 'u')
      .addSelect(['u.id', 'u.username'])
      .where({ client_id })
      .getOne();
  }

  listApplications(user_id: number): Promise<OauthApplication[]> {
    const order = { created_at: 'DESC', client_id: 'ASC' } as const;
    return this.applications.find({ where: { user_id }, order, take: MAX_LISTED_APPLICATIONS });
  }

  findApplication(user_id: number, client_id: string): Promise<OauthApplication | null> {
    return this.applications.findOneBy({ user_id, client_id });
  }

  /** Returns the new client ID, or undefined if the user already has MAX_APPLICATIONS. */
  create(user_id: number, fields: ApplicationFields): Promise<string | undefined> {
    return this.database.transaction(
      async (db) => {
        await lockUser(db, user_id);
        if ((await db.countBy(OauthApplication, { user_id })) >= MAX_APPLICATIONS) return undefined;
        const client_id = randomBytes(16).toString('hex');
        await db.insert(OauthApplication, { client_id, user_id, ...fields });
        return client_id;
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }

  async update(user_id: number, client_id: string, fields: ApplicationFields): Promise<boolean> {
    return (await this.applications.update({ user_id, client_id }, fields)).affected === 1;
  }

  async delete(user_id: number, client_id: string): Promise<boolean> {
    const revoked = await this.database.transaction(
      async (db) => {
        const lock = { mode: 'pessimistic_write' } as const;
        if (!(await db.findOne(OauthApplication, { where: { user_id, client_id }, lock }))) return undefined;
        // Issuing a token locks the grant first, so no token can be issued from here on.
        await this.database.rows(LOCK_GRANTS, { client_id }, db);
        const keys = await this.keys.revokeIn(db, { grant_id: grantsTo(client_id) });
        await db.delete(OauthApplication, { client_id });
        return keys;
      },
      { concurrencyKey: `user ${user_id}` },
    );
    if (revoked) this.keys.forget(revoked);
    return revoked !== undefined;
  }
}

/** SQL condition for `grant_id`: a grant to the app. */
export const grantsTo = (client_id: string) =>
  Raw((column) => `${column} IN (SELECT id FROM oauth_grants WHERE client_id = :client_id)`, { client_id });
