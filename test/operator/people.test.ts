import { createHash, randomUUID } from 'node:crypto';
import { Command } from 'commander';
import { Audit } from '../../src/audit/audit';
import { addCommands } from '../../src/commands/program';
import { lengthenWaits } from '../support/attempts';
import { Browser, signInBrowser, PASSWORD, withPassword } from '../support/browser';
import { importLines, OPERATOR_TOKEN, importErrors } from '../support/importing';
import { type Actor, anonymous } from '../support/actor';
import { logged, openApp, theApp, theClock, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { holdLocks, untilBlocked } from '../support/locks';
import { until } from '../support/time';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

const operator = anonymous.with(OPERATOR_TOKEN);
const sha256 = (text: string) => createHash('sha256').update(text).digest();

/** The tables of the service with all their columns. */
const columns = () =>
  sql<{ table: string; columns: string[] }>(
    `SELECT table_name AS table, array_agg(column_name::text ORDER BY ordinal_position) AS columns
     FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' GROUP BY table_name ORDER BY table_name`,
  );

/** Searches all columns of all tables, and returns each place as `table.column: text`. */
async function searched(texts: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const { table, columns: names } of await columns())
    for (const column of names)
      for (const row of await sql<{ sought: string }>(
        `SELECT DISTINCT sought FROM ${table} t, unnest($1::text[]) AS sought
         WHERE strpos(lower(t."${column}"::text), lower(sought)) > 0 ORDER BY sought`,
        [texts],
      ))
        found.push(`${table}.${column}: ${row.sought}`);
  return found;
}

const tableNames = (found: string[]) => [...new Set(found.map((place) => place.split('.')[0]!))].toSorted();

interface Person {
  user: Actor;
  addresses: string[];
  /** Texts that only this person has. */
  texts: string[];
  /** A collection of another user, to which they added a game. */
  elsewhere: number;
  /** A collection of another user, with blurbs that they wrote. */
  reviewed: number;
  game: { id: number; slug: string };
}

/** A person with rows in every table and every possible relation to another user. */
async function createPerson(name: string, other: Actor): Promise<Person> {
  const address = `${name}@harbour.example`;
  const second = `${name}@second.example`;
  const claimed = `${name}@claimed.example`;
  const texts = [name, `Display ${name}`, address, second, claimed];
  const text = (what: string) => {
    const made = `${name}'s ${what}`;
    texts.push(made);
    return made;
  };
  const user = await make.user({
    username: name,
    display_name: `Display ${name}`,
    cover_url: `https://images.example/${name}.png`,
    developer: true,
    emails: [
      { email: address, verified: true },
      { email: second, verified: true },
      { email: claimed, verified: false },
    ],
  });
  await withPassword(user);
  await sql(`UPDATE api_keys SET label = $2 WHERE user_id = $1`, [user.id, text('build server')]);
  await sql(
    `INSERT INTO identities (issuer, subject, user_id, label) VALUES ('https://id.example', $2, $1, $3)`,
    [user.id, text('subject'), text('name at the provider')],
  );
  await sql(
    `INSERT INTO link_requests (purpose, user_id, email, username, password_hash) VALUES ('set_password', $1, $2, $3, $3)`,
    [user.id, text('request'), text('requested')],
  );
  await sql(
    `INSERT INTO account_links (token_hash, purpose, user_id, email) VALUES (sha256(convert_to($2::text, 'UTF8')), 'verify_email', $1, $2::text)`,
    [user.id, text('link')],
  );
  const client_id = `client-of-user-${user.id}`;
  await sql(
    `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes)
     VALUES ($1, $2, $3, $4, '{profile:me}')`,
    [client_id, user.id, text('launcher'), [`https://${name}.example/callback`]],
  );
  for (const one of [user, other]) {
    const [grant] = await sql<{ id: number }>(
      `INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES ($1, $2, '{profile:me}') RETURNING id`,
      [one.id, client_id],
    );
    await sql(
      `INSERT INTO api_keys (key_hash, hint, user_id, grant_id, label) VALUES ($1, 'gw_x', $2, $3, $4)`,
      [sha256(randomUUID()), one.id, grant!.id, `token by ${name}`],
    );
    await sql(
      `INSERT INTO oauth_codes (code_hash, grant_id, scopes, redirect_uri, family_id, expires_at)
       VALUES ($1, $2, '{profile:me}', $3, $4, now() + interval '1 minute')`,
      [sha256(randomUUID()), grant!.id, `https://${name}.example/callback`, randomUUID()],
    );
    await sql(
      `INSERT INTO oauth_refresh_tokens (token_hash, grant_id, family_id, scopes, expires_at)
       VALUES ($1, $2, $3, '{profile:me}', now() + interval '1 day')`,
      [sha256(randomUUID()), grant!.id, randomUUID()],
    );
    await sql(
      `INSERT INTO oauth_device_requests (device_code_hash, user_code, client_id, scopes, interval_seconds, expires_at, grant_id)
       VALUES ($1, $2, $3, '{profile:me}', 5, now() + interval '1 minute', $4)`,
      [sha256(randomUUID()), randomUUID(), client_id, grant!.id],
    );
  }
  const [webhook] = await sql<{ id: number }>(
    `INSERT INTO webhooks (url, events, user_id, game_id, secret, ended_at) VALUES ($1, '{purchase.completed}', $2, 0, '', now()) RETURNING id`,
    [`https://${name}.example/hook`, user.id],
  );
  await sql(
    `INSERT INTO webhook_attempts (webhook_id, message_id, event, data, happened_at, outcome, duration_ms, response)
     VALUES ($1, 'msg_test_1', 'webhook.test', '{}', now(), '200', 20, $2)`,
    [webhook!.id, `Hello ${name}`],
  );
  for (const subject of [`user ${user.id}`, `device code by ${user.id}`, `name ${address}`]) {
    texts.push(sha256(subject).toString('hex'));
    await sql(`INSERT INTO attempts VALUES ($1, 1, now(), now() + interval '1 day')`, [sha256(subject)]);
  }
  const game = await make.game({ owner: user, slug: `game-of-${user.id}`, title: `Game ${user.id}` });
  await sql(`INSERT INTO game_earnings VALUES ($1, 'USD', 1500)`, [game.id]);
  await sql(`UPDATE games SET purchases_count = 3 WHERE id = $1`, [game.id]);
  const others = await make.game({ owner: other, admins: [user] });
  // Purchases while signed in, as a guest, as a guest with an account that was not signed in, and with an unowned email
  // address.
  for (const more of [
    { user_id: user.id, email: address },
    { email: second.toUpperCase() },
    { user_id: other.id, email: address },
    { user_id: user.id, email: `${name}@odd.example` },
  ]) {
    const purchase = await make.purchase({ games: [others], ...more });
    await make.downloadKey({ game: others, purchase_id: purchase.id, email: more.email });
    await sql(`INSERT INTO purchase_references (reference, purchase_id) VALUES ($1, $2)`, [
      more.user_id === other.id ? `order-${purchase.id}` : `${address}-order-${purchase.id}`,
      purchase.id,
    ]);
  }
  const refunded = await make.purchase({ games: [game], status: 'refunded' });
  await sql('INSERT INTO refunds (purchase_id, user_id) VALUES ($1, $2)', [refunded.id, user.id]);
  await make.downloadKey({ game: others, user_id: user.id, label: `For ${address}` });
  await make.downloadKey({ game: others, email: address, revoked_at: '2024-01-01T00:00:00Z' });
  const own = await make.collection({
    owner: user,
    admins: [other],
    games: [others],
    title: text('favorites'),
    description: text('description'),
  });
  await sql(`UPDATE collection_games SET blurb = $2 WHERE collection_id = $1`, [own.id, text('blurb')]);
  const elsewhere = await make.collection({ owner: other, admins: [user], title: 'Not theirs' });
  await sql(
    `INSERT INTO collection_games (collection_id, game_id, sort_key, blurb, user_id) VALUES ($1, $2, 1, $3, $4)`,
    [elsewhere.id, game.id, text('blurb elsewhere'), user.id],
  );
  await sql(`UPDATE collections SET games_count = 1, updated_at = '2024-01-01' WHERE id = $1`, [
    elsewhere.id,
  ]);
  const reviewed = await make.collection({ owner: other, admins: [user], games: [game, others] });
  const added = await make.game({ owner: other });
  await user.post(`/collections/${reviewed.id}/add-game`, { game_id: added.id, blurb: 'First version' });
  const review = (by: Actor, of: { id: number }, blurb: string) =>
    by.post(`/collections/${reviewed.id}/collection-games/${of.id}`, { blurb });
  for (const [by, of, blurb] of [
    [user, game, text('review')],
    [user, others, 'First version'],
    [other, others, 'Rewritten'],
    [other, added, 'Rewritten'],
  ] as const)
    expect((await review(by, of, blurb)).status).toBe(200);
  for (const one of [user, other])
    await sql(`INSERT INTO profile_collections (collection_id, user_id) VALUES ($1, $2)`, [own.id, one.id]);
  return {
    user,
    addresses: [address, second, claimed],
    texts,
    elsewhere: elsewhere.id,
    reviewed: reviewed.id,
    game,
  };
}

