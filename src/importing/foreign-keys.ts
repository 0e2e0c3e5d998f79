import { type ClientBase, DatabaseError } from 'pg';
import type { TemporaryTables } from '../database/relations';
import { TRIGGERS_NOT_NEEDED } from './lists';
import { tablesOf } from './merges';
import { StoreChanged } from './problems';
import type { RecordType } from './record-types';
import type { Outside } from './references';
import { deletedIn, stagedIn, storedIn } from './staged';

/** With fewer rows the triggers stay on. */
const MIN_ROWS = 10_000;
const INSUFFICIENT_PRIVILEGE = '42501';

/**
 * Turns off the triggers of foreign keys for a large import, if the database role may: they take half of its time. The import
 * has checked all references itself, and locks the stored rows that they refer to.
 */
export async function skipForeignKeyTriggers(
  relations: TemporaryTables,
  types: RecordType[],
  outside: Outside,
): Promise<boolean> {
  const { client } = relations;
  const count = (nameOf: (type: RecordType) => string) =>
    types.reduce((sum, type) => sum + relations.rowsOf(nameOf(type)), 0);
  const stored = count(storedIn);
  const created = count(stagedIn) - stored;
  // Deletions need the triggers, which delete dependent rows.
  if (count(deletedIn)) return false;
  if (created < MIN_ROWS || created < stored || (await hasOwnTriggers(client, types))) return false;
  await client.query('SAVEPOINT triggers');
  try {
    await client.query('SET LOCAL session_replication_role = replica');
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === INSUFFICIENT_PRIVILEGE)) throw error;
    await client.query('ROLLBACK TO SAVEPOINT triggers');
    return false;
  }
  await lockReferences(relations, outside);
  return true;
}

/** The operator's own triggers would be turned off too, unless they are ENABLE ALWAYS. */
async function hasOwnTriggers(client: ClientBase, types: RecordType[]) {
  const { rowCount } = await client.query(
    `SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
     WHERE NOT t.tgisinternal AND t.tgenabled <> 'A'
       AND c.relname = ANY ($1::text[]) AND t.tgname <> ALL ($2::text[]) LIMIT 1`,
    [types.flatMap(tablesOf), TRIGGERS_NOT_NEEDED],
  );
  return Boolean(rowCount);
}

/** Locks the stored rows that the stream refers to against deletion, in the order of their ids. */
async function lockReferences(relations: TemporaryTables, outside: Outside) {
  for (const [parent, { from, rows: count }] of outside) {
    const wanted = [
      ...(relations.rowsOf(stagedIn(parent)) ? [storedIn(parent)] : []),
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
