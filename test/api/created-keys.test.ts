import { Audit } from '../../src/audit/audit';
import { MAX_UNCLAIMED } from '../../src/purchases/keys/created-keys.service';
import { untilBlocked, holdLocks } from '../support/locks';
import { theApp, useStore } from '../support/app';
import { type HttpResponse, failure, ok, send } from '../support/http';
import { make, useGame } from '../support/make';
import { sql } from '../support/sql';

useStore();

interface Created {
  download_keys: { id: number; key: string; label: string | null }[];
}

const store = useGame();

const keysPath = () => `/games/${store.game.id}/download_keys`;
const create = (fields: Record<string, unknown>, who = store.owner) => who.post(keysPath(), fields);
/** Sends a request with an Idempotency-Key, which has its own transaction. */
const createOnce = (key: string, who = store.owner) =>
  send('POST', keysPath(), {
    headers: { ...who.headers, 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ count: 2, label: 'Reviewers' }),
  });
const readCreatedKeys = (response: HttpResponse) => (response.body as Created).download_keys;
const revoke = (id: number, who = store.owner) => who.post(`${keysPath()}/${id}/revoke`);
const stored = () =>
  sql('SELECT id, key, label FROM download_keys WHERE game_id = $1 ORDER BY id', [store.game.id]);
const noKey = failure(404, 'invalid download key');

async function events() {
  await theApp().get(Audit).flush();
  return sql(
    `SELECT event, user_id, details FROM audit_events WHERE (details->>'game_id')::bigint = $1 ORDER BY id`,
    [store.game.id],
  );
}

test('creates unclaimed keys for the owner and for admins', async () => {
  const response = await create({ count: 3, label: 'Press kit' });
  const keys = readCreatedKeys(response);
  expect(response).toEqual(
    ok({
      download_keys: [1, 2, 3].map(() => ({
        id: expect.any(Number) as number,
        game_id: store.game.id,
        key: expect.stringMatching(/^gwdl_[\w-]{24}$/) as string,
        label: 'Press kit',
        downloads: 0,
        created_at: expect.stringMatching(/Z$/) as string,
        url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/download\/gwdl_[\w-]{24}$/) as string,
      })),
    }),
  );
  expect(new Set(keys.map(({ key }) => key)).size).toBe(3);
  expect(keys.map(({ id }) => id)).toEqual(keys.map(({ id }) => id).sort((a, b) => a - b));
  expect(readCreatedKeys(await create({ count: 1 }, store.admin))[0]!.label).toBeNull();
  expect(await stored()).toHaveLength(4);
  const { key } = keys[0]!;
  expect(await store.owner.get(keysPath(), { download_key: key })).toEqual(
    ok({ download_key: expect.not.objectContaining({ owner: expect.anything() as unknown }) as unknown }),
  );
  expect(await events()).toEqual(
    [
      { user_id: store.owner.id, count: 3 },
      { user_id: store.admin.id, count: 1 },
    ].map(({ user_id, count }) => ({
      event: 'download_key.created',
      user_id,
      details: { game_id: store.game.id, count },
    })),
  );
});

test.each([
  [{}, 'count is required'],
  [{ count: 0 }, 'count must be between 1 and 1000'],
  [{ count: 1001 }, 'count must be between 1 and 1000'],
  [{ count: 'many' }, 'count must be an integer'],
  [{ count: 1, label: '' }, 'label must not be empty'],
  [{ count: 1, label: '   ' }, 'label must not be empty'],
  [{ count: 1, label: 'x'.repeat(101) }, 'label must be at most 100 characters'],
  [{ count: 1, label: 'two\nlines' }, 'label must not contain control characters'],
])('rejects %j: %s', async (fields, problem) => {
  expect(await create(fields)).toEqual(failure(400, problem));
  expect(await stored()).toEqual([]);
});

test('creates up to 1,000 keys at once', async () => {
  expect(readCreatedKeys(await create({ count: 1000 }))).toHaveLength(1000);
});

