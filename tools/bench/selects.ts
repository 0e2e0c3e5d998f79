/**
 * The SELECTs of the sampled requests with nothing around them, for pgbench: what the database alone makes of an endpoint.
 * They are the floor's, which tells them when it is asked.
 */
import { lineOf, type Script } from './pgbench';
import { authorization, type Workload } from './requests';
import type { Store } from './store';

// Each is planned on each connection before it counts.
const REQUESTS = 12;

interface Query {
  text: string;
  values: unknown[];
}

export async function selectsOf(
  { url, pepper }: Store,
  workloads: Workload[],
): Promise<Map<string, Script[]>> {
  // The floor reads its settings when it is loaded.
  Object.assign(process.env, { DATABASE_URL: url, API_KEY_PEPPER: pepper, DATABASE_POOL_SIZE: '1' });
  const { answer, pool } = await import('./servers/floor.js');
  const asked: Query[] = [];
  const query = pool.query.bind(pool) as (query: Query) => Promise<unknown>;
  Object.assign(pool, {
    query(one: Query) {
      asked.push(one);
      return query(one);
    },
  });
  const scripts = new Map<string, Script[]>();
  for (const { endpoint, sample } of workloads) {
    const ofEndpoint: Script[] = [];
    for (const { path, key } of sample.slice(0, REQUESTS)) {
      await answer(path, authorization(key));
      const lines = asked.splice(0).map(({ text, values }) => lineOf({ text }, values.map(literal)));
      ofEndpoint.push({ variables: [], lines });
    }
    scripts.set(endpoint, ofEndpoint);
  }
  await pool.end();
  return scripts;
}

function literal(value: unknown): string {
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'::bytea`;
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
}
