import { availableParallelism } from 'node:os';
import type { ClientBase } from 'pg';
import { hashPassword, verifyPassword } from '../accounts/sign-in/password-hash';
import type { ReadRecord } from './record-reader';

interface PlainPassword {
  user_id: number;
  password: string;
}

/** Puts the hashes of their passwords into records that were read. */
export async function hashPasswords(client: ClientBase, read: ReadRecord[], signal?: AbortSignal) {
  const plain = read.map(({ record }) => ({
    user_id: record.id as number,
    password: record.password as string,
  }));
  const hashes = await hashesOf(client, plain, signal);
  read.forEach(({ row: { type, cells } }, index) => {
    cells[type.fields.findIndex(({ name }) => name === 'password')] = hashes[index]!;
  });
}

/** The hash of each password: the stored hash if the password is unchanged. */
async function hashesOf(client: ClientBase, passwords: PlainPassword[], signal?: AbortSignal) {
  const { rows } = await client.query<{ id: string; password_hash: string }>(
    'SELECT id, password_hash FROM users WHERE id = ANY($1::bigint[]) AND password_hash IS NOT NULL',
    [passwords.map(({ user_id }) => user_id)],
  );
  const stored = new Map(rows.map((row) => [Number(row.id), row.password_hash]));
  const hashes: string[] = new Array(passwords.length);

  // A hash takes 19 MiB and a core: as many at once as there are cores.
  let next = 0;
  const work = async () => {
    while (next < passwords.length) {
      signal?.throwIfAborted();
      const index = next++;
      const { user_id, password } = passwords[index]!;
      const old = stored.get(user_id);
      hashes[index] = old && (await verifyPassword(old, password)) ? old : await hashPassword(password);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return hashes;
}