/** Stored responses for retries: to the person, to others, and to a checkout. */
async function responsesAbout({ user, elsewhere, game, addresses }: Person, other: Actor): Promise<void> {
  const sold = await send('POST', '/operator/purchases', {
    headers: {
      ...operator.headers,
      'content-type': 'application/x-www-form-urlencoded',
      'idempotency-key': `sale to ${addresses[0]}`,
    },
    body: `game_id=${game.id}&email=${addresses[0]!.toUpperCase()}&currency=USD&amount=0`,
  });
  expect(sold.status).toBe(200);
  const shelf = await make.collection({ owner: other });
  for (const [actor, collection] of [
    [user, elsewhere],
    [other, elsewhere],
    [other, shelf.id],
  ] as const) {
    const asked = await send('POST', `/collections/${collection}/add-game`, {
      headers: {
        ...actor.headers,
        'content-type': 'application/x-www-form-urlencoded',
        'idempotency-key': `${actor.id} ${collection}`,
      },
      body: `game_id=${game.id}`,
    });
    expect(asked.status).toBe(200);
  }
}

/** Rows as text, so that rows of other people can be compared before and after. */
async function rowsWith(texts: string[]): Promise<string[]> {
  const rows: string[] = [];
  for (const { table } of await columns())
    for (const row of await sql<{ row: string }>(
      `SELECT (to_jsonb(t) - 'last_used_at' - 'last_used_from')::text AS row FROM ${table} t WHERE EXISTS (SELECT FROM unnest($1::text[]) x WHERE strpos(lower(t::text), lower(x)) > 0)
       ORDER BY 1`,
      [texts],
    ))
      rows.push(`${table} ${row.row}`);
  return rows;
}

const exported = async (user: Actor) => {
  const { status, text, headers } = await send('POST', `/operator/users/${user.id}/export`, {
    headers: operator.headers,
  });
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/x-ndjson');
  return parseRecords(text);
};
const parseRecords = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown> & { type: string });

const events = (event: string) =>
  sql<{ user_id: number | null; request_id: string; details: { counts: Record<string, number> } }>(
    'SELECT user_id, request_id, details FROM audit_events WHERE event = $1 ORDER BY id',
    [event],
  );

