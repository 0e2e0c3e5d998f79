import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Pool } from 'pg';
import { seal } from '../../src/auth/accounts/encryption';
import { until } from '../../test/support/time';
import type { JsonObject } from '../../test/support/world/json';

/** A message as received. */
export interface ReceivedMessage {
  id: string;
  type: string;
  data: JsonObject;
  genuine: boolean;
}

// A lost message is retried after ten seconds.
const PATIENCE = 30_000;
/** The limit of stored messages, because cases of other kinds also sell, but never read the messages. */
const MAX_KEPT = 10_000;

/** Receives all sales, and keeps their messages until they are read. */
export class Webhook {
  private readonly received = new Map<number, ReceivedMessage[]>();
  private readonly secret = randomBytes(32);
  private readonly server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      this.take(req.headers, Buffer.concat(chunks).toString());
      res.writeHead(204).end();
    });
  }).listen(0, '127.0.0.1');

  static async add(sql: Pool, pepper: string): Promise<Webhook> {
    const webhook = new Webhook();
    await once(webhook.server, 'listening');
    const url = `http://127.0.0.1:${(webhook.server.address() as AddressInfo).port}/`;
    await sql.query(
      `INSERT INTO webhooks (url, events, secret) VALUES ($1, '{purchase.completed,purchase.refunded}', $2)`,
      [url, seal(webhook.secret, `webhook ${url}`, pepper)],
    );
    return webhook;
  }

  /** The messages of a purchase, as soon as there are this many events. */
  async takeMessages(purchase: number, events: number): Promise<ReceivedMessage[]> {
    const messages = () => this.received.get(purchase) ?? [];
    await until(() => new Set(messages().map(({ id }) => id)).size >= events, PATIENCE).catch(
      () => undefined,
    );
    const heard = messages();
    this.received.delete(purchase);
    return heard;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private take(headers: NodeJS.Dict<string | string[]>, body: string): void {
    const id = String(headers['webhook-id']);
    const signed = `${id}.${String(headers['webhook-timestamp'])}.${body}`;
    const signature = `v1,${createHmac('sha256', this.secret).update(signed).digest('base64')}`;
    const { type, data } = JSON.parse(body) as { type: string; data: JsonObject };
    const message = { id, type, data, genuine: headers['webhook-signature'] === signature };
    const purchase = Number(data.id);
    this.received.set(purchase, [...(this.received.get(purchase) ?? []), message]);
    if (this.received.size > MAX_KEPT) this.received.delete(this.received.keys().next().value!);
  }
}

/**
 * The reason why the messages don't match a purchase: each event needs one ID, any number of deliveries, and these
 * data.
 */
export function problemIn(
  received: ReceivedMessage[],
  data: JsonObject,
  refunded: boolean,
  erased: boolean,
): string | undefined {
  const statuses: Record<string, string> = {
    'purchase.completed': 'complete',
    ...(refunded && { 'purchase.refunded': 'refunded' }),
  };
  for (const type of Object.keys(statuses)) {
    const ids = new Set(received.filter((message) => message.type === type).map(({ id }) => id));
    if (ids.size !== 1) return `${type} was sent as ${ids.size} events`;
  }
  for (const message of received) {
    if (!message.genuine) return 'a message has an invalid signature';
    // The buyer and the keys are read when the message is sent.
    const { status, reference, email: _email, download_keys: _keys, ...rest } = message.data;
    const { reference: own, ...expected } = data;
    // References are erased together with the person.
    const isTheirs = reference === own || (erased && reference === null);
    if (status !== statuses[message.type] || !isTheirs || !isSame(rest, expected))
      return `${message.type} is another: ${JSON.stringify(message.data)}`;
  }
  return undefined;
}

const isSame = (one: JsonObject, other: JsonObject) =>
  JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort());
