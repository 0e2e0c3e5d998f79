import type { GivenRows, Relations } from '../database/relations';
import type { BoundStatement } from '../database/statement';
import { checksOf, checkTogether } from './checks';
import { complete } from './completions';
import { deleteRecords } from './deletions';
import { addingSales, changeSales, defineSales, findSales } from './earnings';
import { findChanged, findStored, insertOf, storedQuery, write } from './merges';
import type { Problems } from './problems';
import type { RecordType } from './record-types';
import { findOutside, type Outside } from './references';
import { changedOf, deletedIn, ENTRIES, isNew, recordsOf, stagedIn, storedIn, storedOf } from './staged';

interface Steps {
  /** Called with each type that has records of given ids, before any is written. */
  reserveIds(type: RecordType): Promise<void>;
  beforeWrites?(outside: Outside): Promise<void>;
  onWrite?(type: RecordType): void;
  /** Ends the transaction. Called only where nothing is to be done after the statements that were sent. */
  commit?(): Promise<unknown>;
}

/** Checks the staged records, and brings the store to what they say. Throws ImportProblems if records are invalid. */
export async function merge(
  relations: Relations,
  types: RecordType[],
  partial: ReadonlySet<RecordType>,
  problems: Problems,
  { reserveIds, beforeWrites, onWrite, commit }: Steps,
): Promise<void> {
  const given = types.filter((type) => relations.rowsOf(stagedIn(type)));
  const purchase = given.find(({ name }) => name === 'purchase');
  const named = purchase && partial.has(purchase) && recordsOf(purchase);
  if (named)
    await relations.update(
      named,
      { id: 't.purchase_id' },
      { table: 'purchase_references', on: 't.reference = s.reference AND s.id IS NULL' },
    );
  for (const type of given) if (partial.has(type)) await complete(relations, type, problems);
  const outside = await findOutside(relations, types);
  // Collections first, in the order in which the service locks them.
  const inOrderOfLocks = [...given].sort(
    (a, b) => Number(b.name === 'collection') - Number(a.name === 'collection'),
  );
  const presumeNew = async () => {
    if (!purchase) return;
    await relations.keepNone(storedOf(purchase));
    await relations.keepNone(changedOf(purchase));
    await findSales(relations, purchase);
  };
  const findAllStored = async () => {
    for (const type of inOrderOfLocks)
      if (await findStored(relations, type)) await findChanged(relations, type);
      else await relations.keepNone(changedOf(type));
  };
  const check = checkTogether(relations, types, outside, problems);
  // With few records, round trips take the time: so the stored ones are found while the checks run.
  if (relations.few) await pipelined(check, pipelined(presumeNew(), findAllStored()));
  else await check;
  problems.throwIfAny();
  for (const type of given) if (type.key === 'id') await reserveIds(type);
  if (!relations.few) await findAllStored();

  if (purchase && (!relations.few || relations.rowsOf(storedIn(purchase))))
    await findSales(relations, purchase);
  // What is new by now stays so: an id that somebody else gives meanwhile is refused by the table, and not taken for a stored record.
  if (named) await relations.update(named, { id: `coalesce(s.id, nextval('purchases_id_seq'))` });
  await beforeWrites?.(outside);

  const writeAll = async () => {
    for (const type of given) {
      onWrite?.(type);
      await write(relations, type, purchase !== undefined);
    }
    await deleteRecords(relations, types, problems);
  };
  const game = given.find(({ name }) => name === 'game');
  const newGames = game && `SELECT s.id FROM ${stagedIn(game)} s WHERE ${isNew(game)}`;
  const sell = async () => purchase && changeSales(relations, purchase, newGames);
  const onlyNew = given.length === 1 && relations.rowsOf(storedIn(given[0]!)) === 0;
  if (!relations.few || !onlyNew || types.some((type) => relations.rowsOf(deletedIn(type)))) {
    await writeAll();
    await sell();
    return;
  }
  // New records of one type are written by one statement, and the next need not wait for its answer. Nor need COMMIT: a sum
  // that is a problem violates the table's constraint as well, and then nothing is left to commit.
  const sent = pipelined(writeAll(), sell());
  await pipelined(sent, Promise.resolve(commit?.()));
}

/**
 * Statements to send at once: the first one checks the records of a type, and the others write them if all are new and pass, and
 * do nothing otherwise. What others store meanwhile, the tables refuse.
 */
export async function statementsIfNew(
  relations: GivenRows,
  type: RecordType,
  types: RecordType[],
): Promise<[BoundStatement<{ is_new: string }>, ...BoundStatement[]]> {
  const check = relations.bind<{ is_new: string }>(await checkIfNew(relations, type, types));
  relations.onlyIf(`current_setting('${ALL_NEW}') = 'yes'`);
  await relations.keepNone(storedOf(type));
  await relations.keepNone(changedOf(type));
  const insert = relations.bind(insertOf(type));
  if (type.name !== 'purchase') return [check, insert];
  defineSales(relations, type);
  return [check, insert, relations.bind(addingSales)];
}

// Set by the first statement for those after it.
const ALL_NEW = 'gamewharf.import_is_new';

const checksIfNew = new Map<string, string>();

async function checkIfNew(relations: GivenRows, type: RecordType, types: RecordType[]): Promise<string> {
  const several = relations.rowsOf(stagedIn(type)) > 1;
  const key = `${type.name} ${several} ${relations.rowsOf(ENTRIES.name) > 0}`;
  const known = checksIfNew.get(key);
  if (known) return known;
  const checks = checksOf(relations, types, await findOutside(relations, types));
  const found = [...checks, storedQuery(type)].map((query) => `EXISTS (SELECT FROM (${query}) found)`);
  const made = `SELECT set_config('${ALL_NEW}', CASE WHEN ${found.join(' OR ')} THEN '' ELSE 'yes' END, true) AS is_new`;
  checksIfNew.set(key, made);
  return made;
}

/** Waits for work whose statements were sent one after the other. The first error is the cause of later ones. */
export async function pipelined<Result>(first: Promise<unknown>, second: Promise<Result>): Promise<Result> {
  second.catch(() => {});
  await first;
  return second;
}
