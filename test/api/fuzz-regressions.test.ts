import { Pool } from 'pg';
import { pgTypes } from '../../src/platform/database/pg-types';
import { MetricsService } from '../../src/platform/observability/metrics.service';
import type { Front } from '../../tools/fuzz/front';
import { Metrics } from '../../tools/fuzz/metrics';
import { readRegression, regressions, replay } from '../../tools/fuzz/regressions';
import { importWorld } from '../../tools/fuzz/server';
import { Target } from '../../tools/fuzz/target';
import { ATTACKER, OPERATOR_TOKEN, Tenant } from '../../tools/fuzz/world';
import { baseUrl, databaseUrl, PEPPER, theApp, useStore } from '../support/store';

let pool: Pool;
let target: Target;

// Before the store's own, which takes the database away.
afterAll(async () => {
  target?.end();
  await pool?.end();
});

useStore({ OPERATOR_TOKEN, METRICS_PORT: '0' });

beforeAll(async () => {
  await importWorld(
    databaseUrl(),
    Array.from({ length: ATTACKER.number + 1 }, (_, number) => new Tenant(number)),
    PEPPER,
  );
  pool = new Pool({ connectionString: databaseUrl(), types: pgTypes, max: 4 });
  target = await Target.open([baseUrl()], pool, frontOf(baseUrl()));
});

// What the fuzzer found once, as small as it could make it: see docs/explanation/fuzzing.md.
test.each(regressions())('%s', async (name) => {
  await replay(target, readRegression(name));
});

function frontOf(base: string): Front {
  const metrics = new Metrics(`http://127.0.0.1:${theApp().get(MetricsService).port}`, process.pid);
  return {
    base,
    port: Number(new URL(base).port),
    metrics,
    leaked: 0,
    isRunning: () => true,
    restart: () => Promise.reject(new Error('a service within a test is not started again')),
  };
}
