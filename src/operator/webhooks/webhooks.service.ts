import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Not, type Repository } from 'typeorm';
import { lockUser } from '../../auth/accounts/lock-user';
import { Audit } from '../../audit/audit';
import { listPeppers } from '../../auth/keys/api-key';
import { seal, unseal } from '../../auth/accounts/encryption';
import { OperatorError, UsageError } from '../../platform/errors/operator-error';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { KeyPages } from '../../platform/server/key-pages';
import { Database } from '../../platform/database/database';
import { longRead, statement } from '../../platform/database/statement';
import type { Subject } from '../../events/event-type';
import { Events } from '../../events/events';
import { isLoopbackAddress } from './public-address';
import { type AddressRules, bareHost, isAllowed, type Message, NotSent, send } from './send';
import type { Outcome, Outgoing, Receiver } from './webhook-attempts.service';
import { Webhook } from './webhook.entity';

export const MAX_WEBHOOKS = 20;
export const MAX_USER_WEBHOOKS = 10;
export const MAX_URL_CHARACTERS = 500;

const MAX_LISTED_WEBHOOKS = 1000;

/** The columns of a webhook `w`, except its secret. */
export const WEBHOOK_COLUMNS = `w.id, w.url, w.events, w.game_id, w.user_id, w.created_at, w.last_at, w.last_outcome, w.paused_until,
  w.ended_at, (SELECT count(*) FROM webhook_deliveries WHERE webhook_id = w.id) AS waiting`;

interface ListedWebhook extends Omit<Webhook, 'secret'> {
  /** The username of the owner; null: the store's own webhook. */
  username: string | null;
  waiting: number;
}

const ALL_WEBHOOKS = longRead<ListedWebhook>(
  'list_webhooks',
  `SELECT ${WEBHOOK_COLUMNS}, (SELECT username FROM users WHERE id = w.user_id) AS username
   FROM webhooks w ORDER BY w.user_id IS NOT NULL, w.id LIMIT ${MAX_LISTED_WEBHOOKS}`,
);

const LOCK_WEBHOOKS = statement('lock_webhooks', 'LOCK TABLE webhooks IN SHARE ROW EXCLUSIVE MODE');

const DISABLE = statement(
  'end_webhook',
  `WITH ended AS (UPDATE webhooks SET ended_at = now() WHERE id = $webhook_id AND ended_at IS NULL RETURNING id), waiting AS (
     DELETE FROM webhook_deliveries WHERE webhook_id = $webhook_id
   ) SELECT id FROM ended`,
);

interface NewWebhook extends Pick<Webhook, 'url' | 'events' | 'game_id'> {
  /** Absent: the store's own webhook. */
  user_id?: number | null;
}

/** Who changes a webhook; empty for a command. */
type AuditFields = { request_id?: string; user_id?: number };

/** Adds, rotates and removes webhooks, and sends them messages. */
@Injectable()
export class WebhooksService {
  private readonly log = new Logger(WebhooksService.name);
  private readonly peppers: string[];

  constructor(
    private readonly database: Database,
    @InjectRepository(Webhook) private readonly webhooks: Repository<Webhook>,
    private readonly audit: Audit,
    private readonly settings: Settings,
    private readonly clock: Clock,
    private readonly events: Events,
    private readonly pages: KeyPages,
  ) {
    this.peppers = listPeppers(settings);
  }

  find(id: number): Promise<Webhook | null> {
    return this.webhooks.findOneBy({ id });
  }

  /** Returns the secret, which is stored nowhere else in plain text. */
  async add({ url: text, events, game_id, user_id = null }: NewWebhook, by: AuditFields = {}) {
    const url = this.parseUrl(text, user_id);
    const { secret, sealed } = this.newSecret(url.href);
    const max = user_id === null ? MAX_WEBHOOKS : MAX_USER_WEBHOOKS;
    const id = await this.database.transaction(
      async (db) => {
        if (user_id === null) await this.database.rows(LOCK_WEBHOOKS, {}, db);
        else await lockUser(db, user_id);
        if ((await db.countBy(Webhook, { user_id: user_id ?? IsNull() })) >= max)
          throw new OperatorError(
            `There are already ${max} webhooks, which is the limit. Delete one that is no longer used.`,
          );
        const { raw } = await db
          .createQueryBuilder()
          .insert()
          .into(Webhook)
          .values({ url: url.href, events, game_id, user_id, secret: sealed })
          .returning('id')
          .execute();
        return (raw as { id: number }[])[0]!.id;
      },
      { concurrencyKey: user_id === null ? undefined : `user ${user_id}` },
    );
    this.audit.record({ event: 'webhook.created', ...by, webhook_id: id, host: url.host });
    return { id, secret };
  }

  list() {
    return this.database.rows(ALL_WEBHOOKS, {});
  }

  /** False if the user (or without `user_id` anyone) has no such webhook. */
  async remove(id: number, user_id?: number, by: AuditFields = {}): Promise<boolean> {
    const { affected } = await this.webhooks.delete({ id, ...(user_id !== undefined && { user_id }) });
    if (affected) this.audit.record({ event: 'webhook.deleted', ...by, webhook_id: id });
    return affected === 1;
  }

