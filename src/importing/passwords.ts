import { availableParallelism } from 'node:os';
import type { ClientBase } from 'pg';
import { hashPassword, verifyPassword } from '../accounts/sign-in/password-hash';

export interface PlainPassword {
  user_id: number;
  password: string;
}

/** The hash of each password: the stored hash if the password is unchanged. */
export async function hashesOf(client: ClientBase, passwords: PlainPassword[], signal?: AbortSignal) {
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