describe('rejected requests', () => {
  test.each(['/operator/users/1/export', '/operator/users/1/erase', '/operator/people/erase'])(
    '%s without an operator token, or with another credential',
    async (path) => {
      const user = await make.user();
      expect(await anonymous.post(path, { email: 'a@b.example' })).toEqual(
        failure(401, 'authentication required'),
      );
      expect(await user.post(path, { email: 'a@b.example' })).toEqual(failure(401, 'invalid token'));
    },
  );

  test('a missing user, an invalid ID, no email address', async () => {
    for (const action of ['export', 'erase']) {
      expect(await operator.post(`/operator/users/4000000/${action}`)).toEqual(failure(404, 'invalid user'));
      expect(await operator.post(`/operator/users/1e3/${action}`)).toEqual(
        failure(400, 'user_id must be an integer'),
      );
    }
    expect(await operator.post('/operator/people/erase')).toEqual(failure(400, 'email is required'));
  });
});

describe('a person with rows in every table', () => {
  let person: Person;
  let otherPerson: Person;
  let third: Actor;
  let browser: Browser;

  beforeAll(async () => {
    third = await make.user({ username: 'third-party' });
    person = await createPerson('quillon-marr', third);
    otherPerson = await createPerson('odelia-penn', third);
    browser = await signInBrowser(person.user);
    await new Browser().signIn('quillon-marr', 'wrong');
    await new Browser().signIn('odelia-penn', 'wrong');
    for (const one of [person, otherPerson]) await responsesAbout(one, third);
    await until(async () => (await sql(`SELECT FROM audit_events WHERE details ? 'network'`)).length === 2);
  });

  test('is found by the search everywhere', async () => {
    expect(tableNames(await searched(person.texts))).toEqual([
      'account_links',
      'api_keys',
      'attempts',
      'collection_games',
      'collections',
      'download_keys',
      'games',
      'idempotency_keys',
      'identities',
      'link_requests',
      'oauth_applications',
      'oauth_codes',
      'purchase_games',
      'purchase_references',
      'purchases',
      'user_emails',
      'users',
      'webhook_attempts',
      'webhooks',
    ]);
  });

  test('is exported completely, without secrets or data of others', async () => {
    const lines = await exported(person.user);
    const count = Object.fromEntries(
      [...new Set(lines.map(({ type }) => type))].map((type) => [
        type,
        lines.filter((line) => line.type === type).length,
      ]),
    );
    expect(count).toEqual({
      user: 1,
      user_email: 3,
      account_link: 1,
      link_request: 1,
      api_key: 2,
      session: 1,
      refund: 1,
      oauth_application: 1,
      oauth_grant: 1,
      oauth_code: 1,
      oauth_refresh_token: 1,
      oauth_device_request: 1,
      webhook: 1,
      webhook_attempt: 1,
      attempts: 2,
      audit_event: 2,
      game: 1,
      game_admin: 1,
      collection: 1,
      profile_collection: 1,
      collection_admin: 2,
      collection_game: 4,
      idempotency_key: 1,
      identity: 1,
      purchase: 5,
      download_key: 7,
    });
    const text = JSON.stringify(lines);
    for (const theirs of person.texts.slice(0, 5)) expect(text).toContain(theirs);
    for (const others of [...otherPerson.texts, 'third-party', 'hash', 'argon2'])
      expect(text).not.toContain(others);
    expect(lines[0]).toEqual({
      type: 'user',
      id: person.user.id,
      username: 'quillon-marr',
      display_name: 'Display quillon-marr',
      gamer: true,
      developer: true,
      press_user: false,
      cover_url: 'https://images.example/quillon-marr.png',
      token_generation: 0,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string,
      has_password: true,
    });
    // Purchases of another user with their email address are named, but not that user or the key.
    const third_id = third.id;
    const ofAccounts = (type: string) => lines.filter((line) => line.type === type);
    expect(ofAccounts('purchase').map(({ user_id }) => user_id)).not.toContain(third_id);
    expect(ofAccounts('download_key').map(({ account_id }) => account_id)).not.toContain(third_id);
    expect(ofAccounts('download_key').filter(({ key }) => key === null)).toHaveLength(1);
    await until(async () => (await events('user.exported')).length === 1);
    expect(await events('user.exported')).toEqual([
      {
        user_id: person.user.id,
        request_id: expect.any(String) as string,
        details: { operator: 'OPERATOR_TOKEN', counts: count },
      },
    ]);
  });

  describe('after the erasure', () => {
    let others: string[];
    let games: unknown;
    let books: unknown;
    let purchases: number[];
    const readPurchases = () =>
      sql(
        `SELECT id, purchase_type, created_at, source, currency, amount, sale_rate, quantity, status, donation,
           ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = p.id) AS games FROM purchases p ORDER BY id`,
      );
    const money = () =>
      sql(
        'SELECT id, title, slug, purchases_count, e.* FROM games LEFT JOIN game_earnings e ON game_id = id ORDER BY id, currency',
      );

    beforeAll(async () => {
      others = await rowsWith(otherPerson.texts);
      [games, books] = [await money(), await readPurchases()];
      purchases = (
        await sql<{ id: number }>('SELECT id FROM purchases WHERE user_id = $1 ORDER BY id', [person.user.id])
      ).map(({ id }) => id);
      const response = await operator.post(`/operator/users/${person.user.id}/erase`);
      expect(response).toEqual(
        ok({
          erased: {
            users: 1,
            user_emails: 3,
            identities: 1,
            account_links: 1,
            link_requests: 1,
            sessions: 1,
            api_keys: 1,
            oauth_applications: 1,
            oauth_grants: 2,
            webhooks: 1,
            attempts: 3,
            audit_events: 1,
            game_admins: 1,
            collections: 1,
            collection_admins: 2,
            profile_collections: 1,
            collection_games: 4,
            idempotency_keys: 3,
            purchases: 5,
            download_keys: 7,
            refunds: 1,
          },
        }),
      );
    });

    test('no column of any table contains their data', async () => {
      expect(await searched(person.texts)).toEqual([]);
      const [event] = await sql<{ details: object }>(
        `SELECT details FROM audit_events WHERE event = 'user.sign_in_failed' AND user_id = $1`,
        [person.user.id],
      );
      expect(event!.details).toEqual({ reason: 'wrong' });
    });

    test('no log line has contained their data', () => {
      const lines = logged.join('').toLowerCase();
      expect(lines).toContain('"event":"user.erased"');
      expect(person.texts.filter((text) => lines.includes(text.toLowerCase()))).toEqual([]);
    });

    test('rows of other people are unchanged', async () => {
      expect(await rowsWith(otherPerson.texts)).toEqual(others);
    });

    test('amounts, dates and games of purchases, counts and earnings are unchanged', async () => {
      expect(await readPurchases()).toEqual(books);
      expect(await money()).toEqual(games);
      expect(
        await sql('SELECT DISTINCT user_id, email FROM purchases WHERE id = ANY ($1)', [purchases]),
      ).toEqual([{ user_id: null, email: 'nobody@erased.invalid' }]);
    });

    test('the account is a row without a name, and its games have the new owner name', async () => {
      const id = person.user.id;
      expect(await sql('SELECT * FROM users WHERE id = $1', [id])).toEqual([
        expect.objectContaining({
          username: `erased-${id}`,
          display_name: null,
          cover_url: null,
          password_hash: null,
        }),
      ]);
      expect(await third.get(`/games/${person.game.id}`)).toMatchObject({
        status: 200,
        body: { game: { user: { username: `erased-${id}`, display_name: `erased-${id}` } } },
      });
    });

    test('other users keep what they bought with the email address', async () => {
      const [kept] = await sql<{ game_id: number; key: string }>(
        `SELECT k.game_id, k.key FROM download_keys k WHERE k.account_id = $1 AND k.email IS NULL`,
        [third.id],
      );
      expect(await third.get(`/games/${kept!.game_id}/ownership`)).toEqual(ok({ owns: true }));
    });

    test("an entry in another user's collection stays without its blurb and belongs to that user", async () => {
      const { body } = await third.get(`/collections/${person.elsewhere}/collection-games`);
      expect(body).toMatchObject({
        collection_games: [{ game_id: person.game.id, user_id: third.id, blurb: null, position: 1 }],
      });
      expect(await third.get(`/collections/${person.elsewhere}`)).toMatchObject({
        body: { collection: { games_count: 1, updated_at: expect.not.stringContaining('2024') as string } },
      });
    });

    test("a blurb in another user's entry is cleared only if the person wrote it last", async () => {
      const { body } = await third.get(`/collections/${person.reviewed}/collection-games`);
      expect(body).toMatchObject({
        collection_games: [
          { user_id: third.id, blurb: null },
          { user_id: third.id, blurb: 'Rewritten' },
          { user_id: third.id, blurb: 'Rewritten' },
        ],
      });
    });

    test('a second erasure returns zeros, and the audit log has both with counts and without names', async () => {
      const again = await operator.post(`/operator/users/${person.user.id}/erase`);
      const { erased } = again.body as { erased: Record<string, number> };
      expect(Object.entries(erased).filter(([, count]) => count > 0)).toEqual([]);
      await until(async () => (await events('user.erased')).length === 2);
      const [first, second] = await events('user.erased');
      expect(first).toMatchObject({ user_id: person.user.id, details: { counts: { purchases: 5 } } });
      expect(first!.request_id).toMatch(/./);
      expect(second!.details).toEqual({ operator: 'OPERATOR_TOKEN', counts: {} });
      expect(await searched(person.texts)).toEqual([]);
    });

    test('they can no longer sign in', async () => {
      expect(await person.user.get('/profile')).toEqual(failure(401, 'invalid key'));
      expect((await browser.get('/user/settings/data')).location).toContain('/login');
      expect((await new Browser().signIn('quillon-marr')).status).toBe(403);
      expect((await new Browser().signIn(`erased-${person.user.id}`)).status).toBe(403);
    });
  });
});

