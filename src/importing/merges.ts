import type { Relations } from '../database/relations';
import { SALES_OF_GAMES } from './earnings';
import { listsOf } from './lists';
import { StoreChanged } from './problems';
import type { Field, RecordType } from './record-types';
import {
  changedIn,
  changedOf,
  given,
  isChanged,
  isNew,
  oncePerType,
  stagedIn,
  storedIn,
  storedOf,
} from './staged';

interface Column {
  name: string;
  field: Field;
}

const columnsOf = (type: RecordType): Column[] =>
  type.fields
    .filter((field) => !field.list)
    .flatMap((field) => field.columns.map(({ name }) => ({ name, field })));

/** The new value of a stored record `t`: an absent optional field is unchanged. */
const valueFor = ({ name, field }: Column) =>
  field.required ? `s.${name}` : `CASE WHEN ${given(field.bit)} THEN s.${name} ELSE t.${name} END`;

/** The value of a new record. */
const newValueFor = ({ name, field }: Column) => (field.now ? `coalesce(s.${name}, now())` : `s.${name}`);

const LIST_TABLES: Record<string, string[]> = {
  user: ['user_emails'],
  game: ['game_admins', 'game_earnings'],
  purchase: ['purchase_games', 'purchase_references', 'download_keys'],
  collection: ['collection_admins', 'collection_games'],
};

/** The tables of a record type. */
export const tablesOf = ({ name, table }: RecordType) => [table, ...(LIST_TABLES[name] ?? [])];

/** Columns that are copied from other records; `of` is the expression for a column. The lock excludes concurrent changes. */
const COPIES: Record<string, { name: string; value: (of: (column: string) => string) => string }[]> = {
  game: [
    {
      name: 'owner_name',
      value: (of) => `(SELECT u.username FROM users u WHERE u.id = ${of('user_id')} FOR SHARE)`,
    },
  ],
  download_key: [
    {
      name: 'account_id',
      value: (of) => `coalesce(${of('user_id')},
        (SELECT p.user_id FROM purchases p WHERE p.id = ${of('purchase_id')} FOR SHARE))`,
    },
    {
      name: 'purchase_email',
      value: (of) => `(SELECT lower(p.email) FROM purchases p WHERE p.id = ${of('purchase_id')} FOR SHARE)`,
    },
  ],
};

/** Unique values that records of a type may swap among each other. */
const SWAPPABLE: Record<string, { value: string; clash: string; placeholder: string }> = {
  user: {
    value: 'username',
    clash: 'lower(s.username) = lower(t.username)',
    placeholder: `'_' || md5(random()::text || t.id)`,
  },
  game: {
    value: 'slug',
    clash: 's.slug = t.slug AND s.user_id = t.user_id',
    placeholder: `'_' || md5(random()::text || t.id)`,
  },
  download_key: { value: 'key', clash: 's.key = t.key', placeholder: `'_' || md5(random()::text || t.id)` },
};

// The service deletes rows of these types, so they are locked before they are compared.
const DELETABLE = new Set(['collection', 'api_key', 'oauth_application']);

export const storedQuery = (type: RecordType) =>
  `SELECT s.line, t.${type.key} FROM ${stagedIn(type)} s JOIN ${type.table} t ON t.${type.key} = s.${type.key}`;

/** Finds the stored records, and locks those that could be deleted, in the order of their ids. */
export async function findStored(relations: Relations, type: RecordType) {
  const lock = DELETABLE.has(type.name) ? `ORDER BY t.${type.key} FOR UPDATE OF t` : '';
  return relations.keep(storedOf(type), `${storedQuery(type)} ${lock}`);
}

