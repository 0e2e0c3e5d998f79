import { availableParallelism } from 'node:os';
import type { ClientBase } from 'pg';
import { hashPassword, verifyPassword } from '../../auth/sign-in/password-hash';
import type { WithPassword } from './record-reader';
import { USER_RECORD } from './record-types/user';
import type { Staging } from './staging';

const PASSWORD_COLUMN = USER_RECORD.records.columns.findIndex(({ name }) => name === 'password_hash');

let hashing: Promise<unknown> = Promise.resolve();

/**
 * Stages users with the hashes of their passwords, and empties the list. An unchanged password keeps its
 * hash. Imports on the same thread do this one after the other.
 */
export function stageWithPasswords(...batch: Parameters<typeof hashAndStage>): Promise<void> {
  const hashed = hashing.then(() => hashAndStage(...batch));
  hashing = hashed.catch(() => {});
  return hashed;
}

async function hashAndStage(
  client: ClientBase,
  users: WithPassword[],
  staging: Pick<Staging, 'stage'>,
  signal?: AbortSignal,
): Promise<void> {
  const { rows } = await client.query<{ id: string; password_hash: string }>(
    'SELECT id, password_hash FROM users WHERE id = ANY($1::bigint[]) AND password_hash IS NOT NULL',
    [users.map(({ user_id }) => user_id)],
  );
  const stored = new Map(rows.map((row) => [Number(row.id), row.password_hash]));

  // A hash takes 19 MiB and a core, so at most one hash per core runs at a time.
  const waiting = users.values();
  const work = async () => {
    for (const { user_id, password, row } of waiting) {
      signal?.throwIfAborted();
      const old = stored.get(user_id);
      row[PASSWORD_COLUMN] =
        old && (await verifyPassword(old, password)) ? old : await hashPassword(password);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  for (const { row } of users.splice(0)) staging.stage(USER_RECORD.records, row);
}
