import { completeBundleSales, extendPurchases } from './bundle-sales';
import { checkTogether, find } from './checks';
import { deleteRecords } from './deletions';
import { changeSales, findSales, IMPORTED_SALES } from './earnings';
import { findAhead, reserveIds } from './ids';
import { completePartial } from './partial-records';
import type { Problems } from './problems';
import { PREVIOUS_HASHES } from './record-types/api-key';
import { COLLECTION_RECORD } from './record-types/collection';
import { GAME_RECORD } from './record-types/game';
import { PURCHASE_RECORD } from './record-types/purchase';
import { isNew, type RecordType } from './record-types/record-type';
import { findExternalReferences } from './references';
import type { TemporaryTables } from './temporary-tables';
import {
  differentObjects,
  findChanged,
  findStored,
  lockChanged,
  lockChangedKeys,
  writeChanged,
  writeNew,
} from './write-records';

/**
 * Checks the staged records, and applies them to the store. Throws ImportProblems if records are invalid. `onWrite` is
 * called before the records of each type are written.
 */
export async function applyRecords(
  tables: TemporaryTables,
  types: RecordType[],
  partial: ReadonlySet<RecordType>,
  problems: Problems,
  onWrite: (type: RecordType) => void,
): Promise<void> {
  if (tables.rowCount(PREVIOUS_HASHES)) await renewHashes(tables);
  const mayLackIds = partial.has(PURCHASE_RECORD) && tables.rowCount(PURCHASE_RECORD.records) > 0;
  if (mayLackIds) await findPurchaseIds(tables);
  await completeRecords(tables, types, partial, problems);
  const presentTypes = types.filter(({ records }) => tables.rowCount(records));
  await checkTogether(tables, types, await findExternalReferences(tables, types), problems);
  problems.throwIfAny();
  for (const type of await findAhead(tables, presentTypes)) await reserveIds(tables, type);

  const gamesLast = await lockStored(tables, presentTypes, partial);
  const changedTypes = presentTypes.filter(({ changed }) => tables.rowCount(changed));
  await find(
    tables,
    changedTypes.flatMap((type) => differentObjects(type) ?? []),
    problems,
  );
  problems.throwIfAny();

  const sales = presentTypes.includes(PURCHASE_RECORD) ? await findSales(tables) : 0;
  // IDs treated as new stay new; a concurrent duplicate fails on the unique constraint.
  if (mayLackIds)
    await tables.update(PURCHASE_RECORD.records, { id: `coalesce(s.id, nextval('purchases_id_seq'))` });

  for (const type of presentTypes) {
    onWrite(type);
    if (tables.rowCount(type.changed) && !(type === GAME_RECORD && gamesLast))
      await writeChanged(tables, type);
    await writeNew(tables, type, sales > 0);
  }
  await deleteRecords(tables, types, problems);

  const newGames = presentTypes.includes(GAME_RECORD)
    ? `SELECT s.id FROM ${GAME_RECORD.records.name} s WHERE ${isNew(GAME_RECORD.table)}`
    : undefined;
  if (gamesLast) {
    const sold = `UNION ALL SELECT game_id FROM ${IMPORTED_SALES.name} WHERE game_id NOT IN (${newGames})`;
    await lockChanged(tables, GAME_RECORD, sales > 0 ? sold : '');
    await writeChanged(tables, GAME_RECORD);
  }
  if (sales > 0) await changeSales(tables, newGames);
}

/** Stores the hashes of API keys under the current pepper. A second row of the same key would outlive its deletion. */
async function renewHashes(tables: TemporaryTables): Promise<void> {
  await tables.query(`
    UPDATE api_keys k SET key_hash = found.key_hash
    FROM (
      SELECT DISTINCT ON (p.key_hash) k.id, p.key_hash
      FROM ${PREVIOUS_HASHES.name} p JOIN api_keys k ON k.key_hash = p.previous_hash
      WHERE NOT EXISTS (SELECT FROM api_keys o WHERE o.key_hash = p.key_hash)
      ORDER BY p.key_hash, k.id DESC
    ) found
    WHERE k.id = found.id`);
  await tables.query(
    `DELETE FROM api_keys k USING ${PREVIOUS_HASHES.name} p WHERE k.key_hash = p.previous_hash`,
  );
}

/** Finds the IDs of stored purchases by their references. */
const findPurchaseIds = (tables: TemporaryTables) =>
  tables.update(
    PURCHASE_RECORD.records,
    { id: 't.purchase_id' },
    { table: 'purchase_references', on: 't.reference = s.reference AND s.id IS NULL' },
  );

/** Adds what partial records and sales of bundles leave out. */
async function completeRecords(
  tables: TemporaryTables,
  types: RecordType[],
  partial: ReadonlySet<RecordType>,
  problems: Problems,
): Promise<void> {
  for (const type of types)
    if (partial.has(type) && tables.rowCount(type.records)) {
      if (type === PURCHASE_RECORD) await completeBundleSales(tables);
      await completePartial(tables, type, problems);
    }
  await extendPurchases(tables);
}

/**
 * Finds the records that change stored rows, and locks these rows. Returns whether the games are left to be locked
 * last, in the order of their IDs, as sales do. Games are locked here if they are partial, or if their slugs change,
 * because a new game may take such a slug.
 */
async function lockStored(
  tables: TemporaryTables,
  presentTypes: RecordType[],
  partial: ReadonlySet<RecordType>,
): Promise<boolean> {
  let gamesLast = false;
  // Collections are first because the service locks them before other records.
  for (const type of presentTypes.toSorted(
    (a, b) => Number(b === COLLECTION_RECORD) - Number(a === COLLECTION_RECORD),
  ))
    if (!(await findStored(tables, type))) await tables.createEmpty(type.changed);
    else if ((await findChanged(tables, type)) > 0 && !type.isDeletedByService) {
      if (type === GAME_RECORD)
        gamesLast = !partial.has(GAME_RECORD) && (await lockChangedKeys(tables)) === 0;
      if (type !== GAME_RECORD || !gamesLast) await lockChanged(tables, type);
    }
  return gamesLast;
}
