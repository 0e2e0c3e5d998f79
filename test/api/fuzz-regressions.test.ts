import { Pool } from 'pg';
import { pgTypes } from '../../src/platform/database/pg-types';
import { readRegression, regressions, replay } from '../../tools/fuzz/regressions';
import { importWorld } from '../../tools/fuzz/server';
import { Target } from '../../tools/fuzz/target';
import { FIRST_LANE, OPERATOR_TOKEN, Tenant } from '../support/world/world';
import { baseUrl, databaseUrl, PEPPER, useStore } from '../support/app';

let pool: Pool;
let target: Target;

// Registered before the store's own hook, which disconnects the database.
afterAll(async () => {
  target?.end();
  await pool?.end();
});

useStore({ OPERATOR_TOKEN });

beforeAll(async () => {
  await importWorld(
    databaseUrl(),
    Array.from({ length: FIRST_LANE }, (_, number) => new Tenant(number)),
    PEPPER,
  );
  pool = new Pool({ connectionString: databaseUrl(), types: pgTypes, max: 4 });
  target = await Target.open([baseUrl()], pool);
});

// Minimized inputs that the fuzzer once found; see docs/contributing/robustness-tests.md#fuzzing.
test.each(regressions())('%s', async (name) => {
  await replay(target, readRegression(name));
});