test('an erased user whom an import fills in again is erased again', async () => {
  const { id } = await make.user({ username: 'carl-filled' });
  await operator.post(`/operator/users/${id}/erase`);
  const filled = {
    display_name: 'Carl',
    cover_url: 'https://carl.example/c.png',
    password: 'sesame',
    gamer: false,
  };
  await importLines({ type: 'user', id, ...filled });
  const { body } = await operator.post(`/operator/users/${id}/erase`);
  expect(body).toMatchObject({ erased: { users: 1 } });
  expect(await sql('SELECT * FROM users WHERE id = $1', [id])).toEqual([
    expect.objectContaining({
      username: `erased-${id}`,
      display_name: null,
      cover_url: null,
      password_hash: null,
      gamer: true,
    }),
  ]);
  await importLines({ type: 'user', id, password: 'sesame' });
  expect((await operator.post(`/operator/users/${id}/erase`)).body).toMatchObject({ erased: { users: 1 } });
  expect((await operator.post(`/operator/users/${id}/erase`)).body).toMatchObject({ erased: { users: 0 } });
});

describe('an erasure with an Idempotency-Key', () => {
  const erase = async (path: string, key: string, form = '') => {
    const { status, body } = await send('POST', path, {
      headers: {
        ...operator.headers,
        'content-type': 'application/x-www-form-urlencoded',
        'idempotency-key': key,
      },
      body: form,
    });
    return { status, body };
  };

  test('returns its first response again and erases nothing', async () => {
    const { id } = await make.user({ username: 'cora-kept' });
    const first = await erase(`/operator/users/${id}/erase`, 'cora');
    expect(first).toMatchObject(ok({ erased: { users: 1, api_keys: 1 } }));
    await importLines({ type: 'user', id, display_name: 'Cora' });
    expect(await erase(`/operator/users/${id}/erase`, 'cora')).toEqual(first);
    expect(await sql('SELECT display_name FROM users WHERE id = $1', [id])).toEqual([
      { display_name: 'Cora' },
    ]);
    expect(await erase(`/operator/users/${id}/erase`, 'cora again')).toMatchObject(
      ok({ erased: { users: 1, api_keys: 0 } }),
    );
  });

  test('stores no hash from which an email address can be guessed', async () => {
    const email = 'dora@harbour.example';
    await make.purchase({ games: [], email });
    const path = '/operator/people/erase';
    const first = await erase(path, 'dora', `email=${email}`);
    expect(first).toMatchObject(ok({ erased: { purchases: 1 } }));
    expect(await erase(path, 'dora', `email=${email}`)).toEqual(first);
    const fingerprint = sha256(JSON.stringify([path, { email }])).toString('hex');
    expect(await searched([email, fingerprint])).toEqual([]);
  });

  test('is rejected for another person, and the error is not stored', async () => {
    const used = failure(400, 'Idempotency-Key was used with other parameters');
    const [one, other] = [await make.user(), await make.user({ username: 'elin-stays' })];
    expect(await erase('/operator/users/4000000/erase', 'elin')).toEqual(failure(404, 'invalid user'));
    expect((await erase(`/operator/users/${one.id}/erase`, 'elin')).status).toBe(200);
    expect(await erase(`/operator/users/${other.id}/erase`, 'elin')).toEqual(used);
    expect(await erase('/operator/people/erase', 'elin', 'email=elin@harbour.example')).toEqual(used);
    expect(await searched(['elin-stays'])).toEqual(['users.username: elin-stays']);
  });

  test('returns one response to concurrent requests', async () => {
    const { id } = await make.user();
    const all = await Promise.all([1, 2, 3].map(() => erase(`/operator/users/${id}/erase`, 'frida')));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
    for (const one of all) expect(one).toEqual(all[0]);
  });
});

