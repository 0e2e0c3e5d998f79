import type { Relations } from '../../platform/database/relations';
import { type Sales, salesOfGames } from './earnings';
import { StoreChanged } from './problems';
import { type Field, given } from './record-types/fields';
import { GAME } from './record-types/game';
import { isChanged, isNew, type RecordType } from './record-types/record-type';

interface Column {
  name: string;
  field: Field;
  /** Whether the record has the field. */
  given: string;
}

const columnsOf = ({ fields }: RecordType): Column[] =>
  fields
    .filter(({ inOtherTable }) => !inOtherTable)
    .flatMap((field) => {
      const has = given(fields, field.name);
      return field.columns.map(({ name }) => ({ name, field, given: has }));
    });

/** The new value of a stored record `t`: an absent optional field is unchanged. */
const valueFor = ({ name, field, given }: Column, otherwise = `t.${name}`) =>
  field.required ? `s.${name}` : `CASE WHEN ${given} THEN s.${name} ELSE ${otherwise} END`;

/** The value of a new record. */
const newValueFor = ({ name, field }: Column) => (field.now ? `coalesce(s.${name}, now())` : `s.${name}`);

/** Not a purchase identified by its reference, because the service assigned its ID. */
const hasOwnId = ({ fields, key }: RecordType) => given(fields, key);

export const tablesOf = ({ table, lists }: RecordType) => [table, ...(lists?.tables ?? [])];

const storedQuery = ({ table, key, records }: RecordType) =>
  `SELECT s.line, t.${key} FROM ${records.name} s JOIN ${table} t ON t.${key} = s.${key}`;

/** Finds the stored records, and locks those that might be deleted, in the order of their IDs. */
export async function findStored(relations: Relations, type: RecordType) {
  const lock = type.isDeletedByService ? `ORDER BY t.${type.key} FOR NO KEY UPDATE OF t` : '';
  return relations.keep(type.stored, `${storedQuery(type)} ${lock}`);
}

/** Finds the stored records that the stream changes. */
export async function findChanged(relations: Relations, type: RecordType) {
  const { key, changed, lists } = type;
  for (const { relation, sql } of lists?.prepare ?? []) await relations.keep(relation, sql);
  const columns = columnsOf(type);
  return relations.keep(
    changed,
    `${storedQuery(type)}
     WHERE s.${key} IN (SELECT ${key} FROM ${type.stored.name})
       AND ((${columns.map(({ name }) => `t.${name}`).join(', ')})
         IS DISTINCT FROM (${columns.map((column) => valueFor(column)).join(', ')}) ${lists ? `OR ${lists.differ}` : ''})`,
  );
}

/** Locks the changed records, and others that `also` selects, in the order of their IDs. */
export async function lockChanged(relations: Relations, { table, key, changed }: RecordType, also = '') {
  const { rows } = await relations.query<{ locked: number }>(`
    WITH locked AS MATERIALIZED (
      SELECT t.${key} FROM ${table} t
      WHERE t.${key} IN (SELECT ${key} FROM ${changed.name} ${also}) ORDER BY t.${key} FOR NO KEY UPDATE
    )
    SELECT count(*)::int AS locked FROM locked WHERE ${key} IN (SELECT ${key} FROM ${changed.name})`);
  if (rows[0]!.locked < relations.rowsOf(changed)) throw new StoreChanged();
}

const NEW_OWNERS = `
  SELECT s.user_id FROM ${GAME.records.name} s LEFT JOIN games t ON t.id = s.id WHERE t.user_id IS DISTINCT FROM s.user_id`;
const WITH_NEW_KEY = `
  SELECT t.id FROM ${GAME.records.name} s JOIN games t ON t.id = s.id WHERE t.user_id <> s.user_id OR t.slug <> s.slug`;

/**
 * Locks the games that get another owner or slug, which needs a stronger lock. A sale has a weaker one before it waits
 * for a game, so the two would deadlock if the game were locked twice. Returns the number of these games.
 */
