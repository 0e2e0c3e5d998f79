import type { TemporaryTable, TemporaryTables } from './temporary-tables';
import { IMPORTED_ENTRIES, ENTRY_FIELDS } from './record-types/collection';
import type { Field } from './record-types/fields';
import type { RecordType } from './record-types/record-type';
import { REJECTED_IDS } from './staging';

/** A staged column with IDs of other records. */
interface Reference {
  rows: string;
  /** Expressions for a problem's text: the referring record, and the referenced IDs. */
  subject: string;
  id: string;
  parent: RecordType;
}

/** The tables of IDs that the stream refers to but does not contain, by type. */
export type ExternalReferences = Map<RecordType, TemporaryTable>;

const externalIds = ({ table }: RecordType): TemporaryTable => ({
  name: `external_${table}`,
  columns: [{ name: 'id', sql: 'bigint' }],
});

function referencesIn(tables: TemporaryTables, types: RecordType[]): Reference[] {
  const within = (fields: Field[], rows: string, subject: string) =>
    fields.flatMap(({ valueType, columns: [first] }) => {
      const parent = types.find(({ name }) => name === valueType.references);
      if (!parent || !first) return [];
      const column = first.name;
      return [{ rows, subject, id: valueType.many ? `unnest(${column})` : column, parent }];
    });
  const presentTypes = types.filter(({ records }) => tables.rowCount(records));
  return [
    ...presentTypes.flatMap((type) =>
      within(type.fields, type.records.name, type.key === 'id' ? type.subject : `'${type.name}'`),
    ),
    ...(tables.rowCount(IMPORTED_ENTRIES)
      ? within(ENTRY_FIELDS, IMPORTED_ENTRIES.name, `'collection ' || collection_id`)
      : []),
  ];
}

/** Collects all references to a type in one statement, so that the stream's IDs are read once. */
export async function findExternalReferences(
  tables: TemporaryTables,
  types: RecordType[],
): Promise<ExternalReferences> {
  const external: ExternalReferences = new Map();
  const references = referencesIn(tables, types);
  for (const type of types) {
    const ids = references
      .filter(({ parent }) => parent === type)
      .map(({ rows, id }) => `SELECT ${id} AS id FROM ${rows}`);
    if (ids.length === 0) continue;
    const all = `(${ids.join(' UNION ALL ')}) r WHERE r.id IS NOT NULL`;
    // EXCEPT is hashed or sorted; an anti-join may be planned as a slow nested loop.
    const sql = tables.rowCount(type.records)
      ? `SELECT r.id FROM ${all} EXCEPT SELECT id FROM ${type.records.name}`
      : `SELECT DISTINCT r.id FROM ${all}`;
    const found = externalIds(type);
    await tables.materialize(found, sql);
    external.set(type, found);
  }
  return external;
}

/**
 * Statements that find references to records that neither the stream nor the store contains, or that the stream
 * deletes.
 */
export const missingReferences = (
  tables: TemporaryTables,
  types: RecordType[],
  external: ExternalReferences,
): string[] => {
  const isRejected = tables.rowCount(REJECTED_IDS) > 0;
  return referencesIn(tables, types)
    .filter(({ parent }) => tables.rowCount(external.get(parent)!))
    .flatMap((reference) => {
      const { rows, subject, id, parent } = reference;
      const rejected = isRejected
        ? `EXCEPT SELECT id FROM import_rejected WHERE type = '${parent.name}'`
        : '';
      const referring = `SELECT r.line, r.subject || ': ${parent.name} ' || r.reference`;
      const from = `FROM (SELECT line, ${subject} AS subject, ${id} AS reference FROM ${rows} s) r`;
      const missing = `
        ${referring} || ' does not exist' AS text ${from}
        JOIN (
          SELECT o.id FROM ${external.get(parent)!.name} o
          WHERE NOT EXISTS (SELECT FROM ${parent.table} t WHERE t.id = o.id)
          ${rejected}) missing ON missing.id = r.reference`;
      if (!tables.rowCount(parent.deleted)) return [missing];
      return [
        missing,
        `${referring} || ' is deleted on line ' || d.line AS text ${from}
         JOIN ${parent.deleted.name} d ON d.id = r.reference AND EXISTS (SELECT FROM ${parent.table} t WHERE t.id = d.id)`,
      ];
    });
};
