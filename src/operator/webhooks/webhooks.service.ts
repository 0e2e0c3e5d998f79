import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Audit } from '../../auth/audit';
import { peppersOf } from '../../auth/api-key';
import { seal, unseal } from '../../auth/sealed';
import { OperatorError } from '../../platform/config/operator-error';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { statement } from '../../platform/database/statement';
import type { WebhookEvent } from './announcements';
import { isLoopback } from './public-address';
import { hostOf, type Answer, isAllowed, type Message, NotSent, send, TIMEOUT } from './send';
import { Webhook } from './webhook.entity';

export const MAX_WEBHOOKS = 20;
const MAX_URL = 500;

const LIST = statement<Omit<Webhook, 'secret'> & { waiting: number }>(
  'list_webhooks',
  `SELECT id, url, events, game_id, created_at, last_at, last_outcome, ended_at,
     (SELECT count(*) FROM webhook_deliveries WHERE webhook_id = w.id) AS waiting
   FROM webhooks w ORDER BY id LIMIT ${MAX_WEBHOOKS}`,
);

const END = statement(
  'end_webhook',
  `WITH ended AS (UPDATE webhooks SET ended_at = now() WHERE id = $1 AND ended_at IS NULL RETURNING id), waiting AS (
     DELETE FROM webhook_deliveries WHERE webhook_id = $1
   ) SELECT id FROM ended`,
);

/** Adds webhooks, ends them, and sends them messages. */
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
  ) {
    this.peppers = peppersOf(settings);
  }

  /** Returns the secret, which nobody sees again. `game_id` null: of all games. */
  async add(address: string, events: WebhookEvent[], game_id: number | null) {
    const url = this.urlOf(address);
    const secret = randomBytes(32);
    const sealed = seal(secret, nameOf(url.href), this.peppers[0]!);
    const id = await this.database.transaction(async (db) => {
      await db.query('LOCK TABLE webhooks IN SHARE ROW EXCLUSIVE MODE');
      if ((await db.count(Webhook)) >= MAX_WEBHOOKS)
        throw new OperatorError(`There are ${MAX_WEBHOOKS} webhooks: remove one first.`);
      const { raw } = await db
        .createQueryBuilder()
        .insert()
        .into(Webhook)
        .values({ url: url.href, events, game_id, secret: sealed })
        .returning('id')
        .execute();
      return (raw as { id: number }[])[0]!.id;
    });
    this.audit.record({ event: 'webhook.created', webhook_id: id, host: url.host });
    return { id, secret: `whsec_${secret.toString('base64')}` };
  }

  list() {
    return this.database.rows(LIST, []);
  }

  /** False: there is none with this id. */
  async remove(id: number): Promise<boolean> {
    const { affected } = await this.webhooks.delete({ id });
    if (affected) this.audit.record({ event: 'webhook.deleted', webhook_id: id });
    return affected === 1;
  }

  /** Sends a message at once; the status of the answer. */
  async test(id: number): Promise<number> {
    const webhook = await this.webhooks.findOneBy({ id });
    if (!webhook) throw new OperatorError(`Webhook ${id} doesn't exist.`);
    const now = new Date(this.clock.now());
    const timestamp = now.toISOString().replace(/\.\d+Z$/, 'Z');
    const message = { id: `msg_test_${now.getTime()}`, type: 'webhook.test', timestamp, data: {} };
    const { status } = await this.send(message, webhook, AbortSignal.timeout(TIMEOUT)).catch(
      (error: unknown) => {
        throw error instanceof NotSent ? new OperatorError(`There is no answer: ${error.message}.`) : error;
      },
    );
    return status;
  }

  /** Throws NotSent where there is no answer. */
  async send(
    message: Message,
    webhook: Pick<Webhook, 'id' | 'url' | 'secret'>,
    signal: AbortSignal,
  ): Promise<Answer> {
    return send(
      message,
      { url: new URL(webhook.url), secret: this.opened(webhook) },
      this.settings,
      signal,
      this.clock,
    );
  }

  /** Ends a webhook that answered 410 Gone. */
  async end(id: number): Promise<void> {
    if ((await this.database.rows(END, [id])).length === 0) return;
    this.audit.record({ event: 'webhook.disabled', webhook_id: id });
  }

  private opened({ id, url, secret }: Pick<Webhook, 'id' | 'url' | 'secret'>): Buffer {
    const text = unseal(secret, nameOf(url), this.peppers, (sealed) => this.reseal(id, sealed));
    if (!text) throw new NotSent('secret sealed under another pepper');
    return text;
  }

  private reseal(id: number, secret: Buffer): void {
    this.webhooks
      .update({ id }, { secret })
      .catch((error: Error) =>
        this.log.warn(`The secret of webhook ${id} stays sealed under a previous pepper: ${error.message}`),
      );
  }

  private urlOf(text: string): URL {
    if (text.length > MAX_URL || !URL.canParse(text) || new URL(text).href.length > MAX_URL)
      throw new OperatorError(
        `Give an address of at most ${MAX_URL} characters, such as https://example.com/hook.`,
      );
    const url = new URL(text);
    const host = hostOf(url);
    const local = host === 'localhost' || isLoopback(host);
    if (url.username || url.password || url.hash)
      throw new OperatorError('Give an address without a user, a password and a fragment.');
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local))
      throw new OperatorError(
        'Give an address that begins with https://; http:// is for this machine alone.',
      );
    const literal = host === 'localhost' ? '127.0.0.1' : host;
    if (isIP(literal) && !isAllowed(url, literal, this.settings))
      throw new OperatorError(`${host} is a private address: WEBHOOKS_ALLOW_PRIVATE allows it.`);
    return url;
  }
}

const nameOf = (url: string) => `webhook ${url}`;