export async function lockChangedKeys(relations: Relations): Promise<number> {
  // Owners before games, in the order in which a rename locks them.
  const owners = relations.query(`SELECT FROM users WHERE id IN (${NEW_OWNERS}) ORDER BY id FOR SHARE`);
  const games = relations.query<{ locked: number }>(`
    WITH locked AS MATERIALIZED (SELECT id FROM games WHERE id IN (${WITH_NEW_KEY}) ORDER BY id FOR UPDATE)
    SELECT count(*)::int AS locked FROM locked`);
  const [{ rows }] = await Promise.all([games, owners]);
  return rows[0]!.locked;
}

/** Finds records with the ID of another object, which the service created. */
export function differentObjects(type: RecordType): string | undefined {
  const { table, records, changed, subject, createdByService } = type;
  if (!createdByService) return undefined;
  const { differs, as } = createdByService;
  return `
    SELECT s.line, ${subject} || ': was created by this service ${as}' AS text
    FROM ${records.name} s JOIN ${table} t USING (id)
    WHERE id IN (SELECT id FROM ${changed.name}) AND NOT t.imported_id AND ${hasOwnId(type)} AND (${differs})`;
}

/** Writes the new records. New games get the counts of the stream's purchases. */
export async function writeNew(relations: Relations, type: RecordType, sales: Sales | undefined) {
  if (relations.rowsOf(type.records) === relations.rowsOf(type.stored)) return;
  for (const insert of relations.isSmall ? [insertAtOnce(type, sales)] : insertsOf(type, sales))
    await relations.query(insert);
}

export async function writeChanged(relations: Relations, type: RecordType) {
  const { table, key, records, changed, swap, lists, hasUpdatedAt } = type;
  const columns = columnsOf(type);
  if (swap)
    await relations.query(`
      UPDATE ${table} t SET ${swap.value} = '_' || md5(random()::text || t.id)
      WHERE t.id IN (SELECT id FROM ${changed.name})
        AND EXISTS (SELECT FROM ${records.name} s WHERE ${swap.clash} AND s.id <> t.id)`);
  const assignments = columns
    .filter(({ name }) => name !== key)
    // A changed collection was updated now, unless the stream contains a time.
    .map(
      (column) => `${column.name} = ${valueFor(column, column.name === 'updated_at' ? 'now()' : undefined)}`,
    )
    .concat(hasUpdatedAt ? 'updated_at = now()' : []);
  await relations.query(`
    UPDATE ${table} t SET ${assignments.join(', ')}
    FROM ${records.name} s WHERE s.${key} = t.${key} AND ${isChanged(table, key)}`);
  for (const statement of lists?.change ?? []) await relations.query(statement);
}

/**
 * None of the inserts reads what another writes, so one statement can run all of them. Foreign keys are checked at its
 * end.
 */
const insertAtOnce = (type: RecordType, sales: Sales | undefined) =>
  `WITH ${insertsOf(type, sales)
    .map((one, i) => `write_${i} AS (${one})`)
    .join(', ')} SELECT`;

function insertsOf(type: RecordType, sales: Sales | undefined): string[] {
  const columns = columnsOf(type);
  const sold = type === GAME && sales;
  const all = [
    ...columns.map((column) => ({ name: column.name, value: newValueFor(column) })),
    ...(type.createdByService ? [{ name: 'imported_id', value: hasOwnId(type) }] : []),
    ...(sold ? [{ name: 'purchases_count', value: 'coalesce(d.purchases, 0)' }] : []),
  ];
  return [
    `INSERT INTO ${type.table} (${all.map(({ name }) => name).join(', ')})
     SELECT ${all.map(({ value }) => value).join(', ')}
     FROM ${type.records.name} s ${sold ? salesOfGames(sold) : ''} WHERE ${isNew(type.table, type.key)}`,
    ...(type.lists?.create ?? []),
  ];
}
