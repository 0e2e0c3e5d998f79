import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const MAX_CLOCK_SKEW = 60;

/** An event as stored in the database: the type without `purchase.`, and some members of the message as JSON. */
export interface StoredEvent {
  event: string;
  data: string;
}

/** Receives sales, responds slowly, and fails some messages at first. */
export class WebhookReceiver {
  secret = '';
  failing = true;
  /** Messages without a response so far. */
  open = 0;
  total = 0;
  failures = 0;
  private readonly heard = new Set<string>();
  private readonly accepted = new Map<string, number>();
  private readonly wrong: string[] = [];

  private constructor(private readonly server: Server) {}

  static async open(): Promise<WebhookReceiver> {
    const server = createServer((req, res) => void receiver.take(req, res)).listen(0, '127.0.0.1');
    const receiver = new WebhookReceiver(server);
    await once(server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** Compares the accepted messages with the actual events. */
  compare(events: StoredEvent[]): { lost: number; wrong: string[] } {
    const happened = new Set(events.map(({ event, data }) => `${event} ${JSON.stringify(JSON.parse(data))}`));
    const invented = [...this.accepted.keys()].filter((event) => !happened.has(event));
    return {
      lost: [...happened].filter((event) => !this.accepted.has(event)).length,
      wrong: [...this.wrong, ...invented],
    };
  }

  private async take(req: IncomingMessage, res: ServerResponse): Promise<void> {
    this.total++;
    this.open++;
    res.once('close', () => this.open--);
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of req) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks).toString();
      if (!this.isGenuine(req, body)) this.wrong.push(`signed wrongly: ${body}`);
      const id = String(req.headers['webhook-id']);
      await sleep(20 + Math.random() * 60);
      if (this.failing && !this.heard.has(id) && Math.random() < 0.2) {
        this.failures++;
        if (Math.random() < 0.5) res.writeHead(500).end();
        else res.destroy();
      } else {
        this.note(body);
        res.writeHead(204).end();
      }
      this.heard.add(id);
    } catch {
      // The service was killed.
      res.destroy();
    }
  }

  private note(body: string): void {
    const { type, data } = JSON.parse(body) as { type: string; data: Record<string, unknown> };
    const event = type.replace('purchase.', '');
    const { id, amount, reference, status } = data;
    if (status !== { completed: 'complete', refunded: 'refunded' }[event]) this.wrong.push(body);
    const key = `${event} ${JSON.stringify({ id, amount, reference })}`;
    this.accepted.set(key, (this.accepted.get(key) ?? 0) + 1);
  }

  private isGenuine({ headers }: IncomingMessage, body: string): boolean {
    const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } = headers;
    const key = Buffer.from(this.secret.replace('whsec_', ''), 'base64');
    const text = `${String(id)}.${String(time)}.${body}`;
    const expected = createHmac('sha256', key).update(text).digest('base64');
    return signature === `v1,${expected}` && Math.abs(Date.now() / 1000 - Number(time)) < MAX_CLOCK_SKEW;
  }
}
