import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Counter } from 'prom-client';
import { HttpAdapterHost } from '@nestjs/core';
import { Clock } from '../../platform/config/clock';
import { Database } from '../../platform/database/database';
import { statement } from '../../platform/database/statement';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { MetricsRegistry } from '../../platform/observability/metrics-registry';
import { Descriptors } from '../../platform/server/descriptors';
import { Events } from '../../events/events';
import { isSubscribed } from '../../games/game-events';
import { DELIVERY_TIMEOUT_MS } from './send';
import {
  isSuccess,
  type Outcome,
  type Outgoing,
  type Receiver,
  WebhookAttempts,
} from './webhook-attempts.service';
import type { WebhookDelivery } from './webhook-delivery.entity';
import type { Webhook } from './webhook.entity';
import { WebhooksService } from './webhooks.service';

// Polls find deliveries of other processes and those that are due again.
const DELIVERY_POLL_INTERVAL_MS = 5000;
/** Concurrent deliveries to one webhook in one process. */
export const MAX_AT_ONCE = 4;
/**
 * Concurrent deliveries to the webhooks of all users in one process. A receiver may keep its connection open for as
 * long as a delivery may take. The number of the store's own webhooks limits those.
 */
export const MAX_TO_USERS = 256;
// Leaves most descriptors to the connections of clients.
const TO_USERS_SHARE = 1 / 32;
/** One user's share of these. */
export const SHARE_OF_USER = 1 / 16;
// A lease is longer than a delivery takes. When it expires, another process tries.
const DELIVERY_LEASE_MS = 2 * DELIVERY_TIMEOUT_MS;
/** Delays of the next attempts; the last one repeats. */
const DELAYS_SECONDS = [10, 60, 300, 1800, 7200, 18_000, 36_000, 43_200];
const MAX_DELAY_SECONDS = DELAYS_SECONDS.at(-1)!;
/**
 * For this time, a failing receiver gets no other messages. The pause is shorter than the delays of its messages,
 * because the receiver may recover much sooner.
 */
const PAUSE_SECONDS = 10;
/** Retry-After is respected only with these statuses. With others, it is meant for browsers. */
const BUSY_STATUSES = [429, 503];
/** A failed attempt after this age is the last one. */
export const MAX_AGE_SECONDS = 3 * 24 * 3600;
// A delivery of this age that was never tried is dropped.
const MAX_UNTRIED_AGE_SECONDS = MAX_AGE_SECONDS + 24 * 3600;
/** Pending deliveries of one webhook. Beyond this, the oldest are dropped. */
export const MAX_PENDING = 100_000;
const DELIVERIES_PER_BATCH = 1000;

/**
 * Webhooks with pending messages. In a store with many sellers most webhooks have none, so the index is read from one
 * ID to the next.
 */
const PENDING_WEBHOOKS = `RECURSIVE pending (id) AS (
     SELECT min(webhook_id) FROM webhook_deliveries
     UNION ALL
     SELECT (SELECT min(webhook_id) FROM webhook_deliveries WHERE webhook_id > pending.id) FROM pending WHERE pending.id IS NOT NULL
   )`;

const POLL_DELIVERIES = statement<{ waiting: number; oldest: number }>(
  'poll_webhook_deliveries',
  `WITH ${PENDING_WEBHOOKS}
   SELECT (SELECT count(*) FROM (SELECT FROM webhook_deliveries LIMIT ${MAX_PENDING + 1}) counted) AS waiting,
     coalesce(extract(epoch FROM now() - min(d.oldest))::float8, 0) AS oldest
   FROM pending CROSS JOIN LATERAL (
     SELECT min(created_at) AS oldest FROM webhook_deliveries WHERE webhook_id = pending.id) d`,
);

interface Due
  extends
    Pick<
      WebhookDelivery,
      'id' | 'webhook_id' | 'event' | 'subject_type' | 'subject_id' | 'data' | 'created_at' | 'attempts'
    >,
    Pick<Webhook, 'url' | 'secret' | 'user_id'> {
  age: number;
  /** False if the owner of the webhook can no longer edit the game. */
  permitted: boolean;
}

