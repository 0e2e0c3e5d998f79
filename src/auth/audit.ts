import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { RequestLog } from '../http/request-log';

export type AuditEvent = {
  /** Absent: an operator did it, with a command. */
  request_id?: string;
  user_id?: number;
} & (
  | { event: 'signed in' | 'signed out' | 'password set' | 'tokens revoked'; user_id: number }
  | { event: 'sign-in refused'; reason: 'wrong' | 'wait'; address: string }
  | { event: 'api key made' | 'api key revoked'; user_id?: number; api_key_id: number }
  | { event: 'token made'; user_id: number; api_key_id: number | null; game_id: number }
  | { event: 'signing key made' | 'signing key revoked'; kid: string }
  | {
      event: 'application made' | 'application changed' | 'application deleted';
      user_id: number;
      client_id: string;
    }
  | { event: 'grant given' | 'access given'; user_id: number; client_id: string; scopes: string[] }
  | { event: 'grant revoked'; user_id: number; client_id: string }
);

export interface AuditRow {
  id: number;
  at: string;
  event: string;
  user_id: number | null;
  request_id: string | null;
  details: Record<string, unknown>;
}

const RECORD = statement(
  'record_audit_event',
  'INSERT INTO audit_events (event, user_id, request_id, details) VALUES ($1, $2, $3, $4)',
);

const NEWEST = statement<AuditRow>(
  'newest_audit_events',
  `SELECT id, at, event, user_id, request_id, details FROM audit_events
   WHERE ($1::bigint IS NULL OR user_id = $1) AND ($2::text IS NULL OR event = $2)
   ORDER BY id DESC LIMIT $3`,
);

// Beyond it the database is not there to take them, and the log has the lines.
const MOST_PENDING = 1000;

/** What changes who may do what: a line in the log and, but for tokens of launched games, a row that nobody changes. Never a password, a key or a token. */
@Injectable()
export class Audit implements BeforeApplicationShutdown {
  private readonly pending = new Set<Promise<unknown>>();

  constructor(
    private readonly database: Database,
    private readonly log: RequestLog,
  ) {}

  /** For what happens too often for a row each: a line in the log alone. */
  note(entry: AuditEvent): void {
    this.log.audited(entry);
  }

  /** What it tells of has happened already: it is not undone because this could not be stored. */
  record(entry: AuditEvent): void {
    this.note(entry);
    if (this.pending.size >= MOST_PENDING) return;
    const { event, user_id = null, request_id = null, ...details } = entry;
    const stored = this.store([event, user_id, request_id, JSON.stringify(details)])
      .catch((error: unknown) => this.log.failed(request_id ?? 'audit', error))
      .finally(() => this.pending.delete(stored));
    this.pending.add(stored);
  }

  newest({
    user_id = null,
    event = null,
    count,
  }: {
    user_id?: number | null;
    event?: string | null;
    count: number;
  }) {
    return this.database.rows(NEWEST, [user_id, event, count]);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.pending);
  }

  private async store(values: unknown[]): Promise<void> {
    await this.database.rows(RECORD, values);
  }
}
