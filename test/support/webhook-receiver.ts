import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { theClock } from './app';
import { sql } from './sql';
import { until } from './time';

export interface Message {
  id: string;
  genuine: boolean;
  type: string;
  timestamp: string;
  data: Record<string, unknown> & { id: number; reference: string | null };
  headers: IncomingMessage['headers'];
}
export type Responding = (res: ServerResponse, attempt: number) => unknown;

export const ok: Responding = (res) => res.writeHead(204).end();
export const status =
  (code: number, headers = {}, body = ''): Responding =>
  (res) =>
    res.writeHead(code, headers).end(body);

const receivers: Receiver[] = [];

export function closeReceivers(): void {
  for (const receiver of receivers.splice(0)) receiver.close();
}

/** A server that receives webhook messages. */
export class Receiver {
  readonly messages: Message[] = [];
  /** The secret and the ID of its webhook. */
  secret = '';
  id = 0;
  private constructor(
    private readonly server: Server,
    public response: Responding,
  ) {}

  static async open(response: Responding = ok): Promise<Receiver> {
    const server = createServer((req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk: Buffer) => chunks.push(chunk));
      req.on('end', () => receiver.take(req, res, Buffer.concat(chunks).toString()));
    }).listen(0, '127.0.0.1');
    const receiver = new Receiver(server, response);
    await once(server, 'listening');
    receivers.push(receiver);
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook?token=of-the-shop`;
  }

  get waiting() {
    return sql('SELECT id, attempts, due_at > now() AS later FROM webhook_deliveries WHERE webhook_id = $1', [
      this.id,
    ]);
  }

  async received(count: number): Promise<Message[]> {
    await until(() => this.messages.length >= count);
    return this.messages;
  }

  private take(req: IncomingMessage, res: ServerResponse, body: string): void {
    const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } = req.headers;
    const key = Buffer.from(this.secret.replace('whsec_', ''), 'base64');
    const expected = createHmac('sha256', key)
      .update(`${String(id)}.${String(time)}.${body}`)
      .digest('base64');
    const genuine = signature === `v1,${expected}` && Math.abs(theClock().now() / 1000 - Number(time)) < 60;
    this.messages.push({ ...(JSON.parse(body) as Message), id: String(id), genuine, headers: req.headers });
    this.response(res, this.messages.length);
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}
