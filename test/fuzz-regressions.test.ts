import { Pool } from 'pg';
import { readRegression, regressions, replay, REPLAYING } from '../tools/fuzz/regressions';
import { importWorld } from '../tools/fuzz/server';
import { Target } from '../tools/fuzz/target';
import { OPERATOR_TOKEN, Tenant } from '../tools/fuzz/world';
import { pgTypes } from '../src/database/pg-types';
import { baseUrl, databaseUrl, PEPPER, useStore } from './support/store';

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
    Array.from({ length: REPLAYING.number + 1 }, (_, number) => new Tenant(number)),
    PEPPER,
  );
  pool = new Pool({ connectionString: databaseUrl(), types: pgTypes, max: 4 });
  target = await Target.open([baseUrl()], pool);
});

// What the fuzzer found once, as small as it could make it: see docs/fuzzing.md.
test.each(regressions())('%s', async (name) => {
  await replay(target, readRegression(name));
});
