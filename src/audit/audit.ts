import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { BackgroundWriter } from '../platform/database/background-writer';
import { Database } from '../platform/database/database';
import { statement } from '../platform/database/statement';
import { RequestLog } from '../platform/observability/request-log';
import { AuditEventRow } from './audit-event.entity';

/** Each event, and when it is recorded; also shown on the page docs/reference/observability.md. */
export const AUDIT_EVENTS = {
  'user.signed_in':
    'A user signed in on the account pages. Includes the ID of the identity if an identity provider signed the user in.',
  'user.signed_out': 'A user signed out.',
  'user.sign_in_failed':
    'The password was wrong, or the account or network must wait before the next attempt. Includes the network of the client.',
  'user.created': 'A person created an account on /setup, or by signing in with the identity provider.',
  'identity.connected': 'A user connected an account of the identity provider.',
  'identity.disconnected': 'A user disconnected an account of the identity provider.',
  'user.password_set': 'A user, a link or a command set the password of an account.',
  'user.signed_up': 'A person signed up: the link to the new account was used.',
  'user.renamed': 'A user changed their username or display name.',
  'user.sessions_ended': 'A user signed out everywhere.',
  'email.added': 'A user added an email address, which is not verified yet.',
  'email.removed': 'A user removed an email address.',
  'email.verified': 'A user verified an email address with a link.',
  'email.made_primary': 'A user chose a different primary email address.',
  'link.created':
    'A request or a command created a link into an account. Includes its purpose, unless a person had requested it.',
  'user.exported': 'The data stored about a person was exported.',
  'user.erased': 'A person was erased. Includes the number of rows.',
  'api_key.created': 'A page or a command created an API key.',
  'api_key.revoked': 'A page or a command revoked an API key.',
  'jwt.created':
    'A JWT was created for the launch of a game. A request is only logged; the command is also stored.',
  'jwt.revoked': 'A user or a command revoked all JWTs of an account.',
  'app.created': 'A user registered an app.',
  'app.updated': 'A user changed an app.',
  'app.deleted': 'A user deleted an app.',
  'grant.created': 'A user allowed an app to act on their behalf. Includes the scopes.',
  'grant.reused':
    'An app received access again under an earlier consent of the user. Includes the scopes. Only logged.',
  'grant.revoked': 'A user revoked the access of an app.',
  'game.created': 'A request, a page or a command created a game.',
  'game.updated': 'A request or a page changed a game. Includes the names of the changed fields.',
  'game.deleted': 'A request or a page deleted a game.',
  'upload.created': 'A page listed a new file of a game, or a new file of a channel.',
  'upload.updated': 'A page changed a listed file: its name, platforms, order or visibility.',
  'upload.replaced': 'A page stored a new file in place of a listed one.',
  'upload.deleted': 'A page deleted a listed file.',
  'purchase.created': 'A request or a command sold a game or a bundle.',
  'purchase.refunded': 'A request, a command or a seller refunded a purchase.',
  'download_key.created':
    'A seller or a command created download keys without a purchase. Includes their number.',
  'download_key.revoked': 'A seller revoked a download key that came without a purchase.',
  'download_key.claimed': 'A player redeemed an unclaimed download key, or claimed a game of a bundle.',
  'import.completed': 'An import completed. Includes the number of records of each type.',
  'records.deleted': 'An import or a command deleted records. Includes the number of each type.',
  'webhook.created': 'A user or a command added a webhook. The row, but not the log line, includes its host.',
  'webhook.deleted': 'A user or a command deleted a webhook.',
  'webhook.secret_rotated': 'A user replaced the signing secret of a webhook.',
  'webhook.disabled': 'A webhook was disabled because its receiver responded with 410 Gone.',
  'webhook.enabled': 'A page or a command re-enabled a disabled webhook.',
  'signing_key.created': 'A command created a signing key.',
  'signing_key.revoked': 'A command revoked a signing key and, with it, all JWTs that it signed.',
  'operator_token.created': 'A command created an operator token.',
  'operator_token.revoked': 'A command revoked an operator token.',
} as const;

export interface AuditEvent {
  event: keyof typeof AUDIT_EVENTS;
  /** Undefined for commands of an operator. */
  request_id?: string;
  user_id?: number;
  operator?: string;
  api_key_id?: number | null;
  kid?: string;
  client_id?: string;
  scopes?: string[];
  purpose?: string;
  game_id?: number;
  download_key_id?: number;
  upload_id?: number;
  /** The names of changed fields. */
  fields?: string[];
  count?: number;
  counts?: object;
  currency?: string;
  webhook_id?: number;
  host?: string;
  reason?: 'wrong' | 'wait';
  /** The IP address or network of the client. */
  network?: string;
  identity_id?: number;
}

const STORE_EVENTS = statement(
  'store_audit_events',
  `INSERT INTO audit_events (event, user_id, request_id, details)
   SELECT event, user_id, request_id, details
   FROM jsonb_to_recordset($events) AS e (event text, user_id bigint, request_id text, details jsonb)`,
);

/** Logs and stores security events. No event contains a password, a key or a token. */
@Injectable()
export class Audit implements BeforeApplicationShutdown {
  private readonly writer = new BackgroundWriter<AuditEvent>({
    intervalMs: 20,
    batchSize: 100,
    write: (batch) => this.store(batch),
    failed: (error, batch) =>
      batch.forEach(({ request_id }) => this.log.failed(request_id ?? 'audit', error)),
  });

  constructor(
    @InjectRepository(AuditEventRow) private readonly events: Repository<AuditEventRow>,
    private readonly log: RequestLog,
    private readonly database: Database,
  ) {}

  /** Logs the event without storing it: for events that are too frequent to store. */
  note(entry: AuditEvent): void {
    // The host of a seller's webhook may name the seller, and an erasure doesn't reach the log.
    this.log.audited({ ...entry, host: undefined });
  }

  /** Logs and stores the event. An error while storing is only logged, because the action has happened. */
  record(entry: AuditEvent): void {
    this.note(entry);
    this.writer.add(entry);
  }

  private store(batch: AuditEvent[]) {
    const rows = batch.map(({ event, user_id, request_id, ...details }) => ({
      event,
      user_id,
      request_id,
      details,
    }));
    return this.database.rows(STORE_EVENTS, { events: JSON.stringify(rows) });
  }

  newest({ user_id, event, count }: { user_id?: number; event?: string; count: number }) {
    const where = { ...(user_id !== undefined && { user_id }), ...(event !== undefined && { event }) };
    return this.events.find({ where, order: { id: 'DESC' }, take: count });
  }

  /** Waits until every event so far is stored. */
  flush(): Promise<void> {
    return this.writer.flush();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.flush();
  }
}
