import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type Socket } from 'node:net';
import type { Pool } from 'pg';
import { encodeMessage, type Message } from '../world/message';
import { Client } from './client';
import { importMessage } from '../world/world';
import type { JsonObject } from '../world/json';
import { toNdjsonText } from '../world/world';

/**
 * The building blocks of a flood: connections from one IP address, for a limited time, with choices determined by its
 * seed.
 */
export class Attack {
  /** Responses by status. */
  readonly seen = new Map<number, number>();
  sent = 0;
  /** Violated expectations of HTTP. */
  readonly broken: string[] = [];
  private bytes = 0;
  private deadline = Infinity;
  private readonly sockets = new Set<Socket>();

  constructor(
    readonly base: string,
    readonly sql: Pool,
    readonly seconds: number,
    private state: number,
    /** The folder of files that the service serves. */
    readonly files: string,
  ) {}

  /** Starts the timer. */
  begin(): void {
    this.deadline = performance.now() + this.seconds * 1000;
  }

  get isOver(): boolean {
    return performance.now() >= this.deadline;
  }

  /** Returns the items one after the other, each for an equal part of the time. */
  inTurn<Item>(items: readonly Item[]): Item {
    const left = Math.max(0, this.deadline - performance.now()) / (this.seconds * 1000);
    return items[Math.min(items.length - 1, Math.floor((1 - left) * items.length))]!;
  }

  /** A number from 0 up to but not including `below`. */
  random(below: number): number {
    // A linear congruential generator, whose upper bits are good enough for choices.
    this.state = (Math.imul(this.state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.state / 2 ** 32) * below);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.random(items.length)]!;
  }

  /** A connection that has sent these bytes and stays open until either side closes it. */
  open(bytes: Buffer | string): Socket {
    const socket = connect({
      port: Number(new URL(this.base).port),
      host: '127.0.0.1',
      allowHalfOpen: true,
      noDelay: true,
    });
    this.count(bytes.length);
    this.sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('end', () => socket.destroy());
    socket.on('close', () => this.sockets.delete(socket));
    socket.write(bytes);
    return socket;
  }

  /** This many clients, each sending a request after each response; `pause`: milliseconds in between. */
  async clientsThat(count: number, next: (client: number) => Message, pause = 0): Promise<void> {
    const client = new Client(this.base, count);
    // Requests that are waiting at the end get no response.
    const timer = setTimeout(() => client.end(), this.deadline - performance.now());
    await Promise.all(
      Array.from({ length: count }, async (_, number) => {
        while (!this.isOver) {
          const bytes = encodeMessage(next(number));
          this.count(bytes.length);
          const { status } = await client.exchange(bytes).catch(() => ({ status: 0 }));
          this.seen.set(status, (this.seen.get(status) ?? 0) + 1);
          // Without a response, a client pauses before its next request.
          if (pause || status === 0) await sleep(pause || 50);
        }
      }),
    );
    clearTimeout(timer);
    client.end();
    if (client.surplus !== undefined) this.broken.push(`bytes follow a response: ${client.surplus}`);
  }

  /** Repeats the work until the time is over. */
  async every(ms: number, work: () => unknown): Promise<void> {
    for (let next = performance.now(); !this.isOver; next += ms) {
      await work();
      await sleep(Math.max(0, next + ms - performance.now()));
    }
  }

  /** Imports rows that no API request can create. */
  async import(records: JsonObject[]): Promise<void> {
    const client = new Client(this.base, 1);
    const { status, body } = await client.exchange(encodeMessage(importMessage(toNdjsonText(records))));
    client.end();
    if (status !== 200) throw new Error(`the flood's data could not be imported: ${status} ${body}`);
  }

  private count(bytes: number): void {
    this.sent++;
    this.bytes += bytes;
  }

  /** Closes everything that the attack opened. */
  end(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  toString(): string {
    const statuses = [...this.seen]
      .sort(([a], [b]) => a - b)
      .map(([status, n]) => `${n} × ${status || 'none'}`);
    return `${this.sent} sent, ${(this.bytes / 1000 / this.seconds).toFixed(0)} kB/s${statuses.length > 0 ? ` (${statuses.join(', ')})` : ''}`;
  }
}