test('limits a game to 10,000 unclaimed keys, not counting claimed or revoked ones', async () => {
  await sql(
    `INSERT INTO download_keys (key, game_id) SELECT 'cap-' || $1 || '-' || n, $1::bigint FROM generate_series(1, $2::int) n`,
    [store.game.id, MAX_UNCLAIMED - 2],
  );
  const purchase = await make.purchase({ games: [store.game], email: 'buyer@example.com' });
  await make.downloadKey({ game: store.game, purchase_id: purchase.id });
  await make.downloadKey({ game: store.game, user_id: store.stranger.id });
  await make.downloadKey({ game: store.game, email: 'friend@example.com' });
  const tooMany = failure(400, 'a game can have at most 10000 unclaimed download keys');
  expect(await create({ count: 3 })).toEqual(tooMany);
  // Both wait for the lock on the game's row, as on two replicas, and one of them exceeds the limit.
  const row = await holdLocks(`SELECT FROM games WHERE id = ${store.game.id} FOR NO KEY UPDATE`);
  const waiting = Promise.all(['one', 'other'].map((key) => createOnce(`${key} ${store.game.id}`)));
  await untilBlocked(2);
  await row.release();
  const both = await waiting;
  expect(both.map(({ status }) => status).sort()).toEqual([200, 400]);
  expect(await create({ count: 1 })).toEqual(tooMany);
  const { id } = readCreatedKeys(both.find(({ status }) => status === 200)!)[0]!;
  expect(await revoke(id)).toEqual(ok({ success: true }));
  expect((await create({ count: 1 })).status).toBe(200);
  expect(await events()).toHaveLength(3);
});

test('creates and records nothing when a request with an Idempotency-Key is repeated', async () => {
  const [first, second] = [await createOnce('batch'), await createOnce('batch')];
  expect(second.body).toEqual(first.body);
  expect(await stored()).toHaveLength(2);
  expect(await events()).toHaveLength(1);
});

test('returns created keys to a retry only while the seller can edit the game', async () => {
  const { body } = await createOnce('former admin', store.admin);
  expect((await createOnce('former admin', store.admin)).body).toEqual(body);
  await sql('DELETE FROM game_admins WHERE game_id = $1', [store.game.id]);
  expect(await createOnce('former admin', store.admin)).toMatchObject(failure(404, 'invalid game'));
  expect(await stored()).toHaveLength(2);
});

test('trims a label', async () => {
  expect(readCreatedKeys(await create({ count: 1, label: '  Press kit ' }))[0]!.label).toBe('Press kit');
  expect(await stored()).toMatchObject([{ label: 'Press kit' }]);
});

test('stores no label for retries, because an erasure deletes labels from the keys alone', async () => {
  const { text } = await createOnce('labeled');
  expect((await createOnce('labeled')).text).toBe(text);
  expect(await sql(`SELECT answer FROM idempotency_keys WHERE answer LIKE '%Reviewers%'`)).toEqual([]);
});

test('accepts an unscoped key and rejects one without the scope', async () => {
  const limited = store.owner.with(await make.key({ owner: store.owner, scopes: ['game:view', 'profile'] }));
  expect(await create({ count: 1 }, limited)).toEqual(
    failure(403, 'api key does not permit `game:edit:keys`'),
  );
  for (const scope of ['game', 'game:edit:keys'])
    expect(
      (await create({ count: 1 }, store.owner.with(await make.key({ owner: store.owner, scopes: [scope] }))))
        .status,
    ).toBe(200);
  expect(await create({ count: 1 }, store.stranger)).toEqual(failure(404, 'invalid game'));
});

test('rejects a revoked key, claimed or not', async () => {
  const [first, second] = readCreatedKeys(await create({ count: 2 }));
  await sql('UPDATE download_keys SET user_id = $1 WHERE id = $2', [store.stranger.id, first!.id]);
  const owns = () => store.stranger.get(`/games/${store.game.id}/ownership`);
  expect(await owns()).toEqual(ok({ owns: true }));
  expect(await revoke(first!.id, store.admin)).toEqual(ok({ success: true }));
  expect(await owns()).toEqual(ok({ owns: false }));
  expect(await store.owner.get(keysPath(), { download_key: first!.key })).toEqual(noKey);
  expect(await revoke(first!.id)).toEqual(noKey);
  expect(await revoke(second!.id)).toEqual(ok({ success: true }));
  expect((await events()).slice(1)).toEqual(
    [store.admin.id, store.owner.id].map((user_id) => ({
      event: 'download_key.revoked',
      user_id,
      details: { game_id: store.game.id, count: 1 },
    })),
  );
});

test('does not revoke keys of purchases or of other games', async () => {
  const purchase = await make.purchase({ games: [store.game], email: 'buyer@example.com' });
  const { id } = await make.downloadKey({ game: store.game, purchase_id: purchase.id });
  expect(await revoke(id)).toEqual(failure(403, "you can't revoke a purchased download key"));
  const other = await make.downloadKey({ game: await make.game({ owner: store.owner }) });
  expect(await revoke(other.id)).toEqual(noKey);
  expect(await revoke(4e6)).toEqual(noKey);
  expect(await revoke(id, store.stranger)).toEqual(failure(404, 'invalid game'));
  expect(
    await sql('SELECT id FROM download_keys WHERE revoked_at IS NOT NULL AND id IN ($1, $2)', [id, other.id]),
  ).toEqual([]);
});
