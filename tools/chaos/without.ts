/**
 * Loaded before the service (`node -r`) to remove one protection from the tested build: the control that shows what the
 * protection does.
 */
import 'reflect-metadata';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import * as client from '../../src/platform/database/client';
import * as dataSource from '../../src/platform/database/data-source';
import * as sqlstates from '../../src/platform/database/sqlstates';
import { Admission } from '../../src/platform/server/in-flight';
import { Database } from '../../src/platform/database/database';
import { statement } from '../../src/platform/database/statement';
import { WebhookDeliveries } from '../../src/operator/webhooks/webhook-deliveries.service';
import { RedisStorage } from '../../src/platform/limits/redis-storage';

const PROTECTIONS = {
  /** Nothing limits waits for the database. */
  deadlines() {
    withoutSweep();
    const { dataSourceOptions } = dataSource;
    const patient: typeof dataSourceOptions = (settings) => {
      const { extra, ...options } = dataSourceOptions(settings);
      return { ...options, extra: { ...extra, connectionTimeoutMillis: 0, query_timeout: 0 } };
    };
    Object.assign(dataSource, { dataSourceOptions: patient });
  },
  /** No client is disconnected for not reading or for sending slowly. */
  'read timeouts': withoutSweep,
  /** Nothing handles the errors of a connection while it is in use. */
  'error listeners'() {
    Object.assign(client, { DatabaseClient: Client });
  },
  /** A database error is handled like any other error. */
  'database error mapping'() {
    Object.assign(sqlstates, { faultOf: () => undefined });
  },
  /** A closed connection ends only the request being processed, not those behind it. */
  'connection cleanup'() {
    Object.assign(Admission.prototype, { disconnect: () => undefined });
  },
  /** Redis is used with a default client, and waited for. */
  'Redis timeouts'() {
    let redis: Redis | undefined;
    const count = async (key: string) => {
      redis ??= new Redis(process.env.REDIS_URL!);
      await redis.incr(key);
      return undefined;
    };
    Object.assign(RedisStorage.prototype, { count });
  },
  /** A message is deleted when it is sent, not after the response. */
  outbox() {
    const forget = statement('forget_webhook_delivery', 'DELETE FROM webhook_deliveries WHERE id = $1');
    type Deliveries = { database: Database; attempt(due: { id: string }): Promise<void> };
    const deliveries = WebhookDeliveries.prototype as unknown as Deliveries;
    const { attempt } = deliveries;
    deliveries.attempt = async function (due) {
      await this.database.rows(forget, [due.id]);
      await attempt.call(this, due);
    };
  },
};

function withoutSweep(): void {
  Object.assign(Admission.prototype, { sweep: () => undefined });
}

export type Protection = keyof typeof PROTECTIONS;

const missing = process.env.CHAOS_WITHOUT as Protection | undefined;
if (missing) PROTECTIONS[missing]();
