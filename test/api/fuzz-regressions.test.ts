import { Pool } from 'pg';
import { pgTypes } from '../../src/platform/database/pg-types';
import { readRegression, regressions, replay } from '../../tools/fuzz/regressions';
import { importWorld } from '../../tools/fuzz/server';
import { Target } from '../../tools/fuzz/target';
import { FIRST_LANE, OPERATOR_TOKEN, Tenant } from '../support/world/world';
import { baseUrl, databaseUrl, PEPPER, useStore } from '../support/store';

let pool: Pool;
let target: Target;

// Before the store's own, which takes the database away.
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

// What the fuzzer found once, as small as it could make it: see docs/contributing/fuzzing.md.
test.each(regressions())('%s', async (name) => {
  await replay(target, readRegression(name));
});
