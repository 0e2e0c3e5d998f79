import { parseList } from './pg-types';

/** A column of a row: its SQL, and how to parse its text. Without `read` it is not packed. */
export interface Column<Value> {
  sql: string;
  read?: (text: string) => Value;
  /** Never set; only for the type of the value. */
  value?: Value;
}

export const number = (sql: string): Column<number> => ({ sql, read: Number });

export const nullableNumber = (sql: string): Column<number | null> => ({
  sql: `coalesce(${sql}::text, '')`,
  read: (text) => (text === '' ? null : Number(text)),
});

/** Text that never contains the separator: names, timestamps, constants. */
export const text = <Value extends string>(sql: string): Column<Value> => ({
  sql,
  read: (text) => text as Value,
});

export const nullableText = (sql: string): Column<string | null> => ({
  sql: `coalesce(${sql}::text, '')`,
  read: (text) => text || null,
});

/** A text array whose elements need no quotes. */
export const list = <Value extends string>(sql: string): Column<Value[]> => ({
  sql,
  read: (text) => parseList(text) as Value[],
});

/** User-supplied text can contain the separator, so it stays a separate column. */
export const freeText = <Value extends string | null>(sql: string): Column<Value> => ({ sql });

type Columns = Record<string, Column<unknown>>;

/** The columns shared with an entity, with its types. */
export type ColumnsOf<Entity> = { [Name in keyof Entity]?: Column<Entity[Name]> };

export type RowOf<Row> =
  Row extends PackedRow<infer Of>
    ? { [Name in keyof Of]: Of[Name] extends Column<infer Value> ? Value : never }
    : never;

/** The columns that a statement selects for a packed row. */
export interface Packed {
  /** Null where an outer join found nothing. */
  packed: string | null;
  [freeText: string]: unknown;
}

const SEPARATOR = '|';

/**
 * A row of many columns that PostgreSQL sends as one text, because receiving each column takes longer than splitting a
 * text: docs/contributing/decisions/performance.md.
 */
export class PackedRow<Of extends Columns> {
  /** The select list. */
  readonly sql: string;
  private readonly names: string[] = [];
  private readonly readers: ((text: string) => unknown)[] = [];
  private readonly free: string[] = [];
  private readonly empty: Record<string, unknown>;

  constructor(columns: Of) {
    // All properties are set at once: V8 stores an object that gets many properties one by one as a hash
    // table, which is slow to copy.
    this.empty = Object.fromEntries(Object.keys(columns).map((name) => [name, null]));
    const packed: string[] = [];
    const free: string[] = [];
    for (const [name, { sql, read }] of Object.entries(columns)) {
      if (read) {
        this.names.push(name);
        this.readers.push(read);
        packed.push(sql);
      } else {
        this.free.push(name);
        free.push(`${sql} AS ${name}`);
      }
    }
    this.sql = [`concat_ws('${SEPARATOR}', ${packed.join(', ')}) AS packed`, ...free].join(', ');
  }

  read = (selected: Packed): RowOf<this> => {
    // A copy keeps the hidden class; adding properties one by one changes it with each.
    const row = { ...this.empty };
    const { names, readers } = this;
    // Finding each separator is faster than creating an array with split().
    const text = selected.packed!;
    for (let i = 0, start = 0, end = 0; i < names.length; i++, start = end + 1) {
      end = text.indexOf(SEPARATOR, start);
      if (end < 0) end = text.length;
      row[names[i]!] = readers[i]!(text.slice(start, end));
    }
    for (const name of this.free) row[name] = selected[name];
    return row as RowOf<this>;
  };
}
