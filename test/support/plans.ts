import type { Client } from 'pg';
import { bind, type Statement, type Values } from '../../src/platform/database/statement';
import { statementNamed } from './declared-statements';

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Join Filter'?: number;
  Plans?: Node[];
}

export interface Plan {
  /** Tables with sequential scans. */
  scanned: string[];
  /** Tables whose rows are read, in addition to their indexes. */
  tablesRead: string[];
  sorted: boolean;
  /** Whether the plan caches the results of repeated lookups (memoization). */
  remembers: boolean;
  /** Pages of 8 kB read: an index probe needs three or four. */
  pages: number;
  /** Rows that the steps of the plan produced or compared, repetitions included. */
  rows: number;
}

interface Explained {
  Plan: Node;
  'Execution Time': number;
}

/** A statement, or the name of one in statements.sql. */
type Named = Statement | string;

/** The plan of a prepared statement with these values, whichever values it was planned for. */
export async function explainPlan(client: Client, statement: Named, values: Values): Promise<Plan> {
  const [{ Plan: root }] = await explained(client, statement, values, 1);
  const nodes = flattenNodes(root);
  return {
    scanned: nodes
      .filter((node) => node['Node Type'].endsWith('Seq Scan'))
      .map((node) => node['Relation Name']!),
    tablesRead: nodes
      .filter((node) => READS_ROWS.test(node['Node Type']))
      .map((node) => node['Relation Name']!),
    sorted: nodes.some((node) => node['Node Type'].endsWith('Sort')),
    remembers: nodes.some((node) => node['Node Type'] === 'Memoize'),
    pages: (root['Shared Hit Blocks'] ?? 0) + (root['Shared Read Blocks'] ?? 0),
    rows: nodes.reduce(
      (sum, node) =>
        sum + (node['Actual Rows'] + (node['Rows Removed by Join Filter'] ?? 0)) * node['Actual Loops'],
      0,
    ),
  };
}

const READS_ROWS = /Seq Scan$|^Index Scan$|^Bitmap Heap Scan$/;

const flattenNodes = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(flattenNodes)];

/** The shortest of several executions in milliseconds, because other work on the machine delays some. */
export async function measureExecution(client: Client, statement: Named, values: Values): Promise<number> {
  const all = await explained(client, statement, values, 9);
  return Math.min(...all.map((one) => one['Execution Time']));
}

/** Whether PostgreSQL executes the statement with one plan for all values, after the five that it always creates. */
export async function isPlannedOnce(client: Client, statement: Named, values: Values): Promise<boolean> {
  const bound = bind(resolved(statement), values);
  const { name, text } = bound.statement;
  await client.query('SET plan_cache_mode = auto');
  const prepared = `planned ${name}`;
  for (let i = 0; i < 8; i++) await client.query({ name: prepared, text, values: bound.values });
  const { rows } = await client.query<{ generic: number }>(
    'SELECT generic_plans::integer AS generic FROM pg_prepared_statements WHERE name = $1',
    [prepared],
  );
  return rows[0]!.generic >= 3;
}

const resolved = (statement: Named) =>
  typeof statement === 'string' ? statementNamed(statement) : statement;

async function explained(
  client: Client,
  statement: Named,
  values: Values,
  times: number,
): Promise<[Explained, ...Explained[]]> {
  const bound = bind(resolved(statement), values);
  const { name, text } = bound.statement;
  await client.query(`SET plan_cache_mode = force_generic_plan`);
  await client.query(`PREPARE "${name}" AS ${text}`);
  const literals = bound.values.map((value) =>
    value === null
      ? 'NULL'
      : client.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : String(value)),
  );
  const all: Explained[] = [];
  while (all.length < times) {
    const { rows } = await client.query<{ 'QUERY PLAN': [Explained] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE "${name}" ${literals.length > 0 ? `(${literals.join()})` : ''}`,
    );
    all.push(rows[0]!['QUERY PLAN'][0]);
  }
  await client.query(`DEALLOCATE "${name}"`);
  return all as [Explained, ...Explained[]];
}
