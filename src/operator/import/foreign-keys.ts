import { type ClientBase, DatabaseError } from 'pg';
import type { TemporaryTables } from '../../platform/database/relations';
import { StoreChanged } from './problems';
import type { RecordType } from './record-types/record-type';
import type { Outside } from './references';
import { tablesOf } from './write-records';

/** With fewer rows the triggers stay on. */
const MIN_ROWS = 10_000;
/** The import does the work of these itself. */
const OWN_TRIGGERS = [
  'purchase_games_take_buyer',
  'purchases_carry_buyer',
  'purchase_games_take_sold_at',
  'purchases_carry_sold_at',
  'download_keys_take_buyer',
  'download_keys_change_buyer',
  'games_take_owner_name',
  'games_change_owner_name',
  'users_carry_username',
];
const INSUFFICIENT_PRIVILEGE = '42501';

/** Turns off the triggers of foreign keys for a large import, if the database role may: they take half of its time. */
export async function skipForeignKeyTriggers(
  relations: TemporaryTables,
  types: RecordType[],
  outside: Outside,
): Promise<void> {
  const { client } = relations;
  const count = (rows: 'records' | 'stored' | 'deleted') =>
    types.reduce((sum, type) => sum + relations.rowsOf(type[rows]), 0);
  const stored = count('stored');
  const created = count('records') - stored;
  // Deletions need the triggers, which delete dependent rows.
  if (count('deleted') || created < MIN_ROWS || created < stored) return;
  if (await hasTriggersOfOperator(client, types)) return;
  await client.query('SAVEPOINT triggers');
  try {
    await client.query('SET LOCAL session_replication_role = replica');
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === INSUFFICIENT_PRIVILEGE)) throw error;
    await client.query('ROLLBACK TO SAVEPOINT triggers');
    return;
  }
  await lockReferences(relations, outside);
}

/** These would be turned off too, unless they are ENABLE ALWAYS. */
async function hasTriggersOfOperator(client: ClientBase, types: RecordType[]) {
  const { rowCount } = await client.query(
    `SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
     WHERE NOT t.tgisinternal AND t.tgenabled <> 'A'
       AND c.relname = ANY ($1::text[]) AND t.tgname <> ALL ($2::text[]) LIMIT 1`,
    [types.flatMap(tablesOf), OWN_TRIGGERS],
  );
  return Boolean(rowCount);
}

/** References were checked. Locks the stored rows that they lead to against deletion, in the order of their ids. */
async function lockReferences(relations: TemporaryTables, outside: Outside) {
  for (const [parent, { from, rows: count }] of outside) {
    const wanted = [
      ...(relations.rowsOf(parent.records) ? [parent.stored.name] : []),
      ...(count ? [from] : []),
    ];
    if (wanted.length === 0) continue;
    const { rows } = await relations.query<{ gone: number }>(`
      WITH wanted AS MATERIALIZED (
        ${wanted.map((table) => `SELECT id FROM ${table}`).join(' UNION ALL ')}
      ), locked AS MATERIALIZED (
        SELECT t.id FROM ${parent.table} t WHERE t.id IN (SELECT id FROM wanted) ORDER BY t.id FOR KEY SHARE
      )
      SELECT (SELECT count(*) FROM wanted) - (SELECT count(*) FROM locked) AS gone`);
    if (Number(rows[0]!.gone)) throw new StoreChanged();
  }
}
