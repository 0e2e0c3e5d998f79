import { createHmac, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../../audit/audit';
import { deriveKey, sha256 } from '../../auth/accounts/encryption';
import { lockUser } from '../../auth/accounts/lock-user';
import { User } from '../../auth/accounts/user.entity';
import { UserEmail } from '../../auth/accounts/user-email.entity';
import { listPeppers } from '../../auth/keys/api-key';
import { IdempotencyService, type RetryKey } from '../../idempotency/idempotency.service';
import type { Actor } from '../../operator/tokens/actor';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { violatedConstraint } from '../../platform/database/sqlstates';
import { read, statement } from '../../platform/database/statement';
import { apiError } from '../../platform/errors/api-error';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { ServiceUrl } from '../../platform/server/service-url';
import { AccountsService } from '../accounts.service';
import { isErased } from '../../auth/accounts/erased-users';
import { AccountLink } from './account-link.entity';
import type { LinkResponse } from './link.dto';

const LIFETIME = `interval '24 hours'`;
export const EXPIRED_LINKS = `created_at <= now() - ${LIFETIME}`;

/**
 * A link for a forgotten password expires when the account loses its email address, because that address may
 * have become another person's. One that verifies an address expires with the entry of the address.
 */
const hasAddress = (table: string) => `(${table}.email IS NULL OR ${table}.purpose = 'sign_up' OR EXISTS (
  SELECT FROM user_emails e
  WHERE e.user_id = ${table}.user_id AND e.email = ${table}.email AND e.verified = (${table}.purpose = 'set_password')))`;

// A newer link replaces the older one of the same owner and purpose.
const REPLACE = `
  ON CONFLICT (coalesce(user_id::text, email), purpose) DO UPDATE SET id = excluded.id, token_hash = excluded.token_hash,
    email = excluded.email, username = excluded.username, password_hash = excluded.password_hash,
    browser_hash = excluded.browser_hash, created_at = now()
  RETURNING created_at + ${LIFETIME} AS expires_at`;

// An erasure locks the account too: a later link is rejected.
const CREATE_LINK = statement<{ expires_at: string }>(
  'create_account_link',
  `INSERT INTO account_links (token_hash, purpose, user_id)
   SELECT $token_hash, $purpose, u.id FROM users u WHERE u.id = $user_id AND NOT ${isErased('u')} FOR KEY SHARE ${REPLACE}`,
);

/** Null: the request was used or doesn't exist. */
const FULFILL = statement<{ exists: boolean; expires_at: string | null; user_id: number | null }>(
  'fulfill_link_request',
  `WITH request AS (
     UPDATE link_requests r SET used_at = now()
     WHERE id = $request_id AND used_at IS NULL AND NOT ${EXPIRED_LINKS} AND ${hasAddress('r')} RETURNING *
   ), link AS (
     INSERT INTO account_links (token_hash, purpose, user_id, email, username, password_hash, browser_hash)
     SELECT $token_hash, purpose, user_id, email, username, password_hash, browser_hash FROM request ${REPLACE}
   )
   SELECT EXISTS (SELECT FROM link_requests r WHERE id = $request_id AND NOT ${EXPIRED_LINKS} AND ${hasAddress('r')}) AS exists,
     (SELECT expires_at FROM link) AS expires_at, (SELECT user_id FROM request) AS user_id`,
);

export interface FoundLink extends Pick<
  AccountLink,
  'id' | 'purpose' | 'user_id' | 'email' | 'username' | 'browser_hash'
> {
  /** The name of the account; null for a sign-up. */
  account: string | null;
}

const FIND_LINK = read<FoundLink>(
  'account_link',
  `SELECT l.id, l.purpose, l.user_id, l.email, l.username, l.browser_hash, u.username AS account
   FROM account_links l LEFT JOIN users u ON u.id = l.user_id WHERE l.token_hash = $token_hash AND NOT l.${EXPIRED_LINKS} AND ${hasAddress('l')}`,
);

/** Creates and uses links that let people into their accounts. */
@Injectable()
export class LinksService {
  private readonly secret: Buffer;

  constructor(
    private readonly database: Database,
    private readonly idempotency: IdempotencyService,
    private readonly accounts: AccountsService,
    private readonly service: ServiceUrl,
    private readonly audit: Audit,
    settings: Settings,
  ) {
    this.secret = deriveKey(listPeppers(settings)[0]!, 'gamewharf account links');
  }

  /** Creates a link, which the operator delivers. */
  async create(
    request: { user_id: number; purpose: 'set_password' | 'sign_in' },
    by: Actor,
    retry?: RetryKey,
  ): Promise<LinkResponse> {
    const { user_id, purpose } = request;
    const { link, isRepeated } = await this.once(request, retry, async (token_hash, manager) => {
      const row = await this.database.row(CREATE_LINK, { token_hash, purpose, user_id }, manager);
      if (!row) throw apiError(404, 'invalid user');
      return row.expires_at;
    });
    const { operator, request_id } = by;
    if (!isRepeated) this.audit.record({ event: 'link.created', operator, request_id, user_id, purpose });
    return link;
  }

  /** Creates the link that a person requested. A request is fulfilled only once. */
  async fulfill(request: { request_id: number }, by: Actor, retry?: RetryKey): Promise<LinkResponse> {
    let user_id: number | undefined;
    const { link, isRepeated } = await this.once(request, retry, async (token_hash, manager) => {
      const row = (await this.database.row(
        FULFILL,
        { token_hash, request_id: request.request_id },
        manager,
      ))!;
      if (row.expires_at === null)
        throw row.exists ? apiError(409, 'request_id was used') : apiError(404, 'invalid request_id');
      user_id = row.user_id ?? undefined;
      return row.expires_at;
    });
    const { operator, request_id } = by;
    if (!isRepeated) this.audit.record({ event: 'link.created', operator, request_id, user_id });
    return link;
  }

  find(token: string): Promise<FoundLink | undefined> {
    return this.database.row(FIND_LINK, { token_hash: sha256(token) });
  }

  /** Uses up a link that signs in, and returns what must still be true when the session starts. */
  async signIn(link: FoundLink): Promise<Pick<User, 'password_hash'> | undefined> {
    return this.database.transaction(async (db) => {
      if (!(await take(db, link))) return undefined;
      const select = { id: true, password_hash: true } as const;
      return db.findOneOrFail(User, { select, where: { id: link.user_id! } });
    });
  }

  /** Ends all sessions and other links of the account. */
  async setPassword(link: FoundLink, password_hash: string): Promise<boolean> {
    return this.database.transaction(async (db) => {
      // Other changes of the password lock the user before the links, too: otherwise both could wait for each other.
      await lockUser(db, link.user_id!);
      if (!(await take(db, link))) return false;
      await this.accounts.replacePassword(db, link.user_id!, password_hash);
      return true;
    });
  }

  /** `password_hash`: replaces the one that was entered with the request. */
  async signUp(
    link: FoundLink,
    password_hash?: string,
  ): Promise<number | 'used' | 'username taken' | 'email taken'> {
    try {
      return await this.database.transaction(async (db) => {
        const taken = await take(db, link);
        if (!taken) return 'used';
        const { identifiers } = await db.insert(User, {
          username: taken.username!,
          password_hash: password_hash ?? taken.password_hash,
        });
        const { id } = identifiers[0] as Pick<User, 'id'>;
        await db.insert(UserEmail, { user_id: id, email: taken.email!, verified: true, is_primary: true });
        return id;
      });
    } catch (error) {
      const constraint = violatedConstraint(error);
      if (constraint === 'users_username_key') return 'username taken';
      if (constraint === 'user_emails_verified_key') return 'email taken';
      throw error;
    }
  }

  /** Returns false if the link was used, or the email address was removed or verified by another account. */
  async verify(link: FoundLink): Promise<boolean> {
    try {
      return await this.database.transaction(async (db) => {
        const user_id = link.user_id!;
        await lockUser(db, user_id);
        if (!(await take(db, link))) return false;
        // The first verified address is the primary one. An imported one isn't marked, but used as such.
        const [current] = await db.find(UserEmail, {
          where: { user_id, verified: true },
          order: { is_primary: 'DESC', email: 'ASC' },
          take: 1,
        });
        if (current && !current.is_primary)
          await db.update(UserEmail, { user_id, email: current.email }, { is_primary: true });
        const own = { user_id, email: link.email!, verified: false };
        const { affected } = await db.update(UserEmail, own, { verified: true, is_primary: !current });
        return affected === 1;
      });
    } catch (error) {
      const constraint = violatedConstraint(error);
      if (constraint === 'user_emails_verified_key') return false;
      throw error;
    }
  }

  /** A stored response contains the seed of the token, which is worthless without the pepper. */
  private async once(
    request: object,
    retry: RetryKey | undefined,
    work: (token_hash: Buffer, manager?: EntityManager) => Promise<string>,
  ): Promise<{ link: LinkResponse; isRepeated: boolean }> {
    const { response, isRepeated } = await this.idempotency.run(retry, request, async (manager) => {
      const seed = randomUUID();
      return { seed, expires_at: modernTimestamp(await work(sha256(this.deriveToken(seed)), manager)) };
    });
    const { seed, expires_at } = response;
    return {
      link: { url: `${this.service.forLinks}/links/${this.deriveToken(seed)}`, expires_at },
      isRepeated,
    };
  }

  private deriveToken(seed: string): string {
    return createHmac('sha256', this.secret).update(seed).digest('base64url');
  }
}

/** Deletes the link, so that it works once. */
async function take(db: EntityManager, { id }: FoundLink): Promise<AccountLink | undefined> {
  const { raw } = await db
    .createQueryBuilder()
    .delete()
    .from(AccountLink)
    .where({ id })
    .returning('*')
    .execute();
  return (raw as AccountLink[])[0];
}
