import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database';
import { longRead, statement } from '../../platform/database/statement';
import type { Subject } from '../../events/event-type';
import type { Message, ReceiverResponse } from './send';
import type { WebhookAttempt } from './webhook-attempt.entity';
import type { Webhook } from './webhook.entity';

/** Maximum number of stored attempts per webhook. */
export const MAX_KEPT_ATTEMPTS = 20;

/** A message without the fields that are read when it is sent. */
export interface Outgoing {
  message: Message;
  /** Null: a test. */
  subject: Subject | null;
}

export type Receiver = Pick<Webhook, 'id' | 'url' | 'secret' | 'user_id'>;

export interface Outcome extends Omit<Partial<ReceiverResponse>, 'status'> {
  /** The status of the response, or why there was none. */
  status: number | string;
  duration_ms: number;
}

export const isSuccess = ({ status }: Pick<Outcome, 'status'>) =>
  Number(status) >= 200 && Number(status) < 300;

// DELETE doesn't see the row that this statement inserts, so it leaves one attempt fewer.
const RECORD = statement(
  'record_webhook_attempt',
  `WITH added AS (
     INSERT INTO webhook_attempts
       (webhook_id, message_id, event, subject_type, subject_id, data, happened_at, outcome, duration_ms, response)
     SELECT id, $message_id, $event, $subject_type, $subject_id, $data, $happened_at, $outcome, $duration_ms, $response
     FROM webhooks WHERE id = $webhook_id)
   DELETE FROM webhook_attempts WHERE id IN (
     SELECT id FROM webhook_attempts WHERE webhook_id = $webhook_id ORDER BY id DESC OFFSET ${MAX_KEPT_ATTEMPTS - 1})`,
);

const NEWEST_ATTEMPTS = longRead<Omit<WebhookAttempt, 'webhook' | 'data'>>(
  'webhook_attempts',
  `SELECT id, webhook_id, message_id, event, subject_type, subject_id, happened_at, attempted_at, outcome, duration_ms, response
   FROM webhook_attempts WHERE webhook_id = $webhook_id ORDER BY id DESC LIMIT ${MAX_KEPT_ATTEMPTS}`,
);

/** An attempt to deliver a message about a subject, or the next attempt of a pending message. */
export interface SubjectDelivery extends Pick<WebhookAttempt, 'webhook_id' | 'event'>, Pick<Webhook, 'url'> {
  /** The earliest time of a pending message's next attempt. */
  at: string;
  /** Null: the message is pending. */
  outcome: string | null;
}

const OF_SUBJECT = longRead<SubjectDelivery>(
  'webhook_deliveries_of_subject',
  `(SELECT d.webhook_id, w.url, d.event, greatest(d.due_at, w.paused_until) AS at, NULL AS outcome
    FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id
    WHERE d.subject_type = $subject_type AND d.subject_id = $subject_id AND w.user_id = $user_id ORDER BY at LIMIT ${MAX_KEPT_ATTEMPTS})
   UNION ALL
   (SELECT a.webhook_id, w.url, a.event, a.attempted_at, a.outcome
    FROM webhook_attempts a JOIN webhooks w ON w.id = a.webhook_id
    WHERE a.subject_type = $subject_type AND a.subject_id = $subject_id AND w.user_id = $user_id ORDER BY a.id DESC LIMIT ${MAX_KEPT_ATTEMPTS})`,
  'user $user_id',
);

/** The results of the messages to users' webhooks. */
@Injectable()
export class WebhookAttempts {
  constructor(private readonly database: Database) {}

  async record(
    { message: { id, type, timestamp, data }, subject }: Outgoing,
    webhook: Receiver,
    { status, duration_ms, start }: Outcome,
  ): Promise<void> {
    if (webhook.user_id === null) return;
    await this.database.rows(RECORD, {
      webhook_id: webhook.id,
      message_id: id,
      event: type,
      subject_type: subject?.subject_type ?? null,
      subject_id: subject?.subject_id ?? null,
      data: JSON.stringify(data),
      happened_at: timestamp,
      outcome: String(status),
      duration_ms,
      response: start,
    });
  }

  /** The messages to a user's webhooks about a subject: pending ones, then the newest attempts. */
  findBySubject(user_id: number, { subject_type, subject_id }: Subject): Promise<SubjectDelivery[]> {
    return this.database.rows(OF_SUBJECT, { user_id, subject_type, subject_id });
  }

  newest(webhook_id: number) {
    return this.database.rows(NEWEST_ATTEMPTS, { webhook_id });
  }
}
