import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { Events } from '../../events/events';
import { BackgroundWriter } from '../../platform/database/background-writer';
import { Database } from '../../platform/database/database';
import { bind, type BoundStatement, statement } from '../../platform/database/statement';
import { serviceUnavailable } from '../../platform/errors/api-error';
import { ANNOUNCE_REQUEST, LINKS_ARE_SENT } from './link-events';

interface SignUp {
  email: string;
  username: string;
  password_hash: string;
  browser_hash: Buffer;
}

/**
 * Allows one event per email address and purpose in five minutes. A newer request replaces the older one,
 * whose ID then expires.
 */
const REPLACE_OLDER_REQUEST = `
  ON CONFLICT (email, purpose) DO UPDATE SET id = excluded.id, user_id = excluded.user_id, username = excluded.username,
    password_hash = excluded.password_hash, browser_hash = excluded.browser_hash, created_at = now(), used_at = NULL
  WHERE old.created_at <= now() - interval '5 minutes'
  RETURNING id`;

// The name is a username or a verified email address. The link is sent to the latter, or to the primary one.
const FORGOTTEN_PASSWORD = statement<{ id: number }>(
  'request_password_link',
  `INSERT INTO link_requests AS old (purpose, user_id, email)
   SELECT 'set_password', account.id, address.email
   FROM (
     SELECT id FROM users WHERE lower_ascii(username) = lower_ascii($name)
     UNION ALL SELECT user_id FROM user_emails WHERE email = lower_ascii($name) AND verified) account
   CROSS JOIN LATERAL (
     SELECT email FROM user_emails WHERE user_id = account.id AND verified
     ORDER BY email <> lower_ascii($name), NOT is_primary, email LIMIT 1) address ${REPLACE_OLDER_REQUEST}`,
);

/** If an account has verified this email address, the link sets its password instead. */
const SIGN_UP = statement<{ id: number }>(
  'request_sign_up_link',
  `INSERT INTO link_requests AS old (purpose, user_id, email, username, password_hash, browser_hash)
   SELECT CASE WHEN e.user_id IS NULL THEN 'sign_up' ELSE 'set_password' END, e.user_id, lower_ascii($email),
     CASE WHEN e.user_id IS NULL THEN $username::text END, CASE WHEN e.user_id IS NULL THEN $password_hash::text END,
     CASE WHEN e.user_id IS NULL THEN $browser_hash::bytea END
   FROM (SELECT) one LEFT JOIN user_emails e ON e.email = lower_ascii($email) AND e.verified ${REPLACE_OLDER_REQUEST}`,
);

/** Stores no request for an email address that an account has verified. */
const VERIFICATION = statement<{ id: number }>(
  'request_verification_link',
  `INSERT INTO link_requests AS old (purpose, user_id, email)
   SELECT 'verify_email', own.user_id, own.email FROM user_emails own
   WHERE own.user_id = $user_id AND own.email = lower_ascii($email)
     AND NOT EXISTS (SELECT FROM user_emails e WHERE e.email = own.email AND e.verified) ${REPLACE_OLDER_REQUEST}`,
);

/**
 * Turns the links that people request on pages into events for the store's mailer. No request waits for that,
 * so the page responds in the same time whether or not an account exists.
 */
@Injectable()
export class LinkRequests implements BeforeApplicationShutdown {
  private readonly log = new Logger('Links');
  private readonly writer = new BackgroundWriter<BoundStatement<{ id: number }>>({
    intervalMs: 250,
    batchSize: 100,
    write: (batch) => this.store(batch),
    failed: (error) => this.failed(error),
  });

  constructor(
    private readonly database: Database,
    private readonly events: Events,
  ) {}

  /** Whether the store has a mailer. Without one, pages say how to reach the store. */
  async areSent(): Promise<boolean> {
    return (await this.database.row(LINKS_ARE_SENT, {}))!.sent;
  }

  forgottenPassword(name: string): void {
    this.add(bind(FORGOTTEN_PASSWORD, { name }));
  }

  signUp({ email, username, password_hash, browser_hash }: SignUp): void {
    this.add(bind(SIGN_UP, { email, username, password_hash, browser_hash }));
  }

  verification(user_id: number, email: string): void {
    this.add(bind(VERIFICATION, { user_id, email }));
  }

  /** Stores all requests so far. */
  flush(): Promise<void> {
    return this.writer.flush();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.flush();
  }

  /**
   * Responds with 503 while too many requests wait for the database, whether or not the account exists:
   * otherwise some users would wait for a link that is never sent.
   */
  private add(request: BoundStatement<{ id: number }>): void {
    if (!this.writer.add(request)) throw serviceUnavailable();
  }

  private async store(batch: BoundStatement<{ id: number }>[]): Promise<void> {
    // Each request is stored separately, so that a failed one doesn't discard those of other people.
    for (const request of batch) await this.storeOne(request).catch((error: Error) => this.failed(error));
    this.events.announced();
  }

  private storeOne(request: BoundStatement<{ id: number }>): Promise<void> {
    return this.database.transaction(async (db) => {
      const getRows = await this.database.execute([request], db);
      const [stored] = getRows(request.statement);
      if (stored) await this.database.rows(ANNOUNCE_REQUEST, { request_id: stored.id }, db);
    });
  }

  private failed({ message }: Error): void {
    this.log.warn(`A request for a link could not be stored: ${message}`);
  }
}