/** Finds the stored records that the stream changes, and locks them in the order of their ids. */
export async function findChanged(relations: Relations, type: RecordType) {
  const lists = listsOf(type);
  for (const { relation, sql } of lists?.prepare ?? []) await relations.keep(relation, sql);
  const columns = columnsOf(type);
  const changed = await relations.keep(
    changedOf(type),
    `${storedQuery(type)}
     WHERE s.${type.key} IN (SELECT ${type.key} FROM ${storedIn(type)})
       AND ((${columns.map(({ name }) => `t.${name}`).join(', ')})
         IS DISTINCT FROM (${columns.map(valueFor).join(', ')}) ${lists ? `OR ${lists.differ}` : ''})`,
  );
  if (changed === 0 || DELETABLE.has(type.name)) return;
  // Owners before games, as a rename of an owner locks them.
  if (type.name === 'game')
    await relations.query(
      `SELECT FROM users WHERE id IN (SELECT user_id FROM ${stagedIn(type)}) ORDER BY id FOR SHARE`,
    );
  const { rows } = await relations.query<{ locked: number }>(`
    WITH locked AS MATERIALIZED (
      SELECT t.${type.key} FROM ${type.table} t
      WHERE t.${type.key} IN (SELECT ${type.key} FROM ${changedIn(type)}) ORDER BY t.${type.key} FOR NO KEY UPDATE
    )
    SELECT count(*)::int AS locked FROM locked`);
  if (rows[0]!.locked < changed) throw new StoreChanged();
}

/** Writes the changed and the new records. */
export async function write(relations: Relations, type: RecordType, withSales: boolean) {
  const stored = relations.rowsOf(storedIn(type));
  if (relations.rowsOf(changedIn(type))) await writeChanged(relations, type);
  if (relations.rowsOf(stagedIn(type)) > stored) await writeNew(relations, type, withSales);
}

async function writeChanged(relations: Relations, type: RecordType) {
  const columns = columnsOf(type);
  const swappable = SWAPPABLE[type.name];
  if (swappable) {
    const { value, clash, placeholder } = swappable;
    await relations.query(`
      UPDATE ${type.table} t SET ${value} = ${placeholder}
      WHERE t.id IN (SELECT id FROM ${changedIn(type)})
        AND EXISTS (SELECT FROM ${stagedIn(type)} s WHERE ${clash} AND s.id <> t.id)`);
  }
  const assignments = columns
    .filter(({ name }) => name !== type.key)
    .map(
      (column) => `${column.name} = ${column.name === 'updated_at' ? updatedAt(column) : valueFor(column)}`,
    )
    .concat(copiesOf(type, columns, valueFor).map(({ name, value }) => `${name} = ${value}`));
  await relations.query(`
    UPDATE ${type.table} t SET ${assignments.join(', ')}
    FROM ${stagedIn(type)} s WHERE s.${type.key} = t.${type.key} AND ${isChanged(type)}`);
  for (const statement of listsOf(type)?.change ?? []) await relations.query(statement);
}

async function writeNew(relations: Relations, type: RecordType, withSales: boolean) {
  for (const statement of relations.few ? [insertAtOnce(type, withSales)] : insertsOf(type, withSales))
    await relations.query(statement);
}

/** None of the inserts reads what another writes, so that one statement may do all. Foreign keys are checked at its end. */
const insertAtOnce = (type: RecordType, withSales: boolean) =>
  `WITH ${insertsOf(type, withSales)
    .map((one, i) => `write_${i} AS (${one})`)
    .join(', ')} SELECT`;

/** Of new records without sales of theirs in the same stream. */
export const insertOf = oncePerType((type) => insertAtOnce(type, false));

function insertsOf(type: RecordType, withSales: boolean): string[] {
  const columns = columnsOf(type);
  const sold = withSales && type.name === 'game';
  const all = [
    ...columns.map((column) => ({ name: column.name, value: newValueFor(column) })),
    ...copiesOf(type, columns, newValueFor),
    ...(sold ? [{ name: 'purchases_count', value: 'coalesce(d.purchases, 0)' }] : []),
  ];
  return [
    `INSERT INTO ${type.table} (${all.map(({ name }) => name).join(', ')})
     SELECT ${all.map(({ value }) => value).join(', ')}
     FROM ${stagedIn(type)} s ${sold ? SALES_OF_GAMES : ''} WHERE ${isNew(type)}`,
    ...(listsOf(type)?.create ?? []),
  ];
}

const copiesOf = (type: RecordType, columns: Column[], valueOf: (column: Column) => string) =>
  (COPIES[type.name] ?? []).map(({ name, value }) => ({
    name,
    value: value((wanted) => valueOf(columns.find((column) => column.name === wanted)!)),
  }));

/** updated_at of a changed collection: now, unless the stream has a value. */
const updatedAt = ({ name, field }: Column) => `CASE WHEN ${given(field.bit)} THEN s.${name} ELSE now() END`;
