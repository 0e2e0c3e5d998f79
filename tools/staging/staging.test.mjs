import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test } from 'node:test';
import { apiKey, ask, base, get, operatorToken, post } from './client.mjs';

// Everything created by these checks has this name, so that the next run deletes what an interrupted one left behind.
const MARK = 'Staging check';
const NONE = 9_007_199_254_740_000;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

const is = ({ status, body }, expectedStatus, ...errors) =>
  assert.deepEqual({ status, body }, { status: expectedStatus, body: { errors } });
const ok = (response) => {
  assert.equal(response.status, 200, response.text);
  return response.body;
};

describe('the service', () => {
  test('is alive and ready', async () => {
    assert.deepEqual(ok(await get('/health/live')), { status: 'ok' });
    assert.deepEqual(ok(await get('/health/ready')), { status: 'ok' });
  });

  test('responds fast when idle', async () => {
    const times = [];
    for (let i = 0; i < 10; i++) times.push((await get('/health/live')).ms);
    const median = times.sort((a, b) => a - b)[5];
    assert.ok(median < 500, `${Math.round(median)} ms`);
  });

  test('sends security headers with every response', async () => {
    for (const path of ['/health/live', '/nowhere', '/profile']) {
      const { headers } = await get(path, { key: undefined });
      assert.match(headers.get('x-request-id') ?? '', /^[\w.:-]{1,64}$/);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.ok(headers.get('content-security-policy'));
      assert.equal(headers.get('x-powered-by'), null);
      if (base.startsWith('https:')) assert.ok(headers.get('strict-transport-security'));
    }
  });

  test('serves its description and documentation', async () => {
    const description = ok(await get('/openapi.json'));
    assert.equal(description.openapi, '3.1.0');
    assert.ok(Object.keys(description.paths).length >= 16);
    const page = await get('/docs');
    assert.equal(page.status, 200);
    const [, source] = /data-source="([^"]+)"/.exec(page.text);
    const endpoints = await get(source);
    assert.equal(endpoints.status, 200);
    assert.match(endpoints.text, /data-method="GET"\s+data-path="\/profile"/);
    for (const [, path] of page.text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g))
      assert.equal((await get(path)).status, 200, path);
  });

  test('does not expose its metrics publicly', async () => {
    is(await get('/metrics'), 404, 'invalid api endpoint');
  });

  test("keeps the client's request ID", async () => {
    const id = randomUUID();
    const { headers } = await get('/health/live', { headers: { 'x-request-id': id } });
    assert.equal(headers.get('x-request-id'), id);
  });
});

