import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Raw, type Repository } from 'typeorm';
import { ApiKeysService } from '../../auth/api-keys.service';
import { Database } from '../../database/database';
import { lockUser } from '../lock-user';
import { OauthApplication } from './oauth-application.entity';

const FIELDS = [
  'name',
  'redirect_uris',
  'scopes',
  'implicit_allowed',
  'may_start_games',
] as const satisfies (keyof OauthApplication)[];

export type ApplicationFields = Pick<OauthApplication, (typeof FIELDS)[number]>;

export interface Application extends ApplicationFields {
  client_id: string;
  created_at: string;
  /** The owner's username. */
  owner: string;
}

export const MAX_APPLICATIONS = 50;
export const MAX_LISTED = 1000;

/** OAuth applications that users registered. */
@Injectable()
export class ApplicationsService {
  constructor(
    private readonly database: Database,
    @InjectRepository(OauthApplication) private readonly applications: Repository<OauthApplication>,
    private readonly keys: ApiKeysService,
  ) {}

  application(client_id: string): Promise<Application | undefined> {
    return this.withOwners().where({ client_id }).getRawOne();
  }

  applicationsOf(user_id: number): Promise<Application[]> {
    return this.withOwners()
      .where({ user_id })
      .orderBy('a.created_at', 'DESC')
      .addOrderBy('a.client_id')
      .limit(MAX_LISTED)
      .getRawMany();
  }

  applicationOf(user_id: number, client_id: string): Promise<Application | undefined> {
    return this.withOwners().where({ user_id, client_id }).getRawOne();
  }

  /** Returns the new client id; undefined: the user has MAX_APPLICATIONS already. */
  make(user_id: number, fields: ApplicationFields): Promise<string | undefined> {
    return this.database.transaction(async (db) => {
      await lockUser(db, user_id);
      if ((await db.countBy(OauthApplication, { user_id })) >= MAX_APPLICATIONS) return undefined;
      const client_id = randomBytes(16).toString('hex');
      await db.insert(OauthApplication, { client_id, user_id, ...fields });
      return client_id;
    });
  }

  async change(user_id: number, client_id: string, fields: ApplicationFields): Promise<boolean> {
    return (await this.applications.update({ user_id, client_id }, fields)).affected === 1;
  }

  /** Deletes an application with its grants, and revokes its tokens. */
  async delete(user_id: number, client_id: string): Promise<boolean> {
    const revoked = await this.database.transaction(async (db) => {
      const lock = { mode: 'pessimistic_write' } as const;
      if (!(await db.findOne(OauthApplication, { where: { user_id, client_id }, lock }))) return undefined;
      // Issuing a token locks the grant first: no token can be issued from here on.
      await db.query('SELECT FROM oauth_grants WHERE client_id = $1 ORDER BY id FOR UPDATE', [client_id]);
      const keys = await this.keys.revokeIn(db, { grant_id: grantsTo(client_id) });
      await db.delete(OauthApplication, { client_id });
      return keys;
    });
    if (revoked) this.keys.forget(revoked);
    return revoked !== undefined;
  }

  private withOwners() {
    return this.applications
      .createQueryBuilder('a')
      .innerJoin('a.user', 'u')
      .select([
        ...(['client_id', ...FIELDS, 'created_at'] as const).map((column) => `a.${column} AS ${column}`),
        'u.username AS owner',
      ]);
  }
}

/** As a condition for `grant_id`: a grant to the application. */
export const grantsTo = (client_id: string) =>
  Raw((column) => `${column} IN (SELECT id FROM oauth_grants WHERE client_id = :client_id)`, { client_id });