const IS_DUE = 'due_at <= now() AND event = ANY ($known::text[])';

// Claims some deliveries for each webhook and each user, so that slow ones don't block the others: first those of users
// with the fewest deliveries in progress. running, running_users: the webhooks, and the users, of those. free: how many
// more may run to users. known: event types; replicas of the next version send their own.
const CLAIM_DELIVERIES = statement<Due>(
  'claim_webhook_deliveries',
  `WITH ${PENDING_WEBHOOKS}, due AS (
     SELECT w.id AS webhook_id, w.user_id, d.due_at,
       coalesce(ru.deliveries, 0) + row_number() OVER (PARTITION BY w.user_id ORDER BY d.due_at) AS place
     FROM pending JOIN webhooks w USING (id)
     LEFT JOIN (SELECT id, count(*) AS deliveries FROM unnest($running::bigint[]) AS running (id) GROUP BY id) r ON r.id = w.id
     LEFT JOIN (SELECT id, count(*) AS deliveries FROM unnest($running_users::bigint[]) AS running (id) GROUP BY id) ru ON ru.id = w.user_id
     CROSS JOIN LATERAL (
       SELECT due_at FROM webhook_deliveries WHERE webhook_id = w.id AND ${IS_DUE}
       ORDER BY due_at LIMIT greatest(0, ${MAX_AT_ONCE} - coalesce(r.deliveries, 0))) d
     WHERE coalesce(w.paused_until <= now(), true)
   ), chosen AS (
     SELECT webhook_id FROM due WHERE user_id IS NULL
     UNION ALL (SELECT webhook_id FROM due WHERE user_id IS NOT NULL AND place <= $each ORDER BY place, due_at LIMIT $free)
   ), claimed AS MATERIALIZED (
     SELECT d.id FROM (SELECT webhook_id, count(*) AS deliveries FROM chosen GROUP BY webhook_id) c CROSS JOIN LATERAL (
       SELECT id FROM webhook_deliveries WHERE webhook_id = c.webhook_id AND ${IS_DUE}
       ORDER BY due_at LIMIT c.deliveries FOR UPDATE SKIP LOCKED) d
   )
   UPDATE webhook_deliveries d SET due_at = now() + interval '${DELIVERY_LEASE_MS} ms', attempts = d.attempts + 1
   FROM claimed, webhooks w WHERE d.id = claimed.id AND w.id = d.webhook_id
   RETURNING d.id, d.webhook_id, d.event, d.subject_type, d.subject_id, d.data, d.created_at, d.attempts, w.url, w.secret, w.user_id,
     w.user_id IS NULL OR ${isSubscribed('d.data')} AS permitted,
     extract(epoch FROM now() - d.created_at)::float8 AS age`,
);

const WITHDRAW_DELIVERY = statement(
  'webhook_delivery_withdrawn',
  'DELETE FROM webhook_deliveries WHERE id = $id',
);
const SET_OUTCOME = 'UPDATE webhooks SET last_at = now(), last_outcome = $status';
const FINISH_DELIVERY = statement(
  'webhook_delivery_done',
  `WITH done AS (DELETE FROM webhook_deliveries WHERE id = $id)
   ${SET_OUTCOME}, paused_until = NULL WHERE id = $webhook_id`,
);
const GIVE_UP = statement(
  'webhook_delivery_given_up',
  `WITH done AS (DELETE FROM webhook_deliveries WHERE id = $id)
   ${SET_OUTCOME} WHERE id = $webhook_id`,
);
// Without a Retry-After, one failure after a success doesn't pause the receiver: the message may be the cause.
const POSTPONE_DELIVERY = statement(
  'webhook_delivery_later',
  `WITH later AS (UPDATE webhook_deliveries SET due_at = now() + make_interval(secs => $delay) WHERE id = $id)
   ${SET_OUTCOME}, paused_until = CASE WHEN last_outcome LIKE '2__' AND $retry_after::float8 = 0 THEN paused_until
     ELSE greatest(paused_until, now() + make_interval(secs => greatest($retry_after, ${PAUSE_SECONDS}))) END WHERE id = $webhook_id`,
);

