import { setTimeout as sleep } from 'node:timers/promises';
import { type ClientBase, DatabaseError } from 'pg';
import type { Clock } from '../../platform/config/clock';
import { OperatorError } from '../../platform/config/operator-error';
import type { Relations } from '../../platform/database/relations';
import { UNCOUNTED } from './value-types';
import type { RecordType } from './record-types/record-type';

const LOCK_NOT_AVAILABLE = '55P03';
/** The advisory locks of sequences. */
const SEQUENCE_LOCKS = 7_305_812;

/**
 * Advances the ID sequence past the IDs of the stream. The lock waits for transactions that use smaller IDs, and blocks
 * new ones.
 */
export async function reserveIds(client: ClientBase, type: RecordType): Promise<void> {
  const { rows } = await client.query<{ id: string | number | null }>(
    `SELECT max(id) AS id FROM ${type.records.name} WHERE id < ${UNCOUNTED}`,
  );
  if (rows[0]!.id === null) return;
  const id = Number(rows[0]!.id);
  const lock = lockOf(type, 1000);
  for (let attempt = 1; (await moveSequence(client, type, id, id, lock)) === undefined; attempt++) {
    if (attempt === 60)
      throw new OperatorError(`another transaction has been writing to ${type.table} for a minute`);
    await sleep(200);
  }
}

const lockOf = ({ table }: RecordType, timeout_ms: number) =>
  `SET LOCAL lock_timeout = '${timeout_ms}ms'; LOCK TABLE ${table} IN SHARE MODE;`;

/** Returns the last ID of the sequence after it was advanced, or undefined if the lock timed out. */
async function moveSequence(client: ClientBase, { table }: RecordType, id: number, to: number, lock = '') {
  const sequence = `${table}_id_seq`;
  await client.query('SAVEPOINT reserve');
  try {
    // Two concurrent changes could move it back.
    await client.query(
      `${lock} SELECT pg_advisory_xact_lock(${SEQUENCE_LOCKS}, '${sequence}'::regclass::oid::int)`,
    );
    const { rows } = await client.query<{ last: string | number }>(
      `SELECT CASE WHEN ${id} >= last_value THEN setval('${sequence}', ${to}) ELSE last_value END AS last FROM ${sequence}`,
    );
    return Number(rows[0]!.last);
  } catch (error) {
    if (lock && error instanceof DatabaseError && error.code === LOCK_NOT_AVAILABLE) return undefined;
    throw error;
  } finally {
    // Releases the lock, and leaves the sequence unchanged.
    await client.query('ROLLBACK TO SAVEPOINT reserve').catch(() => {});
  }
}

/** IDs reserved at once for the next small imports. */
const AHEAD = 1024;
const SHORT_WAIT = 50;
/** Milliseconds for which a floor is valid without a query: a reset moves the sequence back, and so may a failover. */
const FLOOR_MAX_AGE = 1000;

/** Advances the sequences for small imports, beyond the requested IDs, so that only one import of many has to do it. */
export class IdReservations {
  constructor(private readonly clock: Clock) {}

  /** By table: smaller IDs are no longer drawn from the sequence, and no transaction uses one. */
  private readonly floors = new Map<string, { id: number; since: number }>();

  /** `highest`: the highest imported ID. */
  async reserve(client: ClientBase, relations: Relations, type: RecordType, highest: number): Promise<void> {
    const { table } = type;
    const since = this.clock.monotonic();
    if (await this.isReserved(relations, table, highest, since)) return;
    const { rows } = await relations.query<{ id: string | number | null }>(
      `SELECT max(s.id) AS id FROM ${type.records.name} s
       WHERE s.id < ${UNCOUNTED} AND NOT EXISTS (SELECT FROM ${table} t WHERE t.id = s.id)`,
    );
    if (rows[0]!.id === null) return;
    const id = Number(rows[0]!.id);
    const ahead = id + AHEAD;
    const floor = await moveSequence(client, type, id, ahead, lockOf(type, SHORT_WAIT));
    // A large import may keep the lock for minutes.
    if (floor === undefined) await moveSequence(client, type, id, ahead);
    else this.floors.set(table, { id: floor, since });
  }

  private async isReserved(relations: Relations, table: string, id: number, now: number): Promise<boolean> {
    const floor = this.floors.get(table);
    if (!floor || id >= floor.id) return false;
    if (now - floor.since < FLOOR_MAX_AGE) return true;
    const { rows } = await relations.query<{ last: string | number }>(
      `SELECT last_value AS last FROM ${table}_id_seq`,
    );
    if (Number(rows[0]!.last) < floor.id) {
      this.floors.delete(table);
      return false;
    }
    floor.since = now;
    return true;
  }
}
