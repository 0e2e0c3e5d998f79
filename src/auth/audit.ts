import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Database } from '../platform/database/database';
import { statement } from '../platform/database/statement';
import { RequestLog } from '../platform/observability/request-log';
import { AuditEventRow } from './audit-event.entity';

export type OperatorEvent = 'imported' | 'sold' | 'refunded' | 'given' | 'deleted' | 'exported' | 'erased';

type AuditEvent = {
  /** Absent: an operator did it, with a command. */
  request_id?: string;
  user_id?: number;
} & (
  | { event: 'signed in' | 'signed out' | 'password set' | 'tokens revoked'; user_id: number }
  | { event: 'sign-in refused'; reason: 'wrong' | 'wait'; address: string }
  | { event: 'api key made' | 'api key revoked'; user_id?: number; api_key_id: number }
  | { event: 'token made'; user_id: number; api_key_id: number | null; game_id: number }
  | { event: 'operator token made' | 'operator token revoked'; operator: string }
  | {
      event: OperatorEvent;
      /** Absent: a command. */
      operator?: string;
      counts: object;
      currency?: string;
    }
  | { event: 'download_key.claimed'; user_id: number; download_key_id: number }
  | { event: 'webhook added'; webhook_id: number; host: string }
  | { event: 'webhook removed' | 'webhook ended'; webhook_id: number }
  | { event: 'signing key made' | 'signing key revoked'; kid: string }
  | {
      event: 'application made' | 'application changed' | 'application deleted';
      user_id: number;
      client_id: string;
    }
  | { event: 'grant given' | 'access given'; user_id: number; client_id: string; scopes: string[] }
  | { event: 'grant revoked'; user_id: number; client_id: string }
);

/** Each event, and when it is recorded: the page docs/reference/events.md. */
export const EVENTS: Record<AuditEvent['event'], string> = {
  'signed in': 'Somebody signed in on the pages.',
  'signed out': 'Somebody signed out.',
  'sign-in refused': 'A password was wrong, or the address has to wait. Holds the network that tried.',
  'password set': 'A command set the password of an account.',
  'api key made': 'A page or a command made an API key.',
  'api key revoked': 'A page or a command revoked an API key.',
  'token made':
    'A program made a token for the launch of a game, which is in the log alone; or a command made one.',
  'tokens revoked': 'Somebody, or a command, ended all tokens of an account.',
  'operator token made': 'A command made an operator token.',
  'operator token revoked': 'A command revoked an operator token.',
  imported: 'An import was done. Holds how many records of each type.',
  sold: 'A sale was made, by a request or a command.',
  refunded: 'A sale was taken back, by a request or a command.',
  given: 'A command gave somebody a download key without a sale.',
  deleted: 'An import, or a command, deleted records. Holds how many of each type.',
  'download_key.claimed': 'A player redeemed a download key that no account had.',
  exported: 'What is stored about a person was exported.',
  erased: 'A person was erased. Holds how many rows.',
  'webhook added': 'A command added an address that is told of sales. Holds its host.',
  'webhook removed': 'A command removed such an address.',
  'webhook ended': 'Such an address answered 410 Gone, and gets no more messages.',
  'signing key made': 'A command made a key that signs tokens.',
  'signing key revoked': 'A command revoked a key that signs tokens, and with it the tokens that it signed.',
  'application made': 'Somebody registered an application.',
  'application changed': 'Somebody changed an application.',
  'application deleted': 'Somebody deleted an application.',
  'grant given': 'Somebody let an application act for them. Holds the scopes.',
  'access given': 'An application got access again, by what its user had agreed to before. Holds the scopes.',
  'grant revoked': 'Somebody took the access of an application back.',
};

// More means that the database does not answer. The events are in the log all the same.
const MAX_WAITING = 10_000;
const BATCH_SIZE = 100;
/** Milliseconds from one batch to the next, in which events gather: a batch costs as much as a sale. */
const PAUSE = 20;

const STORE = statement(
  'store_audit_events',
  `INSERT INTO audit_events (event, user_id, request_id, details)
   SELECT event, user_id, request_id, details
   FROM jsonb_to_recordset($1) AS e (event text, user_id bigint, request_id text, details jsonb)`,
);

/** Logs and stores events that change who may do what. No event holds a password, a key or a token. */
@Injectable()
export class Audit implements BeforeApplicationShutdown {
  private readonly waiting: AuditEvent[] = [];
  private storing: Promise<void> | undefined;

  constructor(
    @InjectRepository(AuditEventRow) private readonly events: Repository<AuditEventRow>,
    private readonly log: RequestLog,
    private readonly database: Database,
  ) {}

  /** Only logs the event: for those too frequent to store. */
  note(entry: AuditEvent): void {
    this.log.audited(entry);
  }

  /** Logs the event and stores it. It has happened already, so a failure to store it is only logged. */
  record(entry: AuditEvent): void {
    this.note(entry);
    if (this.waiting.length >= MAX_WAITING) return;
    this.waiting.push(entry);
    this.storing ??= this.store().finally(() => (this.storing = undefined));
  }

  /** Those that wait together share a statement: a store sells many times a second. */
  private async store(): Promise<void> {
    for (let batch; (batch = this.waiting.splice(0, BATCH_SIZE)).length > 0;) {
      const rows = batch.map(({ event, user_id, request_id, ...details }) => ({
        event,
        user_id,
        request_id,
        details,
      }));
      try {
        await this.database.rows(STORE, [JSON.stringify(rows)]);
      } catch (error) {
        for (const { request_id } of batch) this.log.failed(request_id ?? 'audit', error);
      }
      if (this.waiting.length < BATCH_SIZE) await sleep(PAUSE);
    }
  }

  newest({ user_id, event, count }: { user_id?: number; event?: string; count: number }) {
    const where = { ...(user_id !== undefined && { user_id }), ...(event !== undefined && { event }) };
    return this.events.find({ where, order: { id: 'DESC' }, take: count });
  }

  /** Waits until every event so far is stored. */
  async flush(): Promise<void> {
    await this.storing;
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.flush();
  }
}
