import type { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';

// Rows that one statement reads, which takes some milliseconds.
const ROWS_PER_WINDOW = 5000;

type Key = string | number | Buffer;
type KeyType = 'bigint' | 'text' | 'bytea';

const FIRST_KEYS: Record<KeyType, Key> = { bigint: 0, text: '', bytea: Buffer.alloc(0) };

/** How to find the rows of a person. */
export interface PersonKeys {
  /** null: the email address belongs to no account. */
  user_id: number | null;
  /** Email addresses in lowercase. Rows with one of them are the person's, too. */
  addresses: string[];
}

/** A part of a WITH clause: the person, from the values of `PersonKeys`. */
export const PERSON_QUERY = 'person AS (SELECT $user_id::bigint AS user_id, $addresses::text[] AS addresses)';

export interface Scan<Keys> {
  keys: Record<keyof Keys & string, KeyType>;
  /** The keys of the person's rows, one window at a time, starting after the key `after`. */
  rows(database: Database, person: PersonKeys, after?: Key[]): AsyncGenerator<Keys[]>;
}

/**
 * Scans a whole table by its primary key for rows that no index finds: an index would slow down every sale, and people
 * are seldom exported or erased. `theirs` is a condition on rows `t` and the `person`.
 */
export function createScan<Keys>(
  table: string,
  keys: Record<keyof Keys & string, KeyType>,
  theirs: string,
  name = `scan_${table}`,
): Scan<Keys> {
  const names = Object.keys(keys);
  const start = (Object.values(keys) as KeyType[]).map((type) => FIRST_KEYS[type]);
  const from = Object.entries<string>(keys).map(([name, type]) => `$after_${name}::${type}`);
  const WINDOW_OF_TABLE = longRead<Keys & { theirs: boolean; n: number }>(
    name,
    `WITH ${PERSON_QUERY}
     SELECT ${names.join(', ')}, theirs, n FROM (
       SELECT ${names.map((name) => `t.${name}`).join(', ')}, (${theirs}) IS TRUE AS theirs,
         row_number() OVER (ORDER BY ${names.map((name) => `t.${name}`).join(', ')}) AS n
       FROM person, (
         SELECT * FROM ${table} WHERE (${names.join(', ')}) > (${from.join(', ')})
         ORDER BY ${names.join(', ')} LIMIT ${ROWS_PER_WINDOW}) t) looked_at
     WHERE theirs OR n = ${ROWS_PER_WINDOW} ORDER BY n`,
  );
  return {
    keys,
    async *rows(database, { user_id, addresses }, after = start) {
      let position = after;
      for (;;) {
        const rows = await database.rows(WINDOW_OF_TABLE, {
          user_id,
          addresses,
          ...namedValues('after', keys, position),
        });
        const found = rows.filter((row) => row.theirs);
        if (found.length > 0) yield found;
        const last = rows.at(-1);
        if (last?.n !== ROWS_PER_WINDOW) return;
        position = names.map((name) => last[name as keyof Keys] as Key);
      }
    },
  };
}

export function* sliceRows<T>(rows: readonly T[], size: number): Generator<T[]> {
  for (let i = 0; i < rows.length; i += size) yield rows.slice(i, i + size);
}

/** The values of parameters such as `$after_id`: one for each key, whose name follows the prefix. */
export const namedValues = (prefix: string, keys: object, values: unknown[]): Record<string, unknown> =>
  Object.fromEntries(Object.keys(keys).map((name, i) => [`${prefix}_${name}`, values[i]]));

/** The arguments of `unnest` for these rows: an array for each key. */
export const transposeKeys = <Keys>({ keys }: Scan<Keys>, rows: readonly Keys[]): Key[][] =>
  Object.keys(keys).map((name) => rows.map((row) => row[name as keyof Keys] as Key));
