import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { RequestLog } from '../http/logger';
import { AuditEventRow } from './audit-event.entity';

export type AuditEvent = {
  /** Absent: an operator did it, with a command. */
  request_id?: string;
  user_id?: number;
} & (
  | { event: 'signed in' | 'signed out' | 'password set' | 'tokens revoked'; user_id: number }
  | { event: 'sign-in refused'; reason: 'wrong' | 'wait'; address: string }
  | { event: 'api key made' | 'api key revoked'; user_id?: number; api_key_id: number }
  | { event: 'token made'; user_id: number; api_key_id: number | null; game_id: number }
  | { event: 'operator token made' | 'operator token revoked'; token: string }
  | { event: 'signing key made' | 'signing key revoked'; kid: string }
  | {
      event: 'application made' | 'application changed' | 'application deleted';
      user_id: number;
      client_id: string;
    }
  | { event: 'grant given' | 'access given'; user_id: number; client_id: string; scopes: string[] }
  | { event: 'grant revoked'; user_id: number; client_id: string }
  /** Without a token: an operator's command, or the person themselves. */
  | { event: 'person exported' | 'person erased'; token?: string; counts: Record<string, number> }
);

// More means that the database does not answer. The events are in the log all the same.
const MAX_PENDING = 1000;

/** Logs and stores events that change who may do what. No event holds a password, a key or a token. */
@Injectable()
export class Audit implements BeforeApplicationShutdown {
  private readonly pending = new Set<Promise<unknown>>();

  constructor(
    @InjectRepository(AuditEventRow) private readonly events: Repository<AuditEventRow>,
    private readonly log: RequestLog,
  ) {}

  /** Only logs the event: for those too frequent to store. */
  note(entry: AuditEvent): void {
    this.log.audited(entry);
  }

  /** Logs the event and stores it. It has happened already, so a failure to store it is only logged. */
  record(entry: AuditEvent): void {
    this.note(entry);
    if (this.pending.size >= MAX_PENDING) return;
    const { event, user_id, request_id, ...details } = entry;
    const stored = this.events
      .insert({ event, user_id, request_id, details })
      .catch((error: unknown) => this.log.failed(request_id ?? 'audit', error))
      .finally(() => this.pending.delete(stored));
    this.pending.add(stored);
  }

  newest({ user_id, event, count }: { user_id?: number; event?: string; count: number }) {
    const where = { ...(user_id !== undefined && { user_id }), ...(event !== undefined && { event }) };
    return this.events.find({ where, order: { id: 'DESC' }, take: count });
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.pending);
  }
}
