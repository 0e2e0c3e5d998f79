import type { TemporaryTables } from './temporary-tables';
import { PURCHASES_OF_GAMES } from './earnings';
import { StoreChanged } from './problems';
import { type Field, hasField } from './record-types/fields';
import { GAME_RECORD } from './record-types/game';
import { isChanged, isNew, type RecordType } from './record-types/record-type';

interface Column {
  name: string;
  field: Field;
  /** SQL condition: whether the record has the field. */
  isPresent: string;
}

const listColumns = ({ fields }: RecordType): Column[] =>
  fields
    .filter(({ inOtherTable }) => !inOtherTable)
    .flatMap((field) => {
      const isPresent = hasField(fields, field.name);
      return field.columns.map(({ name }) => ({ name, field, isPresent }));
    });

/** The new value of a stored record `t`: an absent optional field is unchanged. */
const valueFor = ({ name, field, isPresent }: Column, otherwise = `t.${name}`) =>
  field.required ? `s.${name}` : `CASE WHEN ${isPresent} THEN s.${name} ELSE ${otherwise} END`;

const newValueFor = ({ name, field }: Column) => (field.now ? `coalesce(s.${name}, now())` : `s.${name}`);

/** False for a purchase identified by its reference, because the service assigned its ID. */
const hasOwnId = ({ fields, key }: RecordType) => hasField(fields, key);

export const listTables = ({ table, childTables }: RecordType) => [table, ...(childTables?.tables ?? [])];

const storedQuery = ({ table, key, records }: RecordType) =>
  `SELECT s.line, t.${key} FROM ${records.name} s JOIN ${table} t ON t.${key} = s.${key}`;

/** Finds the stored records, and locks those that might be deleted, in the order of their IDs. */
export async function findStored(tables: TemporaryTables, type: RecordType) {
  const lock = type.isDeletedByService ? `ORDER BY t.${type.key} FOR NO KEY UPDATE OF t` : '';
  return tables.materialize(type.stored, `${storedQuery(type)} ${lock}`);
}

/** Finds the stored records that the stream changes. */
export async function findChanged(tables: TemporaryTables, type: RecordType) {
  const { key, changed, childTables } = type;
  for (const { table, sql } of childTables?.prepare ?? []) await tables.materialize(table, sql);
  const columns = listColumns(type);
  return tables.materialize(
    changed,
    `${storedQuery(type)}
     WHERE s.${key} IN (SELECT ${key} FROM ${type.stored.name})
       AND ((${columns.map(({ name }) => `t.${name}`).join(', ')})
         IS DISTINCT FROM (${columns.map((column) => valueFor(column)).join(', ')}) ${childTables ? `OR ${childTables.differ}` : ''})`,
  );
}

/** Locks the changed records, and others that `also` selects, in the order of their IDs. */
export async function lockChanged(tables: TemporaryTables, { table, key, changed }: RecordType, also = '') {
  const { rows } = await tables.query<{ locked: number }>(`
    WITH locked AS MATERIALIZED (
      SELECT t.${key} FROM ${table} t
      WHERE t.${key} IN (SELECT ${key} FROM ${changed.name} ${also}) ORDER BY t.${key} FOR NO KEY UPDATE
    )
    SELECT count(*)::int AS locked FROM locked WHERE ${key} IN (SELECT ${key} FROM ${changed.name})`);
  if (rows[0]!.locked < tables.rowCount(changed)) throw new StoreChanged();
}

const NEW_OWNERS = `
  SELECT s.user_id FROM ${GAME_RECORD.records.name} s LEFT JOIN games t ON t.id = s.id WHERE t.user_id IS DISTINCT FROM s.user_id`;
const WITH_NEW_KEY = `
  SELECT t.id FROM ${GAME_RECORD.records.name} s JOIN games t ON t.id = s.id WHERE t.user_id <> s.user_id OR t.slug <> s.slug`;

/**
 * Locks the games that get another owner or slug, which needs a stronger lock. A sale has a weaker one before it waits
 * for a game, so the two would deadlock if the game were locked twice. Returns the number of these games.
 */
export async function lockChangedKeys(tables: TemporaryTables): Promise<number> {
  // Owners before games, in the order in which a rename locks them.
  const owners = tables.query(`SELECT FROM users WHERE id IN (${NEW_OWNERS}) ORDER BY id FOR SHARE`);
  const games = tables.query<{ locked: number }>(`
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

/** Writes the new records. `hasSales`: new games get the counts of the stream's purchases. */
export async function writeNew(tables: TemporaryTables, type: RecordType, hasSales: boolean) {
  if (tables.rowCount(type.records) === tables.rowCount(type.stored)) return;
  const withCount = hasSales && type === GAME_RECORD;
  const values = [
    ...listColumns(type).map((column) => ({ name: column.name, value: newValueFor(column) })),
    ...(type.createdByService ? [{ name: 'imported_id', value: hasOwnId(type) }] : []),
    ...(withCount ? [{ name: 'purchases_count', value: 'coalesce(d.purchases, 0)' }] : []),
  ];
  // The IDs that the table assigns are in the order of the lines.
  const inOrder = type.key === 'id' ? '' : 'ORDER BY s.line';
  await tables.query(
    `INSERT INTO ${type.table} (${values.map(({ name }) => name).join(', ')})
     SELECT ${values.map(({ value }) => value).join(', ')}
     FROM ${type.records.name} s ${withCount ? PURCHASES_OF_GAMES : ''} WHERE ${isNew(type.table, type.key)} ${inOrder}`,
  );
  for (const statement of type.childTables?.create ?? []) await tables.query(statement);
}

export async function writeChanged(tables: TemporaryTables, type: RecordType) {
  const { table, key, records, changed, swap, childTables, hasUpdatedAt } = type;
  const columns = listColumns(type);
  if (swap)
    await tables.query(`
      UPDATE ${table} t SET ${swap.value} = '_' || md5(random()::text || t.id)
      WHERE t.id IN (SELECT id FROM ${changed.name})
        AND EXISTS (SELECT FROM ${records.name} s WHERE ${swap.clash} AND s.id <> t.id)`);
  const assignments = columns
    .filter(({ name }) => name !== key)
    // The update time of a changed collection is the current time, unless the stream contains one.
    .map(
      (column) => `${column.name} = ${valueFor(column, column.name === 'updated_at' ? 'now()' : undefined)}`,
    )
    .concat(hasUpdatedAt ? 'updated_at = now()' : []);
  await tables.query(`
    UPDATE ${table} t SET ${assignments.join(', ')}
    FROM ${records.name} s WHERE s.${key} = t.${key} AND ${isChanged(table, key)}`);
  for (const statement of childTables?.change ?? []) await tables.query(statement);
}