  /** Removes the webhooks of the store and of users, and returns their number. */
  async removeAll(): Promise<number> {
    const { raw } = await this.webhooks.createQueryBuilder().delete().returning('id').execute();
    for (const { id } of raw as { id: number }[])
      this.audit.record({ event: 'webhook.deleted', webhook_id: id });
    return (raw as unknown[]).length;
  }

  /** Replaces the secret that signs messages. Undefined if the webhook doesn't exist. */
  async rotate(id: number, user_id: number, by: AuditFields): Promise<string | undefined> {
    const found = await this.webhooks.findOneBy({ id, user_id });
    if (!found) return undefined;
    const { secret, sealed } = this.newSecret(found.url);
    const { affected } = await this.webhooks.update({ id, user_id }, { secret: sealed });
    if (!affected) return undefined;
    this.audit.record({ event: 'webhook.secret_rotated', ...by, webhook_id: id });
    return secret;
  }

  testMessage(): Message {
    const now = new Date(this.clock.now());
    const timestamp = now.toISOString().replace(/\.\d+Z$/, 'Z');
    return { id: `msg_test_${now.getTime()}`, type: 'webhook.test', timestamp, data: {} };
  }

  async send({ message, subject }: Outgoing, webhook: Receiver, signal: AbortSignal): Promise<Outcome> {
    const since = this.clock.monotonic();
    const sending = async () => {
      const data = { ...message.data, ...(await this.readAtSend(message, subject, webhook)) };
      const to = { url: new URL(webhook.url), secret: this.opened(webhook) };
      return send({ ...message, data }, to, this.rulesFor(webhook.user_id), signal, this.clock);
    };
    const response = await sending().catch((error: unknown) => {
      if (error instanceof NotSent) return { status: error.message };
      throw error;
    });
    return { ...response, duration_ms: Math.round(this.clock.monotonic() - since) };
  }

  private async readAtSend(
    { type }: Message,
    subject: Subject | null,
    { user_id }: Receiver,
  ): Promise<object | undefined> {
    const { readAtSend, withUrls } = this.events.find(type) ?? {};
    if (!readAtSend || !subject) return undefined;
    const fields = await this.database.row(readAtSend, {
      subject_id: subject.subject_id,
      webhook_user_id: user_id,
    });
    return fields && withUrls ? withUrls(fields, this.pages) : fields;
  }

  /** Disables a webhook whose receiver responded with 410 Gone. */
  async disable(id: number): Promise<void> {
    if ((await this.database.rows(DISABLE, { webhook_id: id })).length === 0) return;
    this.audit.record({ event: 'webhook.disabled', webhook_id: id });
  }

  /** Enables a disabled webhook again; returns false if the user has no such webhook, or it isn't disabled. */
  async enable(id: number, user_id?: number, by: AuditFields = {}): Promise<boolean> {
    const { affected } = await this.webhooks.update(
      { id, ended_at: Not(IsNull()), ...(user_id !== undefined && { user_id }) },
      { ended_at: null, paused_until: null },
    );
    if (affected) this.audit.record({ event: 'webhook.enabled', ...by, webhook_id: id });
    return affected === 1;
  }

  private opened({ id, url, secret }: Pick<Webhook, 'id' | 'url' | 'secret'>): Buffer {
    const text = unseal(secret, describeWebhook(url), this.peppers, (sealed) => this.reseal(id, sealed));
    if (!text) throw new NotSent('secret sealed under a different pepper');
    return text;
  }

  private reseal(id: number, secret: Buffer): void {
    this.webhooks
      .update({ id }, { secret })
      .catch((error: Error) =>
        this.log.warn(
          `The secret of webhook ${id} is still encrypted with a previous pepper: ${error.message}`,
        ),
      );
  }

  private newSecret(url: string) {
    const secret = randomBytes(32);
    const sealed = seal(secret, describeWebhook(url), this.peppers[0]!);
    return { secret: `whsec_${secret.toString('base64')}`, sealed };
  }

  /**
   * WEBHOOKS_ALLOW_PRIVATE is for the store's own systems: users must not reach the private network through
   * the service.
   */
  private rulesFor(user_id: number | null): AddressRules {
    return user_id === null
      ? this.settings
      : { NODE_ENV: this.settings.NODE_ENV, WEBHOOKS_ALLOW_PRIVATE: false };
  }

  private parseUrl(text: string, user_id: number | null): URL {
    if (
      text.length > MAX_URL_CHARACTERS ||
      !URL.canParse(text) ||
      new URL(text).href.length > MAX_URL_CHARACTERS
    )
      throw new UsageError(
        `Use a URL of at most ${MAX_URL_CHARACTERS} characters, such as https://example.com/hook.`,
      );
    const url = new URL(text);
    const host = bareHost(url);
    const local = host === 'localhost' || isLoopbackAddress(host);
    if (url.username || url.password || url.hash)
      throw new UsageError('Use a URL without a username, a password or a fragment.');
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local))
      throw new UsageError('Use a URL that starts with https://. http:// is only allowed for this machine.');
    const literal = host === 'localhost' ? '127.0.0.1' : host;
    if (isIP(literal) && !isAllowed(url, literal, this.rulesFor(user_id)))
      throw new UsageError(
        `${host} is a private IP address.${user_id === null ? ' WEBHOOKS_ALLOW_PRIVATE allows it.' : ''}`,
      );
    return url;
  }
}

const describeWebhook = (url: string) => `webhook ${url}`;
