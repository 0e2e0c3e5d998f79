import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, IsNull, type Repository } from 'typeorm';
import { ApiKeysService } from '../keys/api-keys.service';
import { Database } from '../../platform/database/database';
import { statement } from '../../platform/database/statement';
import { apiError } from '../../platform/errors/api-error';
import { OauthGrant } from '../accounts/oauth-grant.entity';
import { OauthRefreshToken } from './oauth-refresh-token.entity';

/** The permissions that a user allows on a consent page. */
export type Consent = Pick<OauthGrant, 'scopes' | 'may_start_games' | 'implicit_allowed'>;

/** A user's current consent to an application. */
export type Grant = Consent & Pick<OauthGrant, 'id' | 'user_id' | 'client_id'>;

export interface ListedGrant extends OauthGrant {
  name: string;
  owner: string;
  last_used_at: string | null;
}

// Rendering a page of grants blocks the event loop.
const MAX_LISTED_GRANTS = 500;

// Selects and locks the app, which may have been deleted while the page was open, or is being deleted.
const ADD_GRANT = statement<Grant>(
  'add_oauth_grant',
  `INSERT INTO oauth_grants AS stored (user_id, client_id, scopes, may_start_games, implicit_allowed)
   SELECT $user_id, client_id, $scopes, may_start_games AND $may_start_games, $implicit_allowed
   FROM oauth_applications WHERE client_id = $client_id FOR KEY SHARE
   ON CONFLICT (user_id, client_id) WHERE revoked_at IS NULL DO UPDATE
   SET scopes = ARRAY(SELECT DISTINCT unnest(stored.scopes || excluded.scopes) ORDER BY 1),
       may_start_games = stored.may_start_games OR excluded.may_start_games,
       implicit_allowed = stored.implicit_allowed OR excluded.implicit_allowed
   RETURNING id, user_id, client_id, scopes, may_start_games, implicit_allowed`,
);

@Injectable()
export class GrantsService {
  constructor(
    private readonly database: Database,
    @InjectRepository(OauthGrant) private readonly grants: Repository<OauthGrant>,
    private readonly keys: ApiKeysService,
  ) {}

  grantTo(user_id: number, client_id: string): Promise<Grant | null> {
    return this.grants.findOneBy({ user_id, client_id, revoked_at: IsNull() });
  }

  listGrants(user_id: number): Promise<ListedGrant[]> {
    return this.listed(user_id).orderBy('g.id', 'DESC').limit(MAX_LISTED_GRANTS).getRawMany();
  }

  findGrant(user_id: number, id: number): Promise<ListedGrant | undefined> {
    return this.listed(user_id).andWhere({ id }).getRawOne();
  }

  /** Adds to the user's earlier consent, and locks the row until the transaction ends. */
  async add(
    db: EntityManager,
    user_id: number,
    client_id: string,
    { scopes, may_start_games, implicit_allowed }: Consent,
  ): Promise<Grant> {
    const values = { user_id, client_id, scopes, may_start_games, implicit_allowed };
    const grant = await this.database.row(ADD_GRANT, values, db);
    if (!grant) throw apiError(404, 'This app is no longer registered.');
    return grant;
  }

  /** Locks a live grant, and loads its app. Tokens are issued and revoked only under this lock. */
  lock(db: EntityManager, id: number): Promise<OauthGrant | null> {
    return db
      .createQueryBuilder(OauthGrant, 'g')
      .innerJoinAndSelect('g.application', 'a')
      .where({ id, revoked_at: IsNull() })
      .setLock('for_no_key_update', undefined, ['g'])
      .getOne();
  }

  async revoke(user_id: number, id: number): Promise<Grant | undefined> {
    const revoked = await this.database.transaction(
      async (db) => {
        const grant = await this.lock(db, id);
        if (grant?.user_id !== user_id) return undefined;
        await db.update(OauthGrant, { id }, { revoked_at: () => 'now()' });
        const keys = await this.keys.revokeIn(db, { grant_id: id });
        await db.delete(OauthRefreshToken, { grant_id: id });
        return { grant, keys };
      },
      { concurrencyKey: `user ${user_id}` },
    );
    if (revoked) this.keys.forget(revoked.keys);
    return revoked?.grant;
  }

  private listed(user_id: number) {
    return this.grants
      .createQueryBuilder('g')
      .innerJoin('g.application', 'a')
      .innerJoin('a.user', 'u')
      .select([
        'g.*',
        'a.name AS name',
        'u.username AS owner',
        '(SELECT max(k.last_used_at) FROM api_keys k WHERE k.grant_id = g.id) AS last_used_at',
      ])
      .where({ user_id, revoked_at: IsNull() });
  }
}
