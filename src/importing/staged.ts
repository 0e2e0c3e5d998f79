import type { Relation } from '../database/relations';
import { ENTRY_FIELDS, type RecordType } from './record-types';

/** The relations of a type: its records in the stream, those to delete, those that are stored, and those that change. */
export const stagedIn = ({ table }: RecordType) => `import_${table}`;
export const deletedIn = ({ table }: RecordType) => `deleted_${table}`;
export const storedIn = ({ table }: RecordType) => `stored_${table}`;
export const changedIn = ({ table }: RecordType) => `changed_${table}`;
export const goneIn = ({ table }: RecordType) => `gone_${table}`;

const LINE = { name: 'line', sql: 'bigint' };

/** Remembers what is made for a type, as each import needs it. */
export function oncePerType<Made>(make: (type: RecordType) => Made): (type: RecordType) => Made {
  const made = new WeakMap<RecordType, Made>();
  return (type) => {
    let known = made.get(type);
    if (!known) made.set(type, (known = make(type)));
    return known;
  };
}

export const recordsOf = oncePerType((type): Relation => ({
  name: stagedIn(type),
  columns: [LINE, { name: 'present', sql: 'integer' }, ...type.fields.flatMap((field) => field.columns)],
}));

const keysIn = (nameIn: (type: RecordType) => string) =>
  oncePerType((type): Relation => ({
    name: nameIn(type),
    columns: [
      LINE,
      ...type.fields.flatMap(({ columns }) => columns.filter((column) => column.name === type.key)),
    ],
  }));
export const deletedOf = keysIn(deletedIn);
export const storedOf = keysIn(storedIn);
export const changedOf = keysIn(changedIn);
export const goneOf = keysIn(goneIn);

/** The entries of the stream's collections. */
export const ENTRIES: Relation = {
  name: 'import_collection_games',
  columns: [
    LINE,
    { name: 'collection_id', sql: 'bigint' },
    { name: 'rank', sql: 'integer' },
    { name: 'present', sql: 'integer' },
    ...ENTRY_FIELDS.flatMap((field) => field.columns),
  ],
};

/** Ids of records with a problem, so that references to them are no further problems. */
export const REFUSED_IDS: Relation = {
  name: 'import_refused',
  columns: [
    { name: 'type', sql: 'text' },
    { name: 'id', sql: 'bigint' },
  ],
};

/** The new entries of stored collections. */
export const PLANNED_ENTRIES: Relation = {
  name: 'planned_entries',
  columns: [
    { name: 'collection_id', sql: 'bigint' },
    { name: 'game_id', sql: 'bigint' },
    { name: 'stored', sql: 'boolean' },
    { name: 'blurb', sql: 'text' },
    { name: 'user_id', sql: 'bigint' },
    { name: 'created_at', sql: 'timestamptz' },
    { name: 'sort_key', sql: 'bigint' },
    { name: 'differs', sql: 'boolean' },
  ],
};

/** Their entries that the stream leaves out. */
export const DROPPED_ENTRIES: Relation = {
  name: 'dropped_entries',
  columns: PLANNED_ENTRIES.columns.slice(0, 2),
};

/** Conditions on a staged record `s`. */
export const isNew = (type: RecordType) =>
  `NOT EXISTS (SELECT FROM ${storedIn(type)} o WHERE o.${type.key} = s.${type.key})`;
export const isChanged = (type: RecordType) =>
  `s.${type.key} IN (SELECT ${type.key} FROM ${changedIn(type)})`;
export const given = (bit: number) => `s.present & ${bit} <> 0`;

/** The name of a record `s` in a problem. API keys have none, since the key is secret. */
export function subjectIn({ name, key }: RecordType): string {
  if (name === 'api_key') return `'api_key'`;
  if (name === 'oauth_application') return `'oauth_application ' || left(s.client_id, 40)`;
  return `concat('${name}', ' ' || s.${key})`;
}
