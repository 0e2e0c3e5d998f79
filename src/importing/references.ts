import type { ClientBase } from 'pg';
import { ENTRY_FIELDS, type Field, type RecordType } from './record-types';

/** A staged column that holds ids of other records. */
interface Reference {
  rows: string;
  /** Expressions for a problem's text: the referring record, and the ids that it refers to. */
  subject: string;
  id: string;
  parent: RecordType;
}

/** The number of records of each type that the stream refers to but does not contain. */
export type Outside = Map<RecordType, number>;

/** Their ids. */
export const outsideIn = ({ table }: RecordType) => `outside_${table}`;

function referencesIn(types: RecordType[]): Reference[] {
  const within = (fields: Field[], rows: string, subject: string) =>
    fields.flatMap(({ kind, columns }) => {
      const parent = types.find(({ name }) => name === kind.references);
      const column = columns[0]!.name;
      return parent ? [{ rows, subject, id: kind.many ? `unnest(${column})` : column, parent }] : [];
    });
  return [
    ...types.flatMap(({ name, table, key, fields }) =>
      within(fields, `import_${table}`, key === 'id' ? `'${name} ' || id` : `'${name}'`),
    ),
    ...within(ENTRY_FIELDS, 'import_collection_games', `'collection ' || collection_id`),
  ];
}

/** Collects all references to a type in one statement, so that the stream's ids are read once. */
export async function findOutside(client: ClientBase, types: RecordType[]): Promise<Outside> {
  const outside: Outside = new Map();
  const references = referencesIn(types);
  for (const type of types) {
    const ids = references
      .filter(({ parent }) => parent === type)
      .map(({ rows, id }) => `SELECT ${id} AS id FROM ${rows}`);
    if (ids.length === 0) continue;
    // EXCEPT is hashed or sorted; an anti-join may be planned as a slow nested loop.
    const { rowCount } = await client.query(`
      CREATE TEMP TABLE ${outsideIn(type)} ON COMMIT DROP AS
      SELECT r.id FROM (${ids.join(' UNION ALL ')}) r WHERE r.id IS NOT NULL
      EXCEPT SELECT id FROM import_${type.table}`);
    await client.query(`ANALYZE ${outsideIn(type)}`);
    outside.set(type, rowCount ?? 0);
  }
  return outside;
}

/** Statements that find references to records that the store does not have either. */
export const missingReferences = (types: RecordType[], outside: Outside): string[] =>
  referencesIn(types)
    .filter(({ parent }) => outside.get(parent))
    .map(
      ({ rows, subject, id, parent }) => `
        SELECT r.line, r.subject || ': ${parent.name} ' || r.reference || ' does not exist' AS text
        FROM (SELECT line, ${subject} AS subject, ${id} AS reference FROM ${rows}) r
        JOIN (
          SELECT o.id FROM ${outsideIn(parent)} o
          WHERE NOT EXISTS (SELECT FROM ${parent.table} t WHERE t.id = o.id)
          EXCEPT SELECT id FROM import_refused WHERE type = '${parent.name}') missing ON missing.id = r.reference`,
    );
