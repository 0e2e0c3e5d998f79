import type { TemporaryTables } from './temporary-tables';
import { UNCOUNTED } from './value-types';
import type { RecordType } from './record-types/record-type';

/** First key of the advisory locks of sequences. */
const SEQUENCE_LOCKS = 7_305_812;

const sequenceName = ({ table }: RecordType) => `${table}_id_seq`;

/** The highest ID of the records, if the service would assign it later. */
const highestAhead = (type: RecordType) =>
  `SELECT s.id FROM (SELECT max(id) AS id FROM ${type.records.name} WHERE id < ${UNCOUNTED}) s, ${sequenceName(type)}
   WHERE s.id >= last_value`;

/** Finds the types with IDs that the service would assign later. */
export async function findAhead(tables: TemporaryTables, types: RecordType[]): Promise<RecordType[]> {
  const numbered = types.filter(({ key }) => key === 'id');
  if (numbered.length === 0) return [];
  const each = numbered.map((type) => `SELECT '${type.name}' AS name FROM (${highestAhead(type)}) ahead`);
  const { rows } = await tables.query<{ name: string }>(each.join(' UNION ALL '));
  return numbered.filter((type) => rows.some(({ name }) => name === type.name));
}

/**
 * Advances the sequence past the IDs of the records. If a concurrent write has already drawn one of them, the unique
 * constraint decides, and the later of the two is repeated.
 */
export async function reserveIds(tables: TemporaryTables, type: RecordType): Promise<void> {
  const sequence = sequenceName(type);
  await tables.query('SAVEPOINT reserve');
  // Without the lock, two concurrent imports could move the sequence back.
  await tables.query(`SELECT pg_advisory_xact_lock(${SEQUENCE_LOCKS}, '${sequence}'::regclass::oid::int)`);
  await tables.query(`SELECT setval('${sequence}', id) FROM (${highestAhead(type)}) ahead`);
  // Releases the lock. The sequence keeps its value, because setval can't be rolled back.
  await tables.query('ROLLBACK TO SAVEPOINT reserve');
}