test('the host of a webhook and failed attempts at download keys are exported and erased', async () => {
  const user = await make.user({ username: 'greta-hook' });
  await make.game({ owner: user });
  const browser = await signInBrowser(user);
  await browser.get('/user/settings/webhooks/new');
  await browser.submit('/user/settings/webhooks', { url: 'https://greta-hook.example/hook' });
  await browser.get('/user/games/redeem');
  await browser.submit('/user/games/redeem', { key: 'wrong' });
  await until(async () => (await sql(`SELECT FROM audit_events WHERE details ? 'host'`)).length === 1);
  const lines = await exported(user);
  expect(lines.filter(({ type }) => type === 'attempts')).toMatchObject([{ failures: 1 }]);
  expect(lines.find(({ event }) => event === 'webhook.created')).toMatchObject({
    details: { host: 'greta-hook.example' },
  });
  const { body } = await operator.post(`/operator/users/${user.id}/erase`);
  expect(body).toMatchObject({ erased: { attempts: 1, audit_events: 1, webhooks: 1 } });
  const subject = sha256(`download key by ${user.id}`).toString('hex');
  expect(await searched(['greta-hook', subject])).toEqual([]);
});

test('the names of erased users are reserved', async () => {
  const { id } = await make.user();
  for (const username of ['erased-7', 'Erased-7-0123abcd'])
    expect(await importErrors({ type: 'user', id, username })).toEqual([
      `line 1: user ${id}: username is reserved for the erased user 7`,
    ]);
  await importLines({ type: 'user', id, username: `erased-${id}` });
});

test('the email address of erased buyers is reserved', async () => {
  const { id } = await make.user();
  for (const verified of [true, false])
    expect(
      await importErrors({ type: 'user', id, emails: [{ email: 'Nobody@erased.invalid', verified }] }),
    ).toEqual([`line 1: user ${id}: emails[0].email is reserved for erased buyers`]);
});

test('an erased user cannot buy, even with an email address in the request', async () => {
  const { id } = await make.user({ emails: [{ email: 'late@harbour.example', verified: true }] });
  const game = await make.game({ owner: await make.user() });
  await operator.post(`/operator/users/${id}/erase`);
  const sale = { game_id: game.id, user_id: id, email: 'late@harbour.example', currency: 'USD', amount: 1 };
  expect(await operator.post('/operator/purchases', sale)).toEqual(failure(404, 'invalid user'));
  expect(await searched(['late@harbour.example'])).toEqual([]);
});

