import type { Pool } from 'pg';
import { formMessage, type Message } from '../ask';
import { ALICE, ATTACKER, BOB } from '../world';
import type { Attack } from './attack';

/** So is the fuzzer's own known to the database server. */
export const FUZZER = 'fuzzer';

/** As a failover does to all connections of all replicas; answers how many there were. */
export async function terminateConnections(sql: Pool): Promise<number> {
  const { rowCount } = await sql.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> $1`,
    [FUZZER],
  );
  return rowCount ?? 0;
}

const KEY = (user: number): [string, string] => ['Authorization', `Bearer ${ATTACKER.key(user)}`];
const COLLECTION = `/collections/${ATTACKER.base + 1}`;
const GAME = String(ATTACKER.base + 1);

const askDevice = () => formMessage('/oauth/device', { client_id: ATTACKER.clientId, scope: 'profile' });

const WRITES: (() => Message)[] = [
  // Half of all: a transaction on a connection that is checked out.
  ...Array.from({ length: 6 }, () => askDevice),
  () => formMessage('/collections', { title: 'Between two connections' }, [KEY(BOB)]),
  () => formMessage(COLLECTION, { title: 'Between two connections' }, [KEY(ALICE)]),
  () => formMessage(`${COLLECTION}/add-game`, { game_id: GAME }, [KEY(ALICE)]),
  () => formMessage(`${COLLECTION}/remove-game`, { game_id: GAME }, [KEY(ALICE)]),
  () => formMessage(`${COLLECTION}/order`, { game_ids: `[${GAME}]` }, [KEY(ALICE)]),
  () => formMessage('/credentials/subkey', { game_id: GAME, scope: 'profile:me' }, [KEY(ALICE)]),
];

/** Writers, while all connections to the database are terminated once a second. */
export async function kills(attack: Attack): Promise<void> {
  const killing = attack.every(1000, () => terminateConnections(attack.sql));
  await attack.clientsThat(20, () => attack.pick(WRITES)(), 10);
  await killing;
}
