import { hashApiKey, newApiKey } from '../../src/auth/keys/api-key';
import { ApiKeyUses } from '../../src/auth/keys/api-key-uses';
import { Replicas } from '../support/replicas';
import { recordStatements } from '../support/statements';
import { PEPPER, theClock, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore();

const good = (...scopes: string[]) => JSON.stringify({ type: 'key', scopes });
const INVALID = '{"errors":["invalid key"]}';

const ask = (key: string) => async (url: string) =>
  (await fetch(`${url}/credentials/info`, { headers: { authorization: `Bearer ${key}` } })).text();

async function keyOfUser() {
  const owner = await make.user();
  const key = newApiKey();
  await make.key({ owner, text: key, scopes: ['profile:me'] });
  const [row] = await sql<{ id: number }>('SELECT max(id) AS id FROM api_keys');
  return { owner, key, id: row!.id };
}

const REVOKE = 'UPDATE api_keys SET revoked_at = now() WHERE id = $1';

describe('a key that two replicas cache', () => {
  const replicas = new Replicas();
  const both = (response: string) => [response, response];

  async function cached() {
    const made = await keyOfUser();
    const responses = () => replicas.responses(ask(made.key));
    expect(await responses()).toEqual(both(good('profile:me')));
    return { ...made, responses };
  }

  test.each<[string, string, (id: number, owner: { id: number }) => Promise<unknown>]>([
    ['revoked', INVALID, (id) => sql(REVOKE, [id])],
    [
      'replaced by another key',
      INVALID,
      (id) =>
        sql('UPDATE api_keys SET key_hash = $2 WHERE id = $1', [
          id,
          hashApiKey(newApiKey(), Buffer.from(PEPPER)),
        ]),
    ],
    ['deleted with its user', INVALID, (_, { id }) => sql('DELETE FROM users WHERE id = $1', [id])],
    ['expired early', INVALID, (id) => sql('UPDATE api_keys SET expires_at = now() WHERE id = $1', [id])],
    [
      'whose scopes change',
      good('collection:view'),
      (id) => sql(`UPDATE api_keys SET scopes = '{collection:view}' WHERE id = $1`, [id]),
    ],
  ])('is invalid or updated 700 ms after its lookup when it is %s', async (_change, response, change) => {
    const { id, owner, responses } = await cached();
    await change(id, owner);
    theClock().advance(699);
    for (const app of replicas.apps)
      expect(
        await recordStatements(async () => expect(await responses()).toEqual(both(good('profile:me'))), app),
      ).toEqual([]);
    theClock().advance(1);
    expect(await responses()).toEqual(both(response));
  });

  test('is not accepted while the database does not respond', async () => {
    const { responses } = await cached();
    replicas.proxy.freeze();
    try {
      theClock().advance(700);
      expect(await responses()).toEqual([good('profile:me'), '{"errors":["service unavailable"]}']);
    } finally {
      replicas.proxy.thaw();
    }
  });

  test('has its last use recorded once per minute', async () => {
    const { id, responses } = await cached();
    const flush = () => Promise.all(replicas.apps.map((app) => app.get(ApiKeyUses).flush()));
    const secondsSince = async () => {
      const since = 'extract(epoch FROM now() - last_used_at)::float8';
      const [row] = await sql<{ seconds: number }>(`SELECT ${since} AS seconds FROM api_keys WHERE id = $1`, [
        id,
      ]);
      return row!.seconds;
    };
    const usedBefore = (seconds: number) =>
      sql('UPDATE api_keys SET last_used_at = now() - make_interval(secs => $2) WHERE id = $1', [
        id,
        seconds,
      ]);
    await flush();
    expect(await secondsSince()).toBeLessThan(20);
    await usedBefore(30);
    expect(await recordStatements(responses)).toEqual([]);
    await flush();
    expect(await secondsSince()).toBeGreaterThan(29);
    await usedBefore(61);
    await responses();
    await flush();
    expect(await secondsSince()).toBeLessThan(20);
  });

  test('counts every request, also across lookups', async () => {
    const { id, responses } = await cached();
    for (let i = 0; i < 3; i++) {
      theClock().advance(700);
      await responses();
    }
    for (const app of replicas.apps) await app.get(ApiKeyUses).flush();
    const [row] = await sql<{ requests: string }>(
      'SELECT sum(requests) AS requests FROM api_key_requests WHERE api_key_id = $1',
      [id],
    );
    expect(Number(row!.requests)).toBe(8);
  });
});