describe('an email address', () => {
  const guest = 'Guest+Sea@harbour.example';

  test('is trimmed and has no spaces inside', async () => {
    const purchase = await make.purchase({ games: [], email: 'carl@harbour.example' });
    for (const email of ['carl smith@harbour.example', 'carl', '@'])
      expect(await operator.post('/operator/people/erase', { email })).toEqual(
        failure(400, 'email must be an email address'),
      );
    expect(await operator.post('/operator/people/erase', { email: ' carl@harbour.example\t' })).toMatchObject(
      ok({ erased: { purchases: 1 } }),
    );
    expect(await sql('SELECT email FROM purchases WHERE id = $1', [purchase.id])).toEqual([
      { email: 'nobody@erased.invalid' },
    ]);
  });

  test('is removed from purchases and keys even without an account, and a second erasure returns zeros', async () => {
    const game = await make.game({ owner: await make.user() });
    const purchase = await make.purchase({ games: [game], email: guest });
    await make.downloadKey({ game, purchase_id: purchase.id });
    await make.downloadKey({ game, email: guest.toLowerCase() });
    const claimant = await make.user({ emails: [{ email: guest, verified: false }] });
    const response = await operator.post('/operator/people/erase', { email: guest });
    expect(response).toMatchObject({
      status: 200,
      body: { erased: { users: 0, user_emails: 1, purchases: 1, download_keys: 2 } },
    });
    expect(await searched([guest])).toEqual([]);
    expect(await sql('SELECT username FROM users WHERE id = $1', [claimant.id])).toEqual([
      { username: claimant.username },
    ]);
    expect(await operator.post('/operator/people/erase', { email: guest })).toMatchObject({
      body: { erased: { user_emails: 0, purchases: 0, download_keys: 0 } },
    });
    expect(await operator.post('/operator/people/erase', { email: 'nobody@erased.invalid' })).toMatchObject({
      body: { erased: { purchases: 0 } },
    });
  });

  test('erases its account, too', async () => {
    const user = await make.user({
      username: 'ansel-dray',
      emails: [{ email: 'ansel@harbour.example', verified: true }],
    });
    expect(await operator.post('/operator/people/erase', { email: 'ANSEL@harbour.example' })).toMatchObject({
      status: 200,
      body: { erased: { users: 1, user_emails: 1, api_keys: 1 } },
    });
    expect(await searched(['ansel-dray', 'ansel@harbour.example'])).toEqual([]);
    expect(await user.get('/profile')).toEqual(failure(401, 'invalid key'));
  });

  test("is removed from stored responses, so that a checkout's retry finds its sale without the buyer", async () => {
    const game = await make.game({ owner: await make.user() });
    const user = await make.user({ username: 'ilse-korn', emails: [] });
    const given = 'unverified@harbour.example';
    const sell = (fields: object, key: string) =>
      send('POST', '/operator/purchases', {
        headers: { ...operator.headers, 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify({ game_id: game.id, currency: 'USD', amount: 1, ...fields }),
      });
    const sales = [
      { email: '🦭seal.o"r\\x@harbour.example' },
      { email: 'Rolf@harbour.example', reference: 'order "7" of rolf@harbour.example' },
      { email: given, user_id: user.id, reference: 'for Ilse-Korn' },
      { email: 'rolf@harbour.example', reference: 'order 8' },
    ];
    const ids = [];
    for (const [i, sale] of sales.entries())
      ids.push((await sell(sale, `erased ${i}`)).body as { purchase: { id: number } });
    for (const { email } of sales.slice(0, 2)) await operator.post('/operator/people/erase', { email });
    await operator.post(`/operator/users/${user.id}/erase`);
    expect(await searched(['seal.o', 'rolf@', 'ilse-korn', given])).toEqual([]);
    const references = [null, null, null, 'order 8'];
    for (const [i, sale] of sales.entries())
      expect(await sell(sale, `erased ${i}`)).toMatchObject({
        status: 200,
        body: {
          purchase: { id: ids[i]!.purchase.id, email: 'nobody@erased.invalid', reference: references[i] },
          download_keys: [{ key: expect.any(String) as string }],
        },
      });
  });

  test('is removed from the references of sales, as is a name, but not a number or two letters within a word', async () => {
    const game = await make.game({ owner: await make.user() });
    const eraseWithReferences = async (username: string, display_name: string, references: string[]) => {
      const { id } = await make.user({ username, display_name });
      for (const reference of references) {
        const sale = { game_id: game.id, user_id: id, email: 'x@example.com', currency: 'USD', amount: 1 };
        expect((await operator.post('/operator/purchases', { ...sale, reference })).status).toBe(200);
      }
      await operator.post(`/operator/users/${id}/erase`);
      return (
        await sql<{ reference: string }>(
          'SELECT reference FROM purchase_references WHERE reference = ANY ($1) ORDER BY purchase_id',
          [references],
        )
      ).map(({ reference }) => reference);
    };
    const left = await Promise.all([
      eraseWithReferences('z-quux', 'Zorblax (Quux)', ['order ZORBLAX (quux)1', 'of Z-Quux', 'Zorblax 2']),
      eraseWithReferences('2024', '王伟', ['20241', 'on 2024-05-01', '给王伟的', '王 4']),
      eraseWithReferences('al', '1', ['principal 10001', 'for Al', 'fal-1-x', 'al_2']),
      eraseWithReferences('mia-moss', '🦭', ['seal 🦭', 'x🦭', 'order 5']),
    ]);
    expect(left).toEqual([['Zorblax 2'], ['20241', '王 4'], ['principal 10001'], ['x🦭', 'order 5']]);
  });

  test('is replaced in the labels of all download keys, as is a name, but not within a word', async () => {
    const owner = await make.user();
    const game = await make.game({ owner });
    const eraseWithLabels = async (names: { username: string; display_name: string }, labels: string[]) => {
      const person = await make.user({
        ...names,
        emails: [{ email: `${names.username}@harbour.example`, verified: true }],
      });
      const own = await make.game({ owner: person });
      const keys = await Promise.all(
        labels.map((label, i) => make.downloadKey({ game: i % 2 ? own : game, label })),
      );
      const erased = await operator.post(`/operator/users/${person.id}/erase`);
      const found = await sql<{ label: string }>(
        'SELECT label FROM download_keys WHERE id = ANY ($1) ORDER BY array_position($1, id)',
        [keys.map(({ id }) => id)],
      );
      return [(erased.body as { erased: object }).erased, ...found.map(({ label }) => label)];
    };
    expect(
      await eraseWithLabels({ username: 'zora-quill', display_name: 'Zora (Q)' }, [
        'For Zora-Quill, press',
        'to zora-quill@harbour.example',
        'ZORA (Q)',
        'for zora-quills',
      ]),
    ).toEqual([
      expect.objectContaining({ download_keys: 3 }),
      'For erased, press',
      'to erased',
      'erased',
      'for zora-quills',
    ]);
    expect(
      await eraseWithLabels({ username: 'al', display_name: '王伟' }, ['给王伟的', 'principal', 'Al', '王']),
    ).toEqual([expect.objectContaining({ download_keys: 2 }), '给erased的', 'principal', 'erased', '王']);
  });

  test('can be erased during sales to it', async () => {
    const email = 'busy@harbour.example';
    const game = await make.game({ owner: await make.user() });
    const user = await make.user({ username: 'busy-buyer', emails: [{ email, verified: true }] });
    const statuses = new Set<number>();
    const buy = async () => {
      const sale = { game_id: game.id, user_id: user.id, currency: 'USD', amount: 1 };
      statuses.add((await operator.post('/operator/purchases', sale)).status);
    };
    await buy();
    let erased = false;
    const buying = [0, 1].map(async () => {
      while (!erased) await buy();
    });
    const response = await operator.post(`/operator/users/${user.id}/erase`);
    erased = true;
    await Promise.all([...buying, buy()]);
    expect([...statuses].toSorted()).toEqual([200, 404]);
    expect(response.status).toBe(200);
    expect(await searched([email, 'busy-buyer'])).toEqual([]);
    expect(await sql('SELECT id FROM purchases WHERE user_id = $1', [user.id])).toEqual([]);
  });

  test('does not get a sale that has read the account before', async () => {
    const game = await make.game({ owner: await make.user() });
    const user = await make.user({ emails: [{ email: 'slow@harbour.example', verified: true }] });
    const { commit } = await holdLocks(`
      SELECT FROM users WHERE id = ${user.id} FOR UPDATE;
      UPDATE users SET username = 'erased-${user.id}' WHERE id = ${user.id}`);
    const sale = { game_id: game.id, user_id: user.id, currency: 'USD', amount: 1, reference: 'slow sale' };
    const response = operator.post('/operator/purchases', sale);
    await untilBlocked();
    await commit();
    expect(await response).toEqual(failure(404, 'invalid user'));
    expect(await sql('SELECT FROM purchases WHERE user_id = $1', [user.id])).toEqual([]);
    expect(await sql(`SELECT FROM purchase_references WHERE reference = 'slow sale'`)).toEqual([]);
  });

  test('keeps its email addresses until the last step, and an interrupted erasure can be repeated', async () => {
    const email = 'interrupted@harbour.example';
    const game = await make.game({ owner: await make.user() });
    const user = await make.user({ emails: [{ email, verified: true }] });
    // Only the last step of the erasure waits for this lock.
    const { release } = await holdLocks(`SELECT FROM users WHERE id = ${user.id} FOR KEY SHARE`);
    const interrupted = operator.post(`/operator/users/${user.id}/erase`);
    await untilBlocked();
    const sale = { game_id: game.id, currency: 'USD', amount: 1 };
    for (const buyer of [{ user_id: user.id }, { email }])
      expect((await operator.post('/operator/purchases', { ...sale, ...buyer })).status).toBe(200);
    await sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`);
    expect((await interrupted).status).toBe(503);
    await release();
    expect((await operator.post(`/operator/users/${user.id}/erase`)).status).toBe(200);
    expect(await searched([email])).toEqual([]);
  });

  test('keeps no session and no identity of a sign-in that began before', async () => {
    const user = await make.user();
    // Only the last step of the erasure waits for this lock.
    const { query, commit } = await holdLocks(`SELECT FROM users WHERE id = ${user.id} FOR KEY SHARE`);
    const erased = operator.post(`/operator/users/${user.id}/erase`);
    await untilBlocked();
    await query(`INSERT INTO sessions (token_hash, user_id, expires_at) VALUES (sha256('slow'), ${user.id}, now() + interval '1 day');
      INSERT INTO identities (issuer, subject, user_id) VALUES ('https://id.example.com', 'slow', ${user.id})`);
    await commit();
    expect((await erased).status).toBe(200);
    for (const table of ['sessions', 'identities'])
      expect(await sql(`SELECT FROM ${table} WHERE user_id = $1`, [user.id])).toEqual([]);
    expect(await sql('SELECT username FROM users WHERE id = $1', [user.id])).toEqual([
      { username: `erased-${user.id}` },
    ]);
  });

  test('that another account has verified or entered stays with that account', async () => {
    const shared = 'shared@harbour.example';
    const open = 'open@harbour.example';
    const game = await make.game({ owner: await make.user() });
    const owner = await make.user({
      emails: [
        { email: shared, verified: true },
        { email: open, verified: false },
      ],
    });
    const claimant = await make.user({
      emails: [
        { email: shared, verified: false },
        { email: open, verified: false },
      ],
    });
    for (const email of [shared, open]) await make.purchase({ games: [game], email });
    const gift = await make.purchase({ games: [game], email: shared, user_id: claimant.id });
    expect((await exported(claimant)).filter(({ type }) => type === 'purchase')).toHaveLength(1);
    await operator.post(`/operator/users/${claimant.id}/erase`);
    expect(await sql('SELECT email FROM user_emails WHERE user_id = $1 ORDER BY 1', [owner.id])).toEqual([
      { email: open },
      { email: shared },
    ]);
    expect(
      await sql('SELECT email, user_id FROM purchases WHERE lower(email) = ANY ($1) ORDER BY id', [
        [shared, open],
      ]),
    ).toEqual([
      { email: shared, user_id: null },
      { email: open, user_id: null },
      { email: shared, user_id: null },
    ]);
    expect(await sql('SELECT user_id FROM purchases WHERE id = $1', [gift.id])).toEqual([{ user_id: null }]);
  });
});

test('a key that another replica has cached is rejected there within a second', async () => {
  const user = await make.user();
  const replica = await openApp({ OPERATOR_TOKEN });
  const ask = async () =>
    (await fetch(`${await replica.getUrl()}/profile`, { headers: user.headers })).status;
  expect(await ask()).toBe(200);
  await operator.post(`/operator/users/${user.id}/erase`);
  theClock().advance(1000);
  expect(await ask()).toBe(401);
});

test('large lists are exported in slices by statements of constant size', async () => {
  const user = await make.user({ emails: [{ email: 'many@harbour.example', verified: true }] });
  const game = await make.game({ owner: await make.user() });
  await sql(
    `WITH bought AS (
       INSERT INTO purchases (email, source, currency, amount) SELECT 'many@harbour.example', 'card', 'USD', 1
       FROM generate_series(1, 5600) RETURNING id)
     INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM bought`,
    [game.id],
  );
  await sql(
    `INSERT INTO collections (user_id, title) SELECT $1, 'Collection ' || n FROM generate_series(1, 2100) n`,
    [user.id],
  );
  const lines = await exported(user);
  const ids = (type: string) => new Set(lines.filter((line) => line.type === type).map(({ id }) => id)).size;
  expect([ids('purchase'), ids('collection')]).toEqual([5600, 2100]);
  expect(await operator.post(`/operator/users/${user.id}/erase`)).toMatchObject({
    status: 200,
    body: { erased: { purchases: 5600, collections: 2100 } },
  });
});

describe('/user/settings/data', () => {
  let user: Actor;
  let browser: Browser;
  beforeAll(async () => {
    user = await make.user({ emails: [{ email: 'mine@harbour.example', verified: false }] });
    const game = await make.game({ owner: await make.user() });
    await make.purchase({ games: [game], email: 'mine@harbour.example' });
    browser = await signInBrowser(user);
  });

  test('requires a session and the form', async () => {
    expect((await new Browser().get('/user/settings/data')).location).toContain('/login');
    expect((await browser.post('/user/settings/data', { password: PASSWORD })).status).toBe(403);
  });

  test('requires the right password', async () => {
    await browser.get('/user/settings/data');
    expect((await browser.submit('/user/settings/data')).status).toBe(400);
    expect(browser.words).toContain('Enter your password.');
    expect((await browser.submit('/user/settings/data', { password: 'wrong' })).status).toBe(403);
    expect(browser.words).toContain('The password is wrong.');
  });

  test("exports the user's own data, without data of email addresses that they only entered", async () => {
    const page = await browser.submit('/user/settings/data', { password: PASSWORD });
    expect(page.status).toBe(200);
    expect(page.headers.get('content-disposition')).toBe('attachment; filename="my-data.ndjson"');
    expect(page.headers.get('cache-control')).toContain('no-store');
    expect(page.headers.get('access-control-allow-origin')).toBeNull();
    const lines = parseRecords(page.text);
    expect(lines[0]).toMatchObject({ type: 'user', id: user.id });
    expect(lines.filter(({ type }) => type === 'user_email')).toHaveLength(1);
    expect(lines.filter(({ type }) => type === 'purchase')).toEqual([]);
  });

  test('limits failed attempts together with the sign-in', async () => {
    await lengthenWaits();
    await browser.get('/user/settings/data');
    const fields = browser.formFields('/user/settings/data');
    for (let i = 0; i < 6; i++) await browser.post('/user/settings/data', { ...fields, password: 'wrong' });
    const page = await browser.post('/user/settings/data', { ...fields, password: PASSWORD });
    expect(page.status).toBe(429);
    expect(page.headers.get('retry-after')).toMatch(/^\d+$/);
  });

  test("records the export when the store's proxy signs users in", async () => {
    const replica = await openApp({
      TRUSTED_IDENTITY_HEADER: 'X-Store-User',
      TRUSTED_PROXIES: '127.0.0.0/8',
    });
    const url = await replica.getUrl();
    const elsewhere = new Browser({ 'x-store-user': user.username }, () => url);
    await elsewhere.get('/user/settings/data');
    expect(elsewhere.words).toContain('Request the file there');
    expect(() => elsewhere.formFields('/user/settings/data')).toThrow('no form');
  });
});

describe('the command', () => {
  let onWrite: (() => boolean) | undefined;

  /** What it wrote to standard output, or the reason for the rejection. */
  async function users(...words: string[]): Promise<string> {
    const program = new Command().exitOverride();
    addCommands(program, (work) => work(theApp(), new AbortController().signal), ['users']);
    const said: string[] = [];
    const log = jest.spyOn(console, 'log').mockImplementation((line: string) => void said.push(`${line}\n`));
    const write = jest
      .spyOn(process.stdout, 'write')
      .mockImplementation((text) => onWrite?.() ?? !!said.push(String(text)));
    try {
      await program.parseAsync(['users', ...words], { from: 'user' });
      return said.join('');
    } catch (error) {
      return (error as Error).message;
    } finally {
      log.mockRestore();
      write.mockRestore();
    }
  }

  test('requires exactly one existing person', async () => {
    for (const action of ['export', 'erase']) {
      expect(await users(action)).toBe('Specify either a username or --email ADDRESS.');
      expect(await users(action, 'leaf', '--email', 'a@b.example')).toBe(
        'Specify either a username or --email ADDRESS.',
      );
      expect(await users(action, 'nobody')).toBe("User nobody doesn't exist.");
    }
  });

  test('does not blame the database when the reader of an export closes the pipe', async () => {
    const { username } = await make.user();
    const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    onWrite = () => setImmediate(() => process.stdout.emit('error', gone)) && false;
    expect(await users('export', username)).toBe('Standard output was closed before all output was written.');
    onWrite = undefined;
  });

  test('exports, erases only with confirmation, and finds nothing the second time', async () => {
    const email = 'lumi@harbour.example';
    const user = await make.user({ username: 'lumi-vane', emails: [{ email, verified: true }] });
    await make.purchase({ games: [await make.game({ owner: await make.user() })], email });
    const lines = parseRecords(await users('export', 'Lumi-Vane'));
    expect(lines.map(({ type }) => type)).toEqual(['user', 'user_email', 'api_key', 'purchase']);
    // The first export has added an audit event of this user.
    await theApp().get(Audit).flush();
    expect(parseRecords(await users('export', '--email', email))).toHaveLength(5);
    expect(await users('erase', 'lumi-vane')).toBe(
      `Nothing was erased. Use --yes to erase lumi-vane (user ${user.id}) without confirmation.`,
    );
    expect(await searched(['lumi-vane'])).not.toEqual([]);
    expect((await users('erase', 'lumi-vane', '--yes')).split(/\s+/)).toEqual(
      expect.arrayContaining(['users', 'purchases', '1']),
    );
    expect(await searched(['lumi-vane', email])).toEqual([]);
    for (const words of [[`erased-${user.id}`], ['--email', email]])
      expect(await users('erase', ...words, '--yes')).toBe('There is no data to erase.\n');
    expect(logged.join('')).not.toContain('lumi');
  });
});