describe('rejected requests', () => {
  test('fail with 404 for unknown paths and 405 for wrong methods', async () => {
    is(await get('/nowhere'), 404, 'invalid api endpoint');
    const wrong = await ask('DELETE', '/profile');
    is(wrong, 405, 'method not allowed');
    assert.match(wrong.headers.get('allow'), /GET/);
  });

  test('fail with 401 without a credential and with an invalid one', async () => {
    const without = await get('/profile', { key: '' });
    is(without, 401, 'authentication required');
    assert.match(without.headers.get('www-authenticate'), /^Bearer/);
    is(await get('/profile', { key: 'made-up' }), 401, 'invalid key');
    is(await get('/profile', { key: 'a.b.c' }), 401, 'invalid token');
    is(await get('/api/1/made-up/me', { key: '' }), 401, 'invalid key');
  });

  test('fail with 400 for invalid parameters', async () => {
    is(await get('/games/abc/purchases?user_id=1'), 400, 'game_id must be an integer');
    is(await get(`/games/${NONE}/purchases?user_id=1&user_id=2`), 400, 'user_id must be given once');
    is(await get('/wharf/latest?game_id=1'), 400, 'channel_name is required');
  });

  test('fail with 404 for missing objects', async () => {
    is(await get(`/games/${NONE}/purchases?email=nobody@example.com`), 404, 'invalid game');
    is(await get(`/games/${NONE}/download_keys?download_key=x`), 404, 'invalid game');
    is(await get(`/collections/${NONE}`), 404, 'invalid collection');
    is(await get(`/wharf/latest?game_id=${NONE}&channel_name=windows`), 404, 'invalid game');
  });

  test('fail with 413 for a body that is too large', async () => {
    const response = await ask('POST', '/collections', {
      body: `description=${'x'.repeat(600_000)}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    assert.equal(response.status, 413, response.text);
  });
});

describe('the credential', { skip: apiKey ? false : 'STAGING_API_KEY is not set' }, () => {
  test('has the expected type in both versions of the API', async () => {
    const info = ok(await get('/credentials/info'));
    assert.equal(info.type, 'key');
    assert.ok(Array.isArray(info.scopes) && info.scopes.length > 0);
    assert.deepEqual(ok(await get('/api/1/key/credentials/info')), { scopes: info.scopes });
  });

  test('has an account and its games', async () => {
    const { user } = ok(await get('/profile'));
    assert.equal(typeof user.username, 'string');
    const { games } = ok(await get('/profile/games'));
    assert.ok(Array.isArray(games));
    for (const game of games) assert.match(game.created_at, TIMESTAMP);
    assert.equal(ok(await get('/api/1/key/me')).user.id, user.id);
    const legacy = ok(await get('/api/1/key/my-games')).games;
    assert.deepEqual(
      legacy.map(({ id }) => id),
      games.map(({ id }) => id),
    );
  });

  test('looks up keys and purchases of its own games', async (t) => {
    const [game] = ok(await get('/profile/games')).games;
    if (!game) return t.skip('the account has no game');
    is(
      await get(`/games/${game.id}/download_keys?download_key=${randomUUID()}`),
      404,
      'invalid download key',
    );
    const { purchases } = ok(await get(`/games/${game.id}/purchases?email=${randomUUID()}@example.com`));
    assert.deepEqual(purchases, []);
  });

  test('gets the remaining requests of its rate limit', async (t) => {
    const { headers } = await get('/profile');
    if (headers.get('x-ratelimit-limit') === null) return t.skip('RATE_LIMIT is off');
    assert.ok(Number(headers.get('x-ratelimit-limit')) >= Number(headers.get('x-ratelimit-remaining')));
  });
});

describe('collections', { skip: apiKey ? false : 'STAGING_API_KEY is not set' }, () => {
  const title = `${MARK} ${randomUUID().slice(0, 8)}`;
  let id;

  after(async () => {
    const { collections } = ok(await get('/profile/collections'));
    for (const collection of collections)
      if (collection.title.startsWith(MARK)) await post(`/collections/${collection.id}/delete`);
  });

  test('are created once per idempotency key', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const fields = { title, private: 'true', description: '<p>Kept <script>alert(1)</script></p>' };
    const { collection } = ok(await post('/collections', fields, { headers }));
    const again = ok(await post('/collections', fields, { headers }));
    assert.equal(again.collection.id, collection.id);
    assert.equal(collection.title, title);
    assert.equal(collection.private, true);
    assert.doesNotMatch(collection.description, /script/);
    id = collection.id;
  });

  test('can be read immediately as they were written', async () => {
    for (let i = 0; i < 5; i++) {
      const changed = `${title} ${i}`;
      ok(await post(`/collections/${id}`, { title: changed }));
      assert.equal(ok(await get(`/collections/${id}`)).collection.title, changed);
      const listed = ok(await get('/profile/collections')).collections.find((one) => one.id === id);
      assert.equal(listed?.title, changed);
    }
  });

  test('contain games in an order that can be changed', async (t) => {
    const games = ok(await get('/profile/games')).games.slice(0, 3);
    if (games.length === 0) return t.skip('the account has no game');
    for (const game of games) ok(await post(`/collections/${id}/add-game`, { game_id: String(game.id) }));
    const wanted = games.map((game) => game.id).reverse();
    ok(await post(`/collections/${id}/order`, { game_ids: JSON.stringify(wanted) }));
    const page = ok(await get(`/collections/${id}/collection-games`));
    assert.deepEqual(
      page.collection_games.map((entry) => [entry.game_id, entry.position]),
      wanted.map((game_id, i) => [game_id, i + 1]),
    );
    const removed = ok(await post(`/collections/${id}/remove-game`, { game_id: String(wanted[0]) }));
    assert.deepEqual(removed, { success: true, removed: true });
    assert.equal(ok(await get(`/collections/${id}`)).collection.games_count, games.length - 1);
  });

  test('are visible only to their owner while private', async () => {
    is(await get(`/collections/${id}`, { key: '' }), 401, 'authentication required');
  });

  test('return 404 after they are deleted', async () => {
    assert.deepEqual(ok(await post(`/collections/${id}/delete`)), { success: true });
    is(await get(`/collections/${id}`), 404, 'invalid collection');
  });
});

describe('the operator', { skip: operatorToken ? false : 'STAGING_OPERATOR_TOKEN is not set' }, () => {
  const send = (key, lines) =>
    ask('POST', '/operator/import', {
      key,
      body: lines,
      headers: { 'content-type': 'application/x-ndjson' },
    });

  test('imports nothing if one record is invalid', async () => {
    const response = await send(operatorToken, '{"type":"game","id":1}\n{"type":"no such type"}\n');
    assert.equal(response.status, 400, response.text);
    assert.ok(response.body.errors.length > 0);
  });

  test('needs the right token', async () => {
    is(await send('not the token', ''), 401, 'invalid token');
  });
});
