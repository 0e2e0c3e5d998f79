import { type Cells, NULL, timestamp, type ValueType } from '../value-types';

export type JsonObject = Record<string, unknown>;

export interface Field {
  name: string;
  valueType: ValueType;
  /** The columns of the staging table that the field fills. */
  columns: { name: string; sql: string }[];
  required: boolean;
  default: Cells;
  /** Whether the default, which also replaces null, is the time of the import. */
  now: boolean;
  /** Whether the field is stored in a table other than the type's own. */
  inOtherTable: boolean;
  /** Description of the field beyond its name and value, for docs/reference/import-records.md. */
  meaning: string;
  /** Another field that a record may have in place of this required one. */
  instead?: string;
  /** The default, derived from other fields of the record. */
  implied?: (record: JsonObject) => unknown;
}

type Options = Partial<Pick<Field, 'columns' | 'inOtherTable' | 'instead' | 'implied' | 'meaning' | 'now'>>;

export const required = (name: string, valueType: ValueType, options: Options = {}): Field => ({
  name,
  valueType,
  columns: [{ name, sql: valueType.sql }],
  required: true,
  default: NULL,
  now: false,
  inOtherTable: false,
  meaning: '',
  ...options,
});

export const optional = (
  name: string,
  valueType: ValueType,
  fallback: Cells = NULL,
  options: Options = {},
): Field => ({
  ...required(name, valueType, options),
  required: false,
  default: fallback,
});

export const time = (name: string, meaning = '') => optional(name, timestamp, NULL, { meaning });
export const timeOrNow = (name: string) => optional(name, timestamp, NULL, { now: true });

/** The bits of the fields that a record has. Exact for up to 53 fields. */
export const PRESENT = { name: 'present', sql: 'bigint' };

/**
 * The bit of a field in PRESENT, by its position among the fields. Add the bits of several fields:
 * JavaScript's bitwise operators use only 32 bits.
 */
export const presenceBit = (place: number) => 2 ** place;

/** SQL condition: whether a staged record `s` has the field. */
export const hasField = (fields: Field[], field: string, record = 's') =>
  `${record}.present & ${presenceBit(fields.findIndex(({ name }) => name === field))} <> 0`;
