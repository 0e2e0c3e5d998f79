import type { Relations } from '../../platform/database/relations';
import { checkTogether, find } from './checks';
import { deleteRecords } from './deletions';
import { changeSales, findSales } from './earnings';
import { findAhead, reserveIds } from './ids';
import { completePartial } from './partial-records';
import type { Problems } from './problems';
import { COLLECTION } from './record-types/collection';
import { GAME } from './record-types/game';
import { PURCHASE } from './record-types/purchase';
import { isNew, type RecordType } from './record-types/record-type';
import { findOutside } from './references';
import {
  differentObjects,
  findChanged,
  findStored,
  lockChanged,
  lockChangedKeys,
  writeChanged,
  writeNew,
} from './write-records';

interface Steps {
  onWrite?(type: RecordType): void;
  /** Ends the transaction. Called only if nothing has to be done after the statements already sent. */
  commit?(): Promise<unknown>;
}

/** Checks the staged records, and applies them to the store. Throws ImportProblems if records are invalid. */
export async function merge(
  relations: Relations,
  types: RecordType[],
  partial: ReadonlySet<RecordType>,
  problems: Problems,
  { onWrite, commit }: Steps,
): Promise<void> {
  const given = types.filter(({ records }) => relations.rowsOf(records));
  const hasPurchases = given.includes(PURCHASE);
  const mayLackIds = hasPurchases && partial.has(PURCHASE);
  if (mayLackIds)
    await relations.update(
      PURCHASE.records,
      { id: 't.purchase_id' },
      { table: 'purchase_references', on: 't.reference = s.reference AND s.id IS NULL' },
    );
  for (const type of given) if (partial.has(type)) await completePartial(relations, type, problems);
  const outside = await findOutside(relations, types);

  // Sales lock games last, and in the order of their IDs. A partial game is locked already, and another slug may be that
  // of a new game.
  let gamesLast = false;
  const findAllStored = async () => {
    // Collections first, in the order in which the service locks them.
    for (const type of given.toSorted((a, b) => Number(b === COLLECTION) - Number(a === COLLECTION)))
      if (!(await findStored(relations, type))) await relations.keepNone(type.changed);
      else if ((await findChanged(relations, type)) > 0 && !type.isDeletedByService) {
        if (type === GAME) gamesLast = !partial.has(GAME) && (await lockChangedKeys(relations)) === 0;
        if (type !== GAME || !gamesLast) await lockChanged(relations, type);
      }
  };
  const checked = checkTogether(relations, types, outside, problems);
  // With few records, round trips dominate, so the stored ones are looked up during the checks.
  const ahead = relations.isSmall
    ? await pipelined(checked, pipelined(findAllStored(), findAhead(relations, given)))
    : await checked.then(() => findAhead(relations, given));
  problems.throwIfAny();
  for (const type of ahead) await reserveIds(relations, type);
  if (!relations.isSmall) await findAllStored();
  const changedTypes = given.filter(({ changed }) => relations.rowsOf(changed));
  await find(
    relations,
    changedTypes.flatMap((type) => differentObjects(type) ?? []),
    problems,
  );
  problems.throwIfAny();

  const sales = hasPurchases ? await findSales(relations) : undefined;
  // IDs treated as new stay new; a concurrent duplicate fails on the unique constraint.
  if (mayLackIds)
    await relations.update(PURCHASE.records, { id: `coalesce(s.id, nextval('purchases_id_seq'))` });

  const writeAll = async () => {
    for (const type of given) {
      onWrite?.(type);
      if (relations.rowsOf(type.changed) && !(type === GAME && gamesLast))
        await writeChanged(relations, type);
      await writeNew(relations, type, sales);
    }
    await deleteRecords(relations, types, problems);
    if (!gamesLast) return;
    const sold =
      sales && `UNION ALL SELECT game_id FROM ${sales.from} changes WHERE game_id NOT IN (${newGames})`;
    await lockChanged(relations, GAME, sold);
    await writeChanged(relations, GAME);
  };
  const newGames = given.includes(GAME)
    ? `SELECT s.id FROM ${GAME.records.name} s WHERE ${isNew(GAME.table)}`
    : undefined;
  const sell = async () => sales && changeSales(relations, sales, newGames);
  const isOneInsert =
    relations.isSmall &&
    given.length === 1 &&
    relations.rowsOf(given[0]!.stored) === 0 &&
    !types.some(({ deleted }) => relations.rowsOf(deleted));
  if (!isOneInsert) {
    await writeAll();
    await sell();
    return;
  }
  // Neither the next statements nor COMMIT need its result: an invalid sum also violates the table's constraint, and
  // then there is nothing left to commit.
  const sent = pipelined(writeAll(), sell());
  await pipelined(sent, Promise.resolve(commit?.()));
}

/** Waits for work whose statements were sent one after the other. The first error is the cause of later ones. */
export async function pipelined<Result>(first: Promise<unknown>, second: Promise<Result>): Promise<Result> {
  second.catch(() => {});
  await first;
  return second;
}