// With IN instead of ARRAY, a table without statistics may be joined row by row, which takes minutes.
const DROP_DELIVERIES = statement(
  'drop_webhook_deliveries',
  `WITH ${PENDING_WEBHOOKS}
   DELETE FROM webhook_deliveries WHERE id = ANY(ARRAY(
     SELECT d.id FROM pending w CROSS JOIN LATERAL (
       (SELECT id FROM webhook_deliveries WHERE webhook_id = w.id ORDER BY created_at DESC OFFSET ${MAX_PENDING} LIMIT ${DELIVERIES_PER_BATCH})
       UNION
       (SELECT id FROM webhook_deliveries
        WHERE webhook_id = w.id AND created_at < now() - interval '${MAX_UNTRIED_AGE_SECONDS} s' ORDER BY created_at LIMIT ${DELIVERIES_PER_BATCH})) d))
   RETURNING 1`,
);

/**
 * Sends pending webhook messages, in every replica. A delivery is claimed for a time, and retried until it
 * succeeds.
 */
@Injectable()
export class WebhookDeliveries implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly log = new Logger(WebhookDeliveries.name);
  private readonly results: Counter<'result'>;
  private readonly running = new Map<AbortController, Due>();
  private readonly maxToUsers: number;
  private waiting = 0;
  private oldest = 0;
  private polledAt = -Infinity;
  private stopped = false;
  /** Call it when there may be something to deliver. */
  wake: () => void = () => undefined;

  constructor(
    private readonly database: Database,
    private readonly webhooks: WebhooksService,
    private readonly attempts: WebhookAttempts,
    private readonly host: HttpAdapterHost,
    private readonly clock: Clock,
    private readonly events: Events,
    { maxConnections }: Descriptors,
    metrics: MetricsRegistry,
  ) {
    this.maxToUsers = Math.min(MAX_TO_USERS, Math.ceil(maxConnections * TO_USERS_SHARE));
    this.results = metrics.counter(
      'gamewharf_webhook_deliveries_total',
      'Webhook deliveries by result. dropped: expired before the first attempt, or the queue was full',
      { result: ['delivered', 'failed', 'given_up', 'dropped'] },
    );
    metrics.gauge('gamewharf_webhook_waiting', 'Pending webhook deliveries of the store', () => this.waiting);
    metrics.gauge(
      'gamewharf_webhook_oldest_seconds',
      'Age of the oldest pending webhook delivery',
      () => this.oldest,
    );
  }

  onApplicationBootstrap(): void {
    // Without an HTTP adapter, this process runs an operator's command.
    if (!this.host.httpAdapter) return;
    this.events.onAnnounced(() => this.wake());
    void this.run();
  }

  beforeApplicationShutdown(): void {
    this.stopped = true;
    this.wake();
    // When their lease expires, another process tries again.
    for (const delivery of this.running.keys()) delivery.abort();
  }

  /**
   * Deliveries start here and not in requests; otherwise, each of them would be part of a request's trace.
   */
  private async run(): Promise<void> {
    while (!this.stopped) {
      const woken = new Promise<void>((resolve) => (this.wake = resolve));
      // The next poll tries again.
      await this.deliver().catch(() => undefined);
      const timer = setTimeout(() => this.poll(), DELIVERY_POLL_INTERVAL_MS).unref();
      await woken;
      clearTimeout(timer);
    }
  }

  /** Looks for due deliveries now, without waiting for the interval. */
  poll(): void {
    this.polledAt = -Infinity;
    this.wake();
  }

  private async deliver(): Promise<void> {
    const now = this.clock.monotonic();
    if (now - this.polledAt >= DELIVERY_POLL_INTERVAL_MS) {
      this.polledAt = now;
      const { waiting, oldest } = (await this.database.row(POLL_DELIVERIES, {}))!;
      Object.assign(this, { waiting, oldest });
      if (waiting > MAX_PENDING || oldest > MAX_UNTRIED_AGE_SECONDS) await this.drop();
      if (waiting === 0) return;
    }
    const running = [...this.running.values()];
    const running_users = running.flatMap(({ user_id }) => user_id ?? []);
    const claimed = await this.database.rows(CLAIM_DELIVERIES, {
      known: this.events.all.map(({ name }) => name),
      running: running.map(({ webhook_id }) => webhook_id),
      running_users,
      each: Math.ceil(this.maxToUsers * SHARE_OF_USER),
      free: this.maxToUsers - running_users.length,
    });
    for (const due of claimed)
      void this.attempt(due).catch((error: Error) =>
        this.log.warn(`The outcome of a delivery could not be stored: ${error.message}`),
      );
  }

  private async attempt(due: Due): Promise<void> {
    const { id, webhook_id, url, secret, user_id, event, subject_type, subject_id, created_at, data } = due;
    if (!due.permitted) {
      await this.database.rows(WITHDRAW_DELIVERY, { id });
      this.wake();
      return;
    }
    const message = { id: `msg_${id}`, type: event, timestamp: modernTimestamp(created_at), data };
    const outgoing = { message, subject: { subject_type, subject_id } };
    const delivery = new AbortController();
    const signal = AbortSignal.any([delivery.signal, AbortSignal.timeout(DELIVERY_TIMEOUT_MS)]);
    this.running.set(delivery, due);
    try {
      const webhook = { id: webhook_id, url, secret, user_id };
      const outcome = await this.webhooks.send(outgoing, webhook, signal);
      if (this.stopped) return;
      await this.storeOutcome(due, outcome);
      await this.attempts.record(outgoing, webhook, outcome);
    } finally {
      this.running.delete(delivery);
      this.wake();
    }
  }

  test(webhook: Receiver): Promise<Outcome> {
    return this.sendNow({ message: this.webhooks.testMessage(), subject: null }, webhook);
  }

  /** Sends a message now, before any pending ones, and records the result. */
  async sendNow(sent: Outgoing, webhook: Receiver): Promise<Outcome> {
    const outcome = await this.webhooks.send(sent, webhook, AbortSignal.timeout(DELIVERY_TIMEOUT_MS));
    const id = sent.subject === null ? null : sent.message.id.slice('msg_'.length);
    const result = { status: outcome.status, webhook_id: webhook.id };
    if (isSuccess(outcome)) await this.database.rows(FINISH_DELIVERY, { id, ...result });
    else await this.database.rows(GIVE_UP, { id: null, ...result });
    await this.attempts.record(sent, webhook, outcome);
    return outcome;
  }

  private async storeOutcome(
    { id, webhook_id, age, attempts }: Due,
    { status, retryAfterSeconds }: Outcome,
  ): Promise<void> {
    if (isSuccess({ status })) {
      this.results.inc({ result: 'delivered' });
      await this.database.rows(FINISH_DELIVERY, { id, status, webhook_id });
      return;
    }
    this.results.inc({ result: 'failed' });
    if (status === 410) await this.webhooks.disable(webhook_id);
    if (age < MAX_AGE_SECONDS) {
      const pause = (DELAYS_SECONDS[attempts - 1] ?? MAX_DELAY_SECONDS) * (0.9 + Math.random() / 5);
      const retry_after = BUSY_STATUSES.includes(Number(status))
        ? Math.min(retryAfterSeconds ?? 0, MAX_DELAY_SECONDS)
        : 0;
      const delay = Math.max(pause, retry_after);
      await this.database.rows(POSTPONE_DELIVERY, { id, status, webhook_id, delay, retry_after });
      return;
    }
    this.results.inc({ result: 'given_up' });
    this.log.warn(`Gave up on message ${id} to webhook ${webhook_id}. Last attempt: ${status}`);
    await this.database.rows(GIVE_UP, { id, status, webhook_id });
  }

  private async drop(): Promise<void> {
    const { length } = await this.database.rows(DROP_DELIVERIES, {});
    this.results.inc({ result: 'dropped' }, length);
    if (length > 0)
      this.log.warn(`Webhook messages dropped: ${length}. They waited too long, or the queue was full.`);
  }
}
