import { Injectable } from '@nestjs/common';
import { RequestLog } from '../http/request-log';

export type AuditEvent = {
  request_id: string;
  user_id?: number;
} & (
  | { event: 'signed in' | 'signed out'; user_id: number }
  | { event: 'sign-in refused'; reason: 'wrong' | 'wait'; address: string }
  | { event: 'api key made' | 'api key revoked'; user_id: number; api_key_id: number }
  | {
      event: 'application made' | 'application changed' | 'application deleted';
      user_id: number;
      client_id: string;
    }
  | { event: 'grant given' | 'access given'; user_id: number; client_id: string; scopes: string[] }
  | { event: 'grant revoked'; user_id: number; client_id: string }
);

/** One line for everything that changes who may do what. Never a password, a key or a token. */
@Injectable()
export class Audit {
  constructor(private readonly log: RequestLog) {}

  record(event: AuditEvent): void {
    this.log.audited(event);
  }
}
