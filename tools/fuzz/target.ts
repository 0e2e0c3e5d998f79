import { setTimeout as sleep } from 'node:timers/promises';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Pool } from 'pg';
import { Contract } from '../../test/support/contract';
import {
  type Ask,
  encodeMessage,
  formMessage,
  type Message,
  buildMessage,
} from '../../test/support/world/message';
import { type HttpResponse, Client, findHeader } from '../../test/support/floods/client';
import { Coverage } from './coverage';
import { buildCredential } from './credentials';
import { type Document, type Operation, readOperations } from './operations';
import { check, type Asked } from './oracles';
import type { Webhook } from './webhook';
import { operatorAuthorization, Tenant } from '../../test/support/world/world';

const ATTEMPTS = 5;

export interface Received {
  response: HttpResponse;
  json: unknown;
}

/** A running service with the fuzzer's world in it. */
export class Target {
  /** Tenant 0 is for independent requests. */
  readonly tenant = new Tenant(0);
  readonly jwts = new Map<string, string>();
  /** The IDs of requests that failed with 503 and were retried. */
  readonly retried = new Set<string>();

  private constructor(
    /** One per replica. */
    private readonly clients: Client[],
    readonly sql: Pool,
    readonly operations: Map<string, Operation>,
    readonly contract: Contract,
    readonly coverage: Coverage,
    readonly webhook?: Webhook,
  ) {}

  static async open(bases: string[], sql: Pool, webhook?: Webhook): Promise<Target> {
    const clients = bases.map((base) => new Client(base));
    const documentAt = async (path: string) => {
      const headers: Message['headers'] = [['Authorization', operatorAuthorization]];
      const { body } = await clients[0]!.exchange(encodeMessage({ method: 'GET', path, headers }));
      return JSON.parse(body) as Document & OpenAPIObject;
    };
    const documents = [
      await documentAt('/openapi.json'),
      await documentAt('/operator/openapi.json'),
    ] as const;
    const operations = new Map(documents.flatMap((document) => [...readOperations(document)]));
    const coverage = new Coverage([...operations.keys()]);
    // This operation needs the operator's token, with which no other request is sent.
    coverage.count('GET /operator/openapi.json', 200);
    const contract = new Contract(...documents);
    const target = new Target(clients, sql, operations, contract, coverage, webhook);
    for (const [letter, user] of Object.entries({ a: 1, b: 2 }))
      target.jwts.set(letter, await target.subkey(target.tenant.key(user)));
    return target;
  }

  get sent(): number {
    return this.clients.reduce((all, { sent }) => all + sent, 0);
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
    return buildCredential(this.tenant, name, this.jwts);
  }

  /** Sends a request, and checks the response against the rules for all responses. */
  async send(message: Message, about: Partial<Asked> = {}, replica = 0): Promise<Received> {
    const response = await this.patientExchange(message, this.clients[replica % this.clients.length]!);
    const { method, path } = message;
    this.coverage.count(about.operation?.name ?? 'other methods', response.status);
    return { response, json: check(this.contract, { method, path, ...about }, response) };
  }

  /**
   * A busy machine may time out a database connection: the response is 503, nothing is written, and the client retries.
   * Only a request that always fails with 503 is a finding.
   */
  private async patientExchange(message: Message, client: Client): Promise<HttpResponse> {
    for (let attempt = 1; ; attempt++) {
      const response = await client.exchange(encodeMessage(message), message.method === 'HEAD');
      if (response.status !== 503 || attempt === ATTEMPTS) return response;
      this.retried.add(findHeader(response, 'x-request-id')!);
      await sleep(attempt * 200);
    }
  }

  /** Sends a request with its own method or another. */
  ask(ask: Ask, replica?: number): Promise<Received> {
    const own = !ask.method || ask.operation.startsWith(`${ask.method} `);
    const operation = own ? this.operation(ask.operation) : undefined;
    const makesCredential = MAKE_CREDENTIALS.includes(ask.operation);
    const message = buildMessage(ask, this.credential(ask.credential));
    return this.send(message, { operation, makesCredential }, replica);
  }

  private async subkey(key: string): Promise<string> {
    const fields = { game_id: String(this.tenant.base + 1), scope: 'profile:me' };
    const message = formMessage('/credentials/subkey', fields, [['Authorization', `Bearer ${key}`]]);
    const response = await this.clients[0]!.exchange(encodeMessage(message));
    return (JSON.parse(response.body) as { key: string }).key;
  }
}

const MAKE_CREDENTIALS = [
  // The response contains the proof of ownership.
  'GET /games/{game_id}/ownership',
  'POST /credentials/subkey',
  'POST /oauth/token',
  'POST /oauth/device',
  'POST /oauth/device/poll',
];
