/**
 * Loaded before the service (`node -r`) to remove one protection from the tested build: the control that shows what the
 * protection does.
 */
import 'reflect-metadata';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { DatabaseClient } from '../../src/platform/database/client';
import { connectionOptions } from '../../src/platform/database/data-source';
import * as sqlstates from '../../src/platform/database/sqlstates';
import { Admission } from '../../src/platform/server/admission';
import { Database } from '../../src/platform/database/database';
import { statement } from '../../src/platform/database/statement';
import { WebhookDeliveries } from '../../src/operator/webhooks/webhook-deliveries.service';
import { RedisStorage } from '../../src/platform/limits/redis-storage';

// The longest that a timer of Node accepts.
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

const PROTECTIONS = {
  /** Nothing limits waits for the database. */
  deadlines() {
    withoutSweep();
    replace(connectionOptions, {
      connectionTimeoutMillis: LONGEST_TIMEOUT_MS,
      query_timeout: LONGEST_TIMEOUT_MS,
      onConnect: () => undefined,
    });
  },
  /** No client is disconnected for not reading or for sending slowly. */
  'read timeouts': withoutSweep,
  /** Nothing handles the errors of a connection while it is in use. */
  'error listeners'() {
    // The class itself stays: the pool of the same file uses it, not what the file exports.
    replace(methods(DatabaseClient), {
      on(this: Client, event: string, listener: () => void) {
        return event === 'error' ? this : Reflect.apply(Client.prototype.on, this, [event, listener]);
      },
    });
  },
  /** A database error is handled like any other error. */
  'database error mapping'() {
    replace(sqlstates, { classifyFault: () => undefined });
  },
  /** A closed connection ends only the request being processed, not those behind it. */
  'connection cleanup'() {
    replace(methods(Admission), { disconnect: () => undefined });
  },
  /** Redis is used with a default client, and waited for. */
  'Redis timeouts'() {
    let redis: Redis | undefined;
    const count = async (key: string) => {
      redis ??= new Redis(process.env.REDIS_URL!);
      await redis.incr(key);
      return undefined;
    };
    replace(methods(RedisStorage), { count });
  },
  /** A message is deleted when it is sent, not after the response. */
  outbox() {
    const forget = statement('forget_webhook_delivery', 'DELETE FROM webhook_deliveries WHERE id = $id');
    type Deliveries = { database: Database; attempt(due: { id: string }): Promise<void> };
    const deliveries = WebhookDeliveries.prototype as unknown as Deliveries;
    const { attempt } = deliveries;
    deliveries.attempt = async function (due) {
      await this.database.rows(forget, { id: due.id });
      await attempt.call(this, due);
    };
  },
};

/** The methods of a class, including private ones. */
const methods = (type: { prototype: object }) => type.prototype as Record<string, unknown>;

/** Fails if the protection was renamed, because the control would then be as protected as the service. */
function replace<Target extends object>(target: Target, changes: Partial<Target>): void {
  for (const name of Object.keys(changes))
    if (!(name in target)) throw new Error(`${name} doesn't exist: correct the control`);
  Object.assign(target, changes);
}

function withoutSweep(): void {
  replace(methods(Admission), { sweep: () => undefined });
}

export type Protection = keyof typeof PROTECTIONS;

const missing = process.env.CHAOS_WITHOUT as Protection | undefined;
if (missing) PROTECTIONS[missing]();
