import type { TemporaryTable } from '../temporary-tables';
import { type Field, type JsonObject, PRESENT } from './fields';

/** A value that no two records can share. In its SQL `s` is a staged record, and `t` a stored one. */
export interface Unique {
  /** The name of the value in a problem. */
  what: string;
  /** Rows `s` with a line, an ID and the value; by default the staged records. */
  rows?: string;
  /** The columns of the value in these rows. */
  columns: string;
  /** The table `t` of stored values, and the condition under which one of them equals that of `s`. */
  stored: string;
  /** The ID of the record with the stored value; by default t.id. */
  owner?: string;
  /** How a problem says that another record has the value, followed by the name of that record. */
  taken?: string;
  /** The field that contains the value. A record without it keeps the stored value. */
  field?: string;
}

/** The rows of other tables that belong to a record. */
export interface ChildTables {
  tables: string[];
  /** What to store before stored and staged records are compared. */
  prepare?: { table: TemporaryTable; sql: string }[];
  /** Whether the lists of the staged record `s` differ from those of the stored record `t`. */
  differ: string;
  /** Statements that replace the lists of changed records. */
  change: string[];
  /** Statements that write the lists of new records. */
  create: string[];
  /** The stored list of a required field, by its column. */
  stored?: Record<string, string>;
}

/** How to delete a record `t`. */
interface Deletion {
  /** Queries for lines and texts of problems of the records to delete. */
  problems?: string[];
  /** Rows that prevent the deletion of a record, by their name in a problem. */
  holds: Record<string, string>;
  /** The operator's alternative. */
  advice: string;
  /** A statement that locks other records first, in the order in which the service locks them. */
  first?: string;
  /** Statements that delete or change other rows first. Foreign keys handle the rest. */
  before: string[];
}

interface Definition {
  name: string;
  table: string;
  /** The first one identifies the record. */
  fields: Field[];
  /** Cells of the hashes that an API key has under previous peppers. */
  previousHashes?: (key: string) => string[];
  /** Reports problems that concern several fields. */
  compare?: (record: JsonObject, reject: (problem: string) => void) => void;
  /** Unique values in addition to the key, and other queries for lines and texts of problems. */
  unique?: (Unique | string)[];
  /** The unique value that records can swap: the condition under which `s` takes that of `t`. */
  swap?: { value: string; clash: string };
  childTables?: ChildTables;
  deletion?: Deletion;
  /** The table has `updated_at`, which is set when the import changes a record. */
  hasUpdatedAt?: boolean;
  /**
   * The service also creates records of this type. A record with an ID that the service assigned must
   * describe the same object: `differs` compares the record `s` with the row `t`, and `as` ends the sentence
   * "was created by this service ...". The table needs a column `imported_id`, which is true for the rows of
   * imports and false by default.
   */
  createdByService?: { differs: string; as: string };
  /** The service deletes such rows itself, so the stored ones are locked before they are compared. */
  isDeletedByService?: boolean;
}

export interface RecordType extends Definition {
  /** The column that identifies a record. */
  key: string;
  /** The name of a record `s` in a problem. API keys have none, because the key is secret. */
  subject: string;
  /** Tables of records: in the stream, to be deleted, already stored, changing a stored one, and deleted. */
  records: TemporaryTable;
  deleted: TemporaryTable;
  stored: TemporaryTable;
  changed: TemporaryTable;
  removed: TemporaryTable;
}

export const LINE = { name: 'line', sql: 'bigint' };

export function recordType(definition: Definition): RecordType {
  const { name, table, fields } = definition;
  const key = fields[0]!.columns[0]!;
  const isSecret = key.name !== fields[0]!.name;
  const named =
    key.name === 'id' ? `concat('${name}', ' ' || s.id)` : `'${name} ' || left(s.${key.name}, 40)`;
  const keys = (name: string): TemporaryTable => ({ name: `${name}_${table}`, columns: [LINE, key] });
  return {
    ...definition,
    key: key.name,
    subject: isSecret ? `'${name}'` : named,
    records: {
      name: `import_${table}`,
      columns: [LINE, PRESENT, ...fields.flatMap(({ columns }) => columns)],
    },
    deleted: keys('deleted'),
    stored: keys('stored'),
    changed: keys('changed'),
    removed: keys('removed'),
  };
}

/** Conditions on a staged record `s`. */
export const isNew = (table: string, key = 'id') =>
  `NOT EXISTS (SELECT FROM stored_${table} o WHERE o.${key} = s.${key})`;
export const isChanged = (table: string, key = 'id') => `s.${key} IN (SELECT ${key} FROM changed_${table})`;

// Without the LIMIT, the planner expects a hundred rows, and would read a whole table. With it, it expects
// ten.
export const each = (table: string) => `(SELECT id FROM ${table} LIMIT (SELECT 9223372036854775807)) t`;
