import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { canEdit, editedBy } from '../../games/visibility';
import type { Subject } from '../../events/event-type';
import { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { ClientsByKey } from '../../platform/limits/clients-by-key';
import { ConcurrencyLimit, type LimitedClient, MAX_WAIT_MS } from '../../platform/limits/concurrency-limit';
import { isSubscribed } from '../../games/game-events';
import { type Outcome, WebhookAttempts } from './webhook-attempts.service';
import type { WebhookAttempt } from './webhook-attempt.entity';
import { WebhookDeliveries } from './webhook-deliveries.service';
import { Webhook } from './webhook.entity';
import { WEBHOOK_COLUMNS } from './webhooks.service';

/** Maximum number of games in the form for a webhook. */
const MAX_WEBHOOK_GAMES = 500;

/**
 * Messages that users send with a button: running ones of a process, and of one IP address. One user sends one at a time.
 * A receiver may take ten seconds to respond.
 */
export const MESSAGES_NOW = { accepted: 128, running: 64, each: 4 };

export interface OwnWebhook extends Omit<Webhook, 'secret'> {
  /** The title of its only game; null for all games, or one that the user can no longer edit. */
  title: string | null;
  waiting: number;
}

const OWN_WEBHOOKS = longRead<OwnWebhook>(
  'own_webhooks',
  `SELECT ${WEBHOOK_COLUMNS},
     (SELECT title FROM games g WHERE g.id = w.game_id AND ${canEdit('g', '$user_id')}) AS title
   FROM webhooks w WHERE w.user_id = $user_id AND ($webhook_id::bigint IS NULL OR w.id = $webhook_id) ORDER BY w.id`,
  'user $user_id',
);

const GAMES_FOR_WEBHOOKS = longRead<{ id: number; title: string }>(
  'games_for_webhooks',
  `SELECT id, title FROM games WHERE id IN (${editedBy('$user_id')})
   ORDER BY lower(title), id LIMIT ${MAX_WEBHOOK_GAMES}`,
  'user $user_id',
);

const EDITED = longRead(
  'game_for_webhook',
  `SELECT FROM games g WHERE g.id = $game_id AND ${canEdit('g', '$user_id')}`,
  'user $user_id',
);

const TO_REPEAT = longRead<WebhookAttempt & Subject>(
  'webhook_attempt_to_repeat',
  `SELECT a.* FROM webhook_attempts a JOIN webhooks w ON w.id = a.webhook_id
   WHERE a.id = $attempt_id AND w.id = $webhook_id AND w.user_id = $user_id AND ${isSubscribed('a.data')}`,
  'user $user_id',
);

/** The webhooks of a user. Results are undefined if the user has no such webhook. */
@Injectable()
export class UserWebhooksService {
  private readonly users = new ClientsByKey<number>();
  private readonly perUser = new ConcurrencyLimit({ accepted: Infinity, each: 1 });
  private readonly limit = new ConcurrencyLimit(MESSAGES_NOW);

  constructor(
    private readonly database: Database,
    @InjectRepository(Webhook) private readonly stored: Repository<Webhook>,
    private readonly deliveries: WebhookDeliveries,
    private readonly attempts: WebhookAttempts,
  ) {}

  list(user_id: number): Promise<OwnWebhook[]> {
    return this.database.rows(OWN_WEBHOOKS, { user_id, webhook_id: null });
  }

  find(user_id: number, id: number): Promise<OwnWebhook | undefined> {
    return this.database.row(OWN_WEBHOOKS, { user_id, webhook_id: id });
  }

  /** Games that the user can edit, by title. */
  games(user_id: number) {
    return this.database.rows(GAMES_FOR_WEBHOOKS, { user_id });
  }

  async canEdit(user_id: number, game_id: number): Promise<boolean> {
    return (await this.database.row(EDITED, { game_id, user_id })) !== undefined;
  }

  newestAttempts({ id }: OwnWebhook) {
    return this.attempts.newest(id);
  }

  async test(user_id: number, id: number, client: LimitedClient): Promise<Outcome | undefined> {
    const webhook = (await this.stored.findOneBy({ id, user_id })) ?? undefined;
    return webhook && this.run(user_id, client, () => this.deliveries.test(webhook));
  }

  /** Sends the message of an attempt again, if the user can still edit the game. */
  async repeat(user_id: number, id: number, attempt_id: number, client: LimitedClient) {
    const webhook = await this.stored.findOneBy({ id, user_id });
    const attempt = await this.database.row(TO_REPEAT, { attempt_id, webhook_id: id, user_id });
    if (!webhook || !attempt) return undefined;
    const { message_id, event, happened_at, data, subject_type, subject_id } = attempt;
    const message = { id: message_id, type: event, timestamp: modernTimestamp(happened_at), data };
    return this.run(user_id, client, () =>
      this.deliveries.sendNow({ message, subject: { subject_type, subject_id } }, webhook),
    );
  }

  /** Sends one message of each user at a time, and a few of each IP address. */
  private run(user_id: number, client: LimitedClient, work: () => Promise<Outcome>): Promise<Outcome> {
    const signal = AbortSignal.timeout(MAX_WAIT_MS);
    return this.users.with(user_id, (user) =>
      this.perUser.run(user, signal, () => this.limit.run(client, signal, work)),
    );
  }
}
