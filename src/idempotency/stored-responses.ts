import { createHmac, hash, type Hmac } from 'node:crypto';
import type { ClientBase } from 'pg';
import { bind, statement, type Statement, type Values } from '../platform/database/statement';
import { badRequest } from '../platform/errors/api-error';

export const HEADER = 'Idempotency-Key';

/** Identifies a retry. */
export interface RetryKey {
  credential: string;
  /** The user of the credential; null: an operator's. */
  user_id: number | null;
  /** The key as it was sent. Only its hash is stored. */
  key: string;
  route: string;
}

// ExpiredRows deletes older rows.
const RETENTION = `interval '24 hours'`;

// Waits for a concurrent transaction with the same key. No row: an earlier request of this user had the key.
const CLAIM_RETRY_KEY = statement(
  'idempotency_claim',
  `INSERT INTO idempotency_keys AS k (credential, key_hash, fingerprint, user_id)
   VALUES ($credential, $key_hash, $fingerprint, $user_id)
   ON CONFLICT (credential, key_hash) DO UPDATE
     SET fingerprint = excluded.fingerprint, user_id = excluded.user_id, created_at = now()
   WHERE k.created_at < now() - ${RETENTION} OR k.user_id <> excluded.user_id
   RETURNING true AS claimed`,
);

export interface StoredResponse {
  fingerprint: Buffer;
  response: string;
}

// The rows that CLAIM_RETRY_KEY leaves unchanged.
export const STORED_RESPONSE = statement<StoredResponse>(
  'idempotency_kept',
  `SELECT fingerprint, answer AS response FROM idempotency_keys
   WHERE credential = $credential AND key_hash = $key_hash AND (user_id <> $user_id) IS NOT TRUE
     AND created_at >= now() - ${RETENTION}`,
);

const STORE_RESPONSE = statement(
  'idempotency_keep',
  'UPDATE idempotency_keys SET answer = $response WHERE credential = $credential AND key_hash = $key_hash',
);

/** Sends a statement in a transaction. */
type Send = <Row>(statement: Statement<Row>, values: Values) => Promise<Row[]>;

/**
 * Runs the work once per key, in the transaction that `send` uses. `store` returns the text of a response to
 * store. `fingerprint` is the request's.
 */
export async function runOnce<Result>(
  send: Send,
  key: RetryKey,
  fingerprint: Buffer,
  work: () => Promise<Result>,
  store: (response: Result) => string = JSON.stringify,
): Promise<{ response: Result; isRepeated: boolean }> {
  const { credential, user_id } = key;
  const key_hash = hashKey(key);
  const claimed = await send(CLAIM_RETRY_KEY, { credential, key_hash, fingerprint, user_id });
  if (claimed.length === 0) {
    const [stored] = await send(STORED_RESPONSE, { credential, key_hash, user_id });
    return { response: readResponse<Result>(stored, fingerprint), isRepeated: true };
  }
  const response = await work();
  await send(STORE_RESPONSE, { credential, key_hash, response: store(response) });
  return { response, isRepeated: false };
}

/** Runs work once per key on a separate connection, as for an import. */
export async function oncePerKey<Result>(
  client: Pick<ClientBase, 'query'>,
  key: RetryKey,
  fingerprint: Buffer,
  work: () => Promise<Result>,
): Promise<Result> {
  const send: Send = async (statement, values) =>
    (await client.query(statement.text, bind(statement, values).values)).rows as never[];
  return (await runOnce(send, key, fingerprint, work)).response;
}

/**
 * Begins the fingerprint of a request, to which its parameters are added. The hash is keyed, because the
 * parameters of a sale contain the buyer's email address, which can be guessed.
 */
export const startFingerprint = ({ key, route }: RetryKey): Hmac =>
  createHmac('sha256', key).update(`${route}\n`);

export const computeFingerprint = (key: RetryKey, ...parameters: (string | Buffer)[]): Buffer =>
  parameters.reduce((hmac, one) => hmac.update(one), startFingerprint(key)).digest();

export function readResponse<Result>(stored: StoredResponse | undefined, fingerprint: Buffer): Result {
  if (!stored?.fingerprint.equals(fingerprint)) throw badRequest(`${HEADER} was used with other parameters`);
  return JSON.parse(stored.response) as Result;
}

export const hashKey = ({ key }: RetryKey) => hash('sha256', key, 'buffer');
