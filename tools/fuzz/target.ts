import { setTimeout as sleep } from 'node:timers/promises';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Pool } from 'pg';
import { Contract } from '../../test/support/contract';
import { type Ask, bytesOf, formMessage, type Message, messageOf } from './ask';
import { type Answer, Client, headerOf } from './client';
import { Coverage } from './coverage';
import { credentialOf } from './credentials';
import type { Front } from './front';
import { type Document, type Operation, operationsOf } from './operations';
import { check, type Asked } from './oracles';
import { Session } from './session';
import type { Webhook } from './webhook';
import { operatorAuthorization, Tenant } from './world';

const ATTEMPTS = 5;
/** On a slow machine one kill after the other meets the same request. */
const ATTEMPTS_BETWEEN_KILLS = 20;

/** While connections to the database are terminated, nobody knows what became of a write that was answered 503. */
export class Interrupted extends Error {}

export interface Answered {
  answer: Answer;
  json: unknown;
}

/** A running service with the fuzzer's world in it. */
export class Target {
  /** Tenant 0 is for requests that stand alone. */
  readonly tenant = new Tenant(0);
  readonly jwts = new Map<string, string>();
  /** The ids of requests that were answered 503 and sent again. */
  readonly turnedAway = new Set<string>();
  /** How many requests were sent by nobody of `clients`. */
  sentOtherwise = 0;
  /** Whether connections to the database are terminated meanwhile. */
  kills = false;
  private readonly sessions = new Map<string, Promise<Session>>();
  private lastSession: Promise<unknown> = Promise.resolve();

  private constructor(
    /** One for each replica. */
    private readonly clients: Client[],
    readonly sql: Pool,
    readonly operations: Map<string, Operation>,
    readonly contract: Contract,
    readonly coverage: Coverage,
    readonly front?: Front,
    readonly webhook?: Webhook,
  ) {}

  static async open(bases: string[], sql: Pool, front?: Front, webhook?: Webhook): Promise<Target> {
    const clients = bases.map((base) => new Client(base));
    const documentAt = async (path: string) => {
      const headers: Message['headers'] = [['Authorization', operatorAuthorization]];
      const { body } = await clients[0]!.exchange(bytesOf({ method: 'GET', path, headers }));
      return JSON.parse(body) as Document & OpenAPIObject;
    };
    const documents = [
      await documentAt('/openapi.json'),
      await documentAt('/operator/openapi.json'),
    ] as const;
    const operations = new Map(documents.flatMap((document) => [...operationsOf(document)]));
    const coverage = new Coverage([...operations.keys()]);
    // The operator's, with whose token nothing else is asked.
    coverage.count('GET /operator/openapi.json', 200);
    const contract = new Contract(...documents);
    const target = new Target(clients, sql, operations, contract, coverage, front, webhook);
    for (const [letter, user] of Object.entries({ a: 1, b: 2 }))
      target.jwts.set(letter, await target.subkey(target.tenant.key(user)));
    return target;
  }

  /** Of the first replica. */
  get port(): number {
    return this.clients[0]!.port;
  }

  get sent(): number {
    return this.sentOtherwise + this.clients.reduce((all, { sent }) => all + sent, 0);
  }

  end(): void {
    for (const client of this.clients) client.end();
  }

  operation(name: string): Operation {
    const found = this.operations.get(name);
    if (!found) throw new Error(`the description has no ${name}`);
    return found;
  }

  credential(name: string): string {
    return credentialOf(this.tenant, name, this.jwts);
  }

  /** Sends, and holds the answer against what is true of all answers. */
  async send(message: Message, about: Partial<Asked> = {}, replica = 0): Promise<Answered> {
    // Nobody knows whether a write was made, or what is shown once was taken, when the answer is 503.
    const changes = message.method === 'POST' || about.makesCredential === true;
    const answer = await this.patientExchange(
      message,
      this.clients[replica % this.clients.length]!,
      this.kills && changes,
    );
    const { method, path } = message;
    const { operation, page } = about;
    this.coverage.count(operation?.name ?? (page ? `${method} ${page}` : 'other requests'), answer.status);
    return { answer, json: check(this.contract, { method, path, ...about }, answer) };
  }

  /**
   * A machine that is busy with other things may lose a connection to the database in time: that is answered 503, nothing is
   * written, and the caller tries again. Only who is told so every time has found something.
   */
  private async patientExchange(message: Message, client: Client, once: boolean): Promise<Answer> {
    const attempts = this.kills ? ATTEMPTS_BETWEEN_KILLS : ATTEMPTS;
    for (let attempt = 1; ; attempt++) {
      const answer = await client.exchange(bytesOf(message), message.method === 'HEAD');
      if (answer.status !== 503 || attempt === attempts) return answer;
      this.turnedAway.add(headerOf(answer, 'x-request-id')!);
      if (once) throw new Interrupted();
      await sleep(Math.min(attempt, ATTEMPTS) * 200);
    }
  }

  /** Sends an ask as its own method or another. */
  ask(ask: Ask, replica?: number): Promise<Answered> {
    const own = !ask.method || ask.operation.startsWith(`${ask.method} `);
    const operation = own ? this.operation(ask.operation) : undefined;
    const makesCredential = MAKE_CREDENTIALS.includes(ask.operation);
    const message = messageOf(ask, this.credential(ask.credential));
    return this.send(message, { operation, makesCredential }, replica);
  }

  /** Signing in costs a password's hash: once for each user, and one after the other. */
  session(tenant: Tenant, user: number): Promise<Session> {
    const username = tenant.username(user);
    let session = this.sessions.get(username);
    if (!session) {
      session = this.lastSession.then(() => new Session(this).signIn(username, tenant.password));
      this.lastSession = session.catch(() => this.sessions.delete(username));
      this.sessions.set(username, session);
    }
    return session;
  }

  private async subkey(key: string): Promise<string> {
    const fields = { game_id: String(this.tenant.base + 1), scope: 'profile:me' };
    const message = formMessage('/credentials/subkey', fields, [['Authorization', `Bearer ${key}`]]);
    const answer = await this.clients[0]!.exchange(bytesOf(message));
    return (JSON.parse(answer.body) as { key: string }).key;
  }
}

export const MAKE_CREDENTIALS = [
  'POST /credentials/subkey',
  'POST /oauth/token',
  'POST /oauth/device',
  'POST /oauth/device/poll',
];
