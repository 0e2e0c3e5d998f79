import { hash as bcryptHash } from 'bcrypt';
import { once } from 'node:events';
import { connect } from 'node:net';
import * as fc from 'fast-check';
import type { Client } from 'pg';
import { verifyPassword } from '../../src/auth/sign-in/password-hash';
import { SCOPES } from '../../src/auth/access/scopes';
import { demoRecords } from '../../src/dev/demo/demo';
import {
  allRows,
  importDirectly,
  importLines,
  type Line,
  ndjson,
  OPERATOR_TOKEN,
  importErrors,
  storedSales,
  expectedSales,
  sendImport,
  wrongAccounts,
  wrongBuyers,
  wrongOwners,
} from '../support/importing';
import { game, purchase, user, downloadKey, collection, build } from '../support/records';
import { largeDemoRecords } from '../support/large-demo';
import { untilBlocked, holdLocks } from '../support/locks';
import { Actor, anonymous } from '../support/actor';
import { baseUrl, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

beforeEach(async () => {
  await sql('TRUNCATE users, games, purchases, download_keys, collections, builds, api_keys CASCADE');
});

const apiKey = (key: string, fields: object = {}) => ({ type: 'api_key', key, user_id: 1, ...fields });
const application = (client_id: string, fields: object = {}) => ({
  type: 'oauth_application',
  client_id,
  user_id: 1,
  name: 'Companion',
  redirect_uris: ['http://127.0.0.1:8080/callback'],
  scopes: ['profile:me'],
  ...fields,
});

const row = async (table: string, id: number | string = 1, key = 'id') =>
  (await sql(`SELECT * FROM ${table} WHERE ${key} = $1`, [id]))[0];

describe('a changed API key takes effect at the next request to the same replica', () => {
  const profileWith = (key: string) => new Actor(1, 'user1', key).get('/profile');

  test.each([
    ['revoked', { revoked_at: '2020-01-01T00:00:00Z' }, failure(401, 'invalid key')],
    ['narrowed', { scopes: ['collection:view'] }, failure(403, 'api key does not permit `profile:me`')],
  ])('%s', async (_change, fields, response) => {
    await importLines(user(1), apiKey('a-key-of-somebody'), apiKey('another-key'));
    expect((await profileWith('a-key-of-somebody')).status).toBe(200);
    await importLines(apiKey('a-key-of-somebody', fields));
    expect(await profileWith('a-key-of-somebody')).toEqual(response);
    expect((await profileWith('another-key')).status).toBe(200);
    await importLines(apiKey('another-key', fields));
    expect(await profileWith('another-key')).toEqual(response);
  });
});

describe('permissions to import', () => {
  test('require a token', async () => {
    expect(await anonymous.post('/operator/import')).toEqual(failure(401, 'authentication required'));
  });
  test('are not granted by another token or an API key', async () => {
    await importLines(user(1), apiKey('a-key-of-somebody'));
    expect(await sendImport([user(2)], 'another token')).toEqual(failure(401, 'invalid token'));
    expect(await sendImport([user(2)], 'a-key-of-somebody')).toEqual(failure(401, 'invalid token'));
  });
  test.each([
    ['application/json', failure(415, 'unsupported media type')],
    ['application/x-ndjson; charset=latin1', failure(415, 'unsupported charset')],
    ['application/x-ndjson; charset="utf-16"', failure(415, 'unsupported charset')],
    ['application/x-ndjson; charset=UTF-8', failure(400, 'line 1: type is required')],
  ])('accepts only NDJSON in UTF-8: %s', async (type, expected) => {
    const { status, body } = await send('POST', '/operator/import', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': type },
      body: '{}',
    });
    expect({ status, body }).toEqual(expected);
  });
});

describe('imported records', () => {
  test('imports every record type in any order, visible through the API', async () => {
    const summary = await importLines(
      apiKey('a-key-to-read-with'),
      application('companion'),
      build(9, { user_version: '1.0' }),
      build(10, { user_version: '1.2.0' }),
      build(11, { user_version: '1.3.0', state: 'processing' }),
      collection(1, { games: [{ game_id: 2 }, { game_id: 1, blurb: '<b>yes</b><script>no</script>' }] }),
      downloadKey(1, { purchase_id: 1, email: 'Buyer@example.com' }),
      purchase(1, { game_id: [2, 1], amount: 501 }),
      game(2, { published_at: '2013-03-03T23:02:14Z', traits: ['p_linux'], game_type: 'html', admins: [2] }),
      game(1, { published_at: '2013-03-03T23:02:14.5+02:00', min_price: 499 }),
      user(2, { emails: [{ email: 'Buyer@Example.com', verified: true }] }),
      user(1, { display_name: 'Leaf', developer: true }),
    );
    expect(summary).toEqual([
      'users 2 new, 0 changed, 0 unchanged',
      'games 2 new, 0 changed, 0 unchanged',
      'purchases 1 new, 0 changed, 0 unchanged',
      'download_keys 1 new, 0 changed, 0 unchanged',
      'collections 1 new, 0 changed, 0 unchanged',
      'builds 3 new, 0 changed, 0 unchanged',
      'api_keys 1 new, 0 changed, 0 unchanged',
      'oauth_applications 1 new, 0 changed, 0 unchanged',
    ]);
    const owner = new Actor(1, 'user1', 'a-key-to-read-with');
    const { games } = (await owner.get('/profile/games')).body as { games: object[] };
    expect(games).toContainEqual(
      expect.objectContaining({
        id: 1,
        published_at: '2013-03-03T21:02:14Z',
        purchases_count: 1,
        earnings: [{ currency: 'USD', amount: 251, amount_formatted: '$2.51' }],
      }),
    );
    expect(games).toContainEqual(
      expect.objectContaining({ id: 2, type: 'html', traits: ['p_linux'], purchases_count: 1 }),
    );
    expect(await owner.get('/games/1/download_keys', { user_id: 2 })).toMatchObject(
      ok({ download_key: { id: 1, key: 'key-1', owner: { id: 2 } } }),
    );
    expect(await anonymous.get('/wharf/latest', { game_id: 1, channel_name: 'windows' })).toEqual(
      ok({ latest: '1.2.0' }),
    );
    expect(
      await sql(
        'SELECT game_id, blurb, user_id FROM collection_games WHERE collection_id = 1 ORDER BY sort_key',
      ),
    ).toEqual([
      { game_id: 2, blurb: null, user_id: 1 },
      { game_id: 1, blurb: '<b>yes</b>', user_id: 1 },
    ]);
    expect(await row('collections')).toMatchObject({ games_count: 2, layout: 'grid', private: false });
    expect(await sql('SELECT user_id FROM game_admins WHERE game_id = 2')).toEqual([{ user_id: 2 }]);
    expect(await row('oauth_applications', 'companion', 'client_id')).toMatchObject({
      name: 'Companion',
      redirect_uris: ['http://127.0.0.1:8080/callback'],
      scopes: ['profile:me'],
    });
  });

  test('returns the counts as numbers as well', async () => {
    await importLines(user(1), user(2));
    expect(await sendImport([user(1), user(2, { gamer: false }), user(3)])).toEqual(
      ok({
        summary: ['users 1 new, 1 changed, 1 unchanged'],
        types: { users: { new: 1, changed: 1, unchanged: 1 } },
      }),
    );
  });

  test('changes nothing the second time, not even a row version', async () => {
    const lines = [...demoRecords({ api_key: 'a-demo-key-for-tests', password: 'a password' })];
    await importLines(...lines);
    const before = await allRows();
    expect(
      (await importLines(...lines)).every((line) => / 0 new, 0 changed, [1-9]\d* unchanged$/.test(line)),
    ).toBe(true);
    expect(await allRows()).toEqual(before);
  });

  test('keeps the value of an absent field, clears null, and replaces a required one', async () => {
    await importLines(
      user(1, { display_name: 'Leaf', gamer: false, developer: true, created_at: '2014-01-01T00:00:00Z' }),
      game(1, { short_text: 'short', min_price: 5, traits: ['p_osx'], published_at: '2014-01-01T00:00:00Z' }),
      downloadKey(1, { email: 'a@example.com', downloads: 4 }),
    );
    const [before] = await sql('SELECT * FROM users');
    expect(await importLines(user(1, { username: 'other' }), game(1), downloadKey(1))).toEqual([
      'users 0 new, 1 changed, 0 unchanged',
      'games 0 new, 0 changed, 1 unchanged',
      'download_keys 0 new, 0 changed, 1 unchanged',
    ]);
    expect(await row('users')).toEqual({ ...before, username: 'other' });
    await importLines(
      user(1, { display_name: null, gamer: null, developer: null, created_at: null }),
      game(1, { short_text: null, min_price: null, traits: null, published_at: null }),
      downloadKey(1, { email: null, downloads: null }),
    );
    expect(await row('users')).toEqual({ ...before, display_name: null, gamer: true, developer: false });
    expect(await row('games')).toMatchObject({
      short_text: null,
      min_price: 0,
      traits: [],
      published_at: null,
    });
    expect(await row('download_keys')).toMatchObject({ email: null, downloads: 0 });
  });

  test('replaces lists, keeps absent ones, and empties them for null', async () => {
    const emails = () => sql('SELECT email, verified FROM user_emails WHERE user_id = 1 ORDER BY email');
    const admins = () => sql('SELECT user_id FROM game_admins WHERE game_id = 1 ORDER BY user_id');
    await importLines(
      user(1, {
        emails: [
          { email: 'A@example.com', verified: false },
          { email: 'b@example.com', verified: true },
        ],
      }),
      user(2),
      user(3),
      game(1, { admins: [3, 2] }),
    );
    expect(await importLines(user(1), game(1))).toEqual([
      'users 0 new, 0 changed, 1 unchanged',
      'games 0 new, 0 changed, 1 unchanged',
    ]);
    expect(
      await importLines(
        user(1, {
          emails: [
            { email: 'a@Example.com', verified: true },
            { email: 'c@example.com', verified: false },
          ],
        }),
        game(1, { admins: [2, 1] }),
      ),
    ).toEqual(['users 0 new, 1 changed, 0 unchanged', 'games 0 new, 1 changed, 0 unchanged']);
    expect(await emails()).toEqual([
      { email: 'a@example.com', verified: true },
      { email: 'c@example.com', verified: false },
    ]);
    expect(await admins()).toEqual([{ user_id: 1 }, { user_id: 2 }]);
    await importLines(user(1, { emails: null }), game(1, { admins: null }));
    expect([await emails(), await admins()]).toEqual([[], []]);
  });

  test('can move a unique value to another record', async () => {
    const verified = (email: string) => [{ email, verified: true }];
    await importLines(
      user(1, { username: 'one', emails: verified('one@example.com') }),
      user(2, { username: 'two', emails: verified('two@example.com') }),
      game(1, { slug: 'one' }),
      game(2, { slug: 'two' }),
      downloadKey(1, { key: 'one' }),
      downloadKey(2, { key: 'two' }),
    );
    await importLines(
      user(1, { username: 'TWO', emails: verified('two@example.com') }),
      user(2, { username: 'one', emails: verified('one@example.com') }),
      game(1, { slug: 'two' }),
      game(2, { slug: 'one' }),
      downloadKey(1, { key: 'two' }),
      downloadKey(2, { key: 'one' }),
    );
    expect(
      await sql(`SELECT u.username, e.email, g.slug, k.key FROM users u JOIN user_emails e ON e.user_id = u.id
                 JOIN games g ON g.id = u.id JOIN download_keys k ON k.id = u.id ORDER BY u.id`),
    ).toEqual([
      { username: 'TWO', email: 'two@example.com', slug: 'two', key: 'two' },
      { username: 'one', email: 'one@example.com', slug: 'one', key: 'one' },
    ]);
  });

  test('can reuse a name that its owner gives up in the same stream', async () => {
    await importLines(user(1, { username: 'wanted' }));
    await importLines(user(2, { username: 'wanted' }), user(1, { username: 'released' }));
    expect(await sql('SELECT username FROM users ORDER BY id')).toEqual([
      { username: 'released' },
      { username: 'wanted' },
    ]);
  });

  test('imports text unchanged', async () => {
    const title = 'Tab\there, "quotes", back\\slash, new\nline, \\N, 月, \u2028 and 🎮';
    await importLines(user(1), game(1, { title, short_text: '\\.' }));
    expect(await row('games')).toMatchObject({ title, short_text: '\\.' });
    const uri = 'https://a.example/?q="x"\\,{y}';
    await importLines(application('quoting', { redirect_uris: [uri, 'game:/signed-in'] }));
    expect(await row('oauth_applications', 'quoting', 'client_id')).toMatchObject({
      redirect_uris: [uri, 'game:/signed-in'],
    });
  });

  test('enables the implicit flow and starting games for an app only if its record says so', async () => {
    const allows = async (client_id: string) => {
      const { implicit_allowed, may_start_games } = (await row(
        'oauth_applications',
        client_id,
        'client_id',
      ))!;
      return { implicit_allowed, may_start_games };
    };
    const none = { implicit_allowed: false, may_start_games: false };
    const both = { implicit_allowed: true, may_start_games: true };
    await importLines(user(1), application('silent'), application('open', both));
    expect(await allows('silent')).toEqual(none);
    expect(await allows('open')).toEqual(both);
    // A setting changed on a page stays unless the record contains it.
    await sql(`UPDATE oauth_applications SET implicit_allowed = true WHERE client_id = 'silent'`);
    expect(await importLines(application('silent'), application('open'))).toEqual([
      'oauth_applications 0 new, 0 changed, 2 unchanged',
    ]);
    expect(await allows('silent')).toEqual({ ...none, implicit_allowed: true });
    await importLines(application('open', { implicit_allowed: null }), application('silent', none));
    expect(await allows('open')).toEqual({ ...both, implicit_allowed: false });
    expect(await allows('silent')).toEqual(none);
  });

  test('accepts blank lines, CRLF, a byte order mark and a missing final newline', async () => {
    const text = `\ufeff${JSON.stringify(user(1))}\r\n\r\n  \n${JSON.stringify(user(2))}`;
    expect(await importLines(text)).toEqual(['users 2 new, 0 changed, 0 unchanged']);
    expect(await importLines('')).toEqual([]);
  });

  test('accepts lines split into chunks of any size', async () => {
    const bytes = Buffer.from(ndjson([user(1, { display_name: '月🎮' }), '', user(2), user(3)]));
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3);
    }
    expect(await importDirectly(pieces())).toEqual({ users: { new: 3, changed: 0, unchanged: 0 } });
    expect(await row('users')).toMatchObject({ display_name: '月🎮' });
  });
});

describe('secrets', () => {
  test('stores an API key as a hash and a hint that does not reveal it', async () => {
    await importLines(
      user(1),
      user(2),
      apiKey('a-rather-long-key-1234567890', { scopes: ['profile:me'] }),
      apiKey('abc'),
    );
    const keys = await sql<{ hint: string }>('SELECT * FROM api_keys ORDER BY id');
    expect(keys.map(({ hint }) => hint)).toEqual(['a-rather', 'a']);
    expect(JSON.stringify(await allRows())).not.toContain('a-rather-long');
    expect(await new Actor(1, 'user1', 'a-rather-long-key-1234567890').get('/credentials/info')).toEqual(
      ok({ type: 'key', scopes: ['profile:me'] }),
    );
    // The record is identified by its key.
    expect(
      await importLines(
        apiKey('abc', { revoked_at: '2020-01-01T00:00:00Z' }),
        apiKey('a-rather-long-key-1234567890'),
      ),
    ).toEqual(['api_keys 0 new, 1 changed, 1 unchanged']);
    expect(await new Actor(1, 'user1', 'abc').get('/credentials/info')).toEqual(failure(401, 'invalid key'));
  });

  test('stores a password as a hash, which stays while the password is unchanged', async () => {
    const hash = async () => (await row('users'))!.password_hash as string;
    await importLines(user(1, { password: 'first password' }));
    const first = await hash();
    expect(first).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await verifyPassword(first, 'first password')).toBe(true);
    expect(await importLines(user(1, { password: 'first password' }))).toEqual([
      'users 0 new, 0 changed, 1 unchanged',
    ]);
    expect(await importLines(user(1))).toEqual(['users 0 new, 0 changed, 1 unchanged']);
    expect(await hash()).toBe(first);
    expect(await importLines(user(1, { password: 'second password' }))).toEqual([
      'users 0 new, 1 changed, 0 unchanged',
    ]);
    expect(await verifyPassword(await hash(), 'second password')).toBe(true);
    await importLines(user(1, { password: null }));
    expect(await hash()).toBeNull();
  });

  test("stores another system's hash, keeps it while absent, and clears it for null", async () => {
    const hash = async () => (await row('users'))!.password_hash as string;
    const other = await bcryptHash('from another store', 4);
    await importLines(user(1, { password_hash: other }));
    expect(await hash()).toBe(other);
    expect(await importLines(user(1, { password_hash: other }))).toEqual([
      'users 0 new, 0 changed, 1 unchanged',
    ]);
    expect(await importLines(user(1))).toEqual(['users 0 new, 0 changed, 1 unchanged']);
    expect(await importLines(user(1, { password: 'from another store' }))).toEqual([
      'users 0 new, 0 changed, 1 unchanged',
    ]);
    expect(await importLines(user(1, { password_hash: null }))).toEqual([
      'users 0 new, 1 changed, 0 unchanged',
    ]);
    expect(await hash()).toBeNull();
  });

  test('reveals no key or password in a problem or log line', async () => {
    const problems = await importErrors(
      user(1, { password: 'a secret password', nothing: 1 }),
      apiKey('a-secret-key', { user_id: 9 }),
      apiKey('a-secret-key', { user_id: 9 }),
      downloadKey(1, { key: 'a-secret-download-key' }),
    );
    expect(problems.join('\n')).not.toMatch(/secret/);
  });
});

describe('problems', () => {
  const parents = [user(1), game(1)];
  const cases: [what: string, line: Line, problem: string][] = [
    ['broken JSON', '{"type":"user"', 'is not valid JSON'],
    ['two records on one line', `${JSON.stringify(user(5))} ${JSON.stringify(user(6))}`, 'is not valid JSON'],
    ['a list', '[1]', 'is not a JSON object'],
    [
      'a repeated field',
      '{"type":"user","id":9011,"id" : 9012,"username":"a"}',
      'user 9012: contains a field twice',
    ],
    [
      'a repeated field, once escaped',
      String.raw`{"type":"user","id":9,"i\u0064":9,"username":"a"}`,
      'user 9: contains a field twice',
    ],
    [
      'a repeated field of a list entry',
      '{"type":"user","id":9,"username":"a","emails":[{"email":"a@example.com","email":"b@example.com","verified":true}]}',
      'user 9: contains a field twice',
    ],
    ['a string', '"user"', 'is not a JSON object'],
    ['null', 'null', 'is not a JSON object'],
    ['no type', { id: 1 }, 'type is required'],
    ['an unknown type', { type: 'constructor', id: 1 }, 'unknown type constructor'],
    ['a type that is a list', { type: ['user'], id: 1 }, 'type must be a text'],
    ['a type that is an object', { type: { toString: 1 }, id: 1 }, 'type must be a text'],
    [
      'a type that is a deeply nested list',
      `{"type":${'['.repeat(7000)}${']'.repeat(7000)}}`,
      'type must be a text',
    ],
    ['a plural type', { type: 'games', id: 1 }, 'unknown type games: did you mean `game`?'],
    ['a singular field', user(5, { email: 'x' }), 'user 5: unknown field email: did you mean `emails`?'],
    ['an unknown field', user(5, { nickname: 'x' }), 'user 5: unknown field nickname'],
    ['a capitalized type', { type: 'Purchase', id: 1 }, 'unknown type Purchase: did you mean `purchase`?'],
    ['a type with a typo', { type: 'gmae', id: 1 }, 'unknown type gmae: did you mean `game`?'],
    [
      'a field with a typo',
      user(5, { dsplay_name: 'x' }),
      'user 5: unknown field dsplay_name: did you mean `display_name`?',
    ],
    [
      'a deeply nested unknown field',
      `{"type":"user","id":5,"username":"a","x":${'['.repeat(7000)}${']'.repeat(7000)}}`,
      'user 5: unknown field x',
    ],
    ['a field similar to none', user(5, { x: 1 }), 'user 5: unknown field x'],
    [
      'a hash of an unsupported type',
      user(5, { password_hash: '5f4dcc3b5aa765d61d8327deb882cf99' }),
      'user 5: password_hash must be a bcrypt or argon2 hash, such as $2b$12$... or $argon2id$v=19$...',
    ],
    [
      'a hash that takes minutes',
      user(5, { password_hash: `$2b$31$${'a'.repeat(53)}` }),
      'user 5: password_hash must have a bcrypt cost from 4 to 14',
    ],
    [
      'a hash that takes gigabytes',
      user(5, { password_hash: `$argon2id$v=19$m=4194304,t=1,p=1$${'a'.repeat(22)}$${'b'.repeat(43)}` }),
      'user 5: password_hash must have argon2 parameters of at most m=102400, t=10 and p=16',
    ],
    ['a hash that is a number', user(5, { password_hash: 5 }), 'user 5: password_hash must be a text'],
    [
      'a password and a hash',
      user(5, { password: 'x', password_hash: `$2b$10$${'a'.repeat(53)}` }),
      'user 5: has both password and password_hash',
    ],
    ['__proto__', `{"type":"user","id":5,"username":"x","__proto__":{}}`, 'user 5: unknown field __proto__'],
    ['no ID', { type: 'user', username: 'x' }, 'user: id is required'],
    ['a required field that is null', user(5, { username: null }), 'user 5: username is required'],
    ['an ID of 0', user(0), 'user: id must be between 1 and 9007199254740991'],
    [
      'an ID beyond 2^53',
      '{"type":"user","id":9007199254740993,"username":"x"}',
      'user: id must be between 1 and 9007199254740991',
    ],
    ['an ID with a fraction', user(5, { id: 1.5 }), 'user: id must be an integer'],
    ['an ID as a string', { ...user(5), id: '5' }, 'user: id must be an integer'],
    [
      'an invalid username',
      user(5, { username: 'a b' }),
      'user 5: username must consist of letters, digits, _ and -',
    ],
    [
      'a long username',
      user(5, { username: 'x'.repeat(64) }),
      'user 5: username must be at most 63 characters',
    ],
    ['an empty string', user(5, { display_name: '' }), 'user 5: display_name must not be empty'],
    ['a number instead of a string', user(5, { display_name: 5 }), 'user 5: display_name must be a text'],
    ['NUL', user(5, { display_name: 'a\0b' }), 'user 5: display_name must not contain NUL'],
    ['a lone surrogate', user(5, { display_name: 'a\ud800' }), 'user 5: display_name must be valid Unicode'],
    ['a string instead of a boolean', user(5, { gamer: 'true' }), 'user 5: gamer must be true or false'],
    [
      'a script instead of a URL',
      user(5, { cover_url: 'javascript:alert(1)' }),
      'user 5: cover_url must be an http or https URL',
    ],
    ['emails that are a string', user(5, { emails: 'a@example.com' }), 'user 5: emails must be a list'],
    [
      'an email without @',
      user(5, { emails: [{ email: 'a', verified: true }] }),
      'user 5: emails[0].email must be an email address',
    ],
    [
      'an email without verified',
      user(5, { emails: [{ email: 'a@example.com' }] }),
      'user 5: emails[0].verified must be true or false',
    ],
    [
      'an unknown field of an email',
      user(5, { emails: [{ email: 'a@example.com', verified: true, x: 1 }] }),
      'user 5: emails[0].x is unknown',
    ],
    [
      'a repeated email address',
      user(5, {
        emails: [
          { email: 'a@example.com', verified: true },
          { email: 'A@EXAMPLE.com', verified: false },
        ],
      }),
      'user 5: an email address is in emails twice',
    ],
    [
      'an invalid date',
      user(5, { created_at: '2013-02-29T00:00:00Z' }),
      'user 5: created_at must be a timestamp such as 2013-03-03T23:02:14Z',
    ],
    [
      'a year that is too late',
      user(5, { created_at: '3000-01-01T00:00:00Z' }),
      'user 5: created_at must be in a year from 1000 to 2999',
    ],
    [
      'a date without a zone',
      user(5, { created_at: '2013-02-28T00:00:00' }),
      'user 5: created_at must be a timestamp such as 2013-03-03T23:02:14Z',
    ],
    [
      'an unknown visibility',
      game(5, { visibility: 'hidden' }),
      'game 5: visibility must be one of public, restricted, private',
    ],
    [
      'an unknown trait',
      game(5, { traits: ['p_windows', 'p_amiga'] }),
      'game 5: traits[1] must be one of p_windows, p_linux, p_osx, p_android, can_be_bought, has_demo, in_press_system',
    ],
    ['a repeated trait', game(5, { traits: ['p_osx', 'p_osx'] }), 'game 5: traits[1] is in the list twice'],
    ['an invalid slug', game(5, { slug: 'a/b' }), 'game 5: slug must consist of letters, digits, _, . and -'],
    ['a slug of dots', game(5, { slug: '..' }), 'game 5: slug must consist of letters, digits, _, . and -'],
    [
      'a negative price',
      game(5, { min_price: -1 }),
      'game 5: min_price must be between 0 and 9007199254740991',
    ],
    ['a repeated admin', game(5, { admins: [1, 1] }), 'game 5: admins[1] is in the list twice'],
    ['an empty bundle', purchase(7, { game_id: [] }), 'purchase 7: game_id must not be empty'],
    [
      'a bundle with a single ID',
      purchase(7, { game_id: [1], purchase_type: 'game' }),
      'purchase 7: purchase_type must be bundle when game_id is a list',
    ],
    [
      'a repeated game in a bundle',
      purchase(7, { game_id: [1, 1] }),
      'purchase 7: game_id[1] is in the list twice',
    ],
    [
      'a lowercase currency',
      purchase(7, { currency: 'usd' }),
      'purchase 7: currency must be an ISO 4217 code such as USD',
    ],
    [
      'an amount with a fraction',
      purchase(7, { amount: 4.99 }),
      'purchase 7: amount must be an integer in minor units: 499',
    ],
    [
      'a sale rate of 101',
      purchase(7, { sale_rate: 101 }),
      'purchase 7: sale_rate must be between 0 and 100',
    ],
    ['no copies', purchase(7, { quantity: 0 }), 'purchase 7: quantity must be between 1 and 2147483647'],
    [
      'an unknown status',
      purchase(7, { status: 'paid' }),
      'purchase 7: status must be one of complete, pending, failed, refunded',
    ],
    ['a blank title', collection(3, { title: ' ' }), 'collection 3: title must not be empty'],
    [
      'a title that the API rejects',
      collection(3, { title: 'two\nlines' }),
      'collection 3: title must not contain control characters',
    ],
    [
      'a long title',
      collection(3, { title: '🎮'.repeat(61) }),
      'collection 3: title must be at most 60 characters',
    ],
    [
      'a long description',
      collection(3, { description: 'x'.repeat(20_001) }),
      'collection 3: description must be at most 20000 characters',
    ],
    [
      'a description that is far too long even if sanitizing removes it',
      collection(3, { description: '<b>'.repeat(30_000) }),
      'collection 3: description must be at most 20000 characters',
    ],
    [
      'a bundle of too many games',
      purchase(7, { game_id: Array.from({ length: 10_001 }, (_, i) => i + 1) }),
      'purchase 7: game_id must have at most 10000 ids',
    ],
    [
      'games that are an object',
      collection(3, { games: { game_id: 1 } }),
      'collection 3: games must be a list',
    ],
    ['an entry that is a number', collection(3, { games: [1] }), 'collection 3: games[0] must be an object'],
    [
      'a repeated game',
      collection(3, { games: [{ game_id: 1 }, { game_id: 1 }] }),
      'collection 3: games[1].game_id is in the list twice',
    ],
    [
      'an unknown field of an entry',
      collection(3, { games: [{ game_id: 1, position: 1 }] }),
      'collection 3: unknown field games[0].position',
    ],
    ['an entry without a game', collection(3, { games: [{}] }), 'collection 3: games[0].game_id is required'],
    [
      'an unknown state',
      build(3, { state: 'done' }),
      'build 3: state must be one of started, processing, completed, failed',
    ],
    ['a key in the format of a JWT', apiKey('aaa.bbb.ccc'), 'api_key: key must not have the form of a JWT'],
    [
      'a key with a wrong checksum',
      apiKey(`gw_${'a'.repeat(38)}`),
      'api_key: key looks like a key of this service, but has a wrong checksum',
    ],
    ['a key with a space', apiKey('a b'), 'api_key: key must not contain whitespace'],
    [
      'an unknown scope',
      apiKey('abc', { scopes: ['profile:them'] }),
      `api_key: scopes[0] must be one of ${Object.keys(SCOPES).join(', ')}`,
    ],
    [
      'a redirect to a script',
      application('x', { redirect_uris: ['javascript:alert(1)'] }),
      'oauth_application x: redirect_uris[0] must be an absolute URI without a fragment',
    ],
    [
      'tokens in the redirect as a string',
      application('x', { implicit_allowed: 'yes' }),
      'oauth_application x: implicit_allowed must be true or false',
    ],
    [
      'no redirect',
      application('x', { redirect_uris: [] }),
      'oauth_application x: redirect_uris must not be empty',
    ],
  ];
  test.each(cases)('%s', async (_, line, problem) => {
    expect(await importErrors(...parents, line)).toEqual([`line 3: ${problem}`]);
  });

  test('reports invalid UTF-8 with its line', async () => {
    const { status, body } = await send('POST', '/operator/import', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/x-ndjson' },
      body: Buffer.concat([
        Buffer.from(`${JSON.stringify(user(1))}\n\n"`),
        Buffer.from([0xff]),
        Buffer.from('"\n'),
      ]),
    });
    expect({ status, body }).toEqual(failure(400, 'line 3: is not valid UTF-8'));
  });

  test('reports a line that is too long once, without buffering it', async () => {
    async function* endless() {
      yield Buffer.from(`${JSON.stringify(user(1))}\n"`);
      for (let i = 0; i < 40; i++) yield Buffer.alloc(1024 * 1024, 'x');
      yield Buffer.from(`"\n${JSON.stringify(user(2, { gamer: 3 }))}\n`);
    }
    await expect(importDirectly(endless())).rejects.toMatchObject({
      lines: ['line 2: is longer than 16 MiB', 'line 3: user 2: gamer must be true or false'],
    });
  });

  test('lists the first twenty problems and counts the others', async () => {
    const lines = Array.from({ length: 25 }, (_, i) => user(i + 1, { gamer: 1 }));
    const problems = await importErrors(...lines);
    expect(problems).toHaveLength(21);
    expect(problems[0]).toBe('line 1: user 1: gamer must be true or false');
    expect(problems[20]).toBe('and 5 more problems');
    expect((await importErrors(...lines.slice(0, 21))).at(-1)).toBe('and 1 more problem');
  });

  test('does not mistake text for a repeated field', async () => {
    await importLines(
      user(1, { display_name: ': "id": \\"id": \\' }),
      game(1, { title: '"id":1', short_text: '\\' }),
    );
    expect(await sql('SELECT display_name FROM users')).toEqual([{ display_name: ': "id": \\"id": \\' }]);
  });

  test('a record can have several problems', async () => {
    expect(await importErrors(user(1, { gamer: 1, developer: 2 }))).toEqual([
      'line 1: user 1: gamer must be true or false',
      'line 1: user 1: developer must be true or false',
    ]);
  });

  test('reports missing references in the order of the referring lines', async () => {
    expect(
      await importErrors(
        purchase(7, { game_id: 99, user_id: 98 }),
        user(1),
        game(1, { user_id: 97, admins: [96, 1] }),
        downloadKey(1, { purchase_id: 95, user_id: 94 }),
        collection(1, { games: [{ game_id: 1 }, { game_id: 93, user_id: 92 }], admins: [91] }),
        build(1, { game_id: 90 }),
        apiKey('abc', { user_id: 89 }),
        application('x', { user_id: 88 }),
      ),
    ).toEqual([
      'line 1: purchase 7: game 99 does not exist',
      'line 1: purchase 7: user 98 does not exist',
      'line 3: game 1: user 97 does not exist',
      'line 3: game 1: user 96 does not exist',
      'line 4: download_key 1: purchase 95 does not exist',
      'line 4: download_key 1: user 94 does not exist',
      'line 5: collection 1: user 91 does not exist',
      'line 5: collection 1: game 93 does not exist',
      'line 5: collection 1: user 92 does not exist',
      'line 6: build 1: game 90 does not exist',
      'line 7: api_key: user 89 does not exist',
      'line 8: oauth_application: user 88 does not exist',
    ]);
  });

  test('reports which game of a bundle is missing', async () => {
    expect(await importErrors(user(1), game(1), purchase(7, { game_id: [99, 1] }))).toEqual([
      'line 3: purchase 7: game 99 does not exist',
    ]);
  });

  test('does not report references to a record with a problem', async () => {
    expect(await importErrors(user(1, { gamer: 1 }), game(1), purchase(1))).toEqual([
      'line 1: user 1: gamer must be true or false',
    ]);
  });

  test('can reference stored records', async () => {
    await importLines(user(1), game(1));
    expect(await importLines(purchase(1))).toEqual(['purchases 1 new, 0 changed, 0 unchanged']);
  });

  test('duplicate value in two lines', async () => {
    const verified = [{ email: 'A@example.com', verified: true }];
    expect(
      await importErrors(
        user(1, { username: 'Leaf', emails: [{ email: 'a@example.com', verified: true }] }),
        user(2, { username: 'leaf' }),
        user(3, { emails: verified }),
        user(4, { emails: [{ email: 'a@example.com', verified: false }] }),
        user(1),
        game(1, { slug: 'x' }),
        game(2, { slug: 'x' }),
        game(3, { slug: 'x', user_id: 3 }),
        downloadKey(1, { key: 'k' }),
        downloadKey(2, { key: 'k' }),
        apiKey('one-key'),
        apiKey('one-key'),
        application('one'),
        application('one'),
      ),
    ).toEqual([
      'line 2: user 2: the username is also on line 1',
      'line 3: user 3: a verified email address is also on line 1',
      'line 5: user 1: the id is also on line 1',
      'line 7: game 2: the slug is also on line 6',
      'line 10: download_key 2: the key is also on line 9',
      'line 12: api_key: the key is also on line 11',
      'line 14: oauth_application one: the client_id is also on line 13',
    ]);
  });

  test('duplicate value in a line and the store', async () => {
    await importLines(
      user(1, { username: 'Leaf', emails: [{ email: 'a@example.com', verified: true }] }),
      game(1, { slug: 'x' }),
      downloadKey(1, { key: 'k' }),
    );
    expect(
      await importErrors(
        user(2, { username: 'leaf' }),
        user(3, { emails: [{ email: 'A@example.com', verified: true }] }),
        game(2, { slug: 'x' }),
        downloadKey(2, { key: 'k' }),
      ),
    ).toEqual([
      'line 1: user 2: the username is taken by user 1',
      'line 2: user 3: an email address is already verified by user 1',
      'line 3: game 2: the slug is taken by game 1',
      'line 4: download_key 2: the key is taken by download_key 1',
    ]);
  });
});

test('games match the buyers of any changed purchases', async () => {
  const games = [1, 2, 3];
  const onePurchase = fc.record({
    id: fc.integer({ min: 1, max: 4 }),
    game_id: fc.subarray(games, { minLength: 1 }),
    email: fc.constantFrom('one@example.com', 'ONE@example.com', 'Two@example.com'),
    user_id: fc.constantFrom(1, 2, null, undefined),
  });
  const imports = fc.record({
    purchases: fc.uniqueArray(onePurchase, { selector: ({ id }) => id, minLength: 1 }),
  });
  await importLines(user(1), user(2), ...games.map((id) => game(id)));
  await fc.assert(
    fc.asyncProperty(fc.array(imports, { minLength: 1, maxLength: 4 }), async (rounds) => {
      await sql('TRUNCATE purchases CASCADE');
      for (const { purchases } of rounds) {
        await importLines(...purchases.map(({ id, ...fields }) => purchase(id, fields)));
        expect(await wrongBuyers()).toEqual([]);
      }
    }),
    { numRuns: 12 },
  );
});

test('keys match the accounts of any changed purchases and keys', async () => {
  const accounts = fc.constantFrom(1, 2, null, undefined);
  const onePurchase = fc.record({
    id: fc.integer({ min: 1, max: 3 }),
    email: fc.constantFrom('one@example.com', 'ONE@example.com', 'Two@example.com'),
    user_id: accounts,
  });
  const oneKey = fc.record({
    id: fc.integer({ min: 1, max: 4 }),
    purchase_id: fc.constantFrom(1, 2, 3, null, undefined),
    user_id: accounts,
  });
  const byId = { selector: ({ id }: { id: number }) => id };
  const imports = fc.record({
    purchases: fc.uniqueArray(onePurchase, byId),
    keys: fc.uniqueArray(oneKey, byId),
  });
  await importLines(user(1), user(2), game(1));
  await fc.assert(
    fc.asyncProperty(fc.array(imports, { minLength: 1, maxLength: 4 }), async (rounds) => {
      await sql('TRUNCATE purchases CASCADE');
      await importLines(purchase(1), purchase(2), purchase(3));
      for (const { purchases, keys } of rounds) {
        await importLines(
          ...purchases.map(({ id, ...fields }) => purchase(id, fields)),
          ...keys.map(({ id, ...fields }) => downloadKey(id, fields)),
        );
        expect(await wrongAccounts()).toEqual([]);
      }
    }),
    { numRuns: 20 },
  );
});

test('games match the names of their owners after any renames and transfers', async () => {
  const ids = [1, 2, 3];
  const names = fc.shuffledSubarray(['ash', 'birch', 'cedar', 'Ash-2'], { minLength: 3, maxLength: 3 });
  const imports = fc.record({
    names,
    renamed: fc.subarray(ids),
    games: fc.uniqueArray(
      fc.record({ id: fc.integer({ min: 1, max: 4 }), user_id: fc.constantFrom(...ids) }),
      {
        selector: ({ id }) => id,
      },
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(imports, { minLength: 1, maxLength: 4 }), async (rounds) => {
      await sql('TRUNCATE users, games CASCADE');
      await importLines(...ids.map((id) => user(id)));
      for (const { names, renamed, games } of rounds) {
        // The others keep a name that no other user gets.
        const records = [
          ...renamed.map((id) => user(id, { username: names[id - 1] })),
          ...ids.filter((id) => !renamed.includes(id)).map((id) => user(id, { username: `user${id}` })),
          ...games.map(({ id, user_id }) => game(id, { user_id })),
        ];
        await importLines(...records);
        expect(await wrongOwners()).toEqual([]);
      }
    }),
    { numRuns: 12 },
  );
});

describe('owners', () => {
  test('a game imported while its owner is renamed', async () => {
    await importLines(user(1));
    // The import waits when it writes users, until the owner of its game has an uncommitted new name.
    await sql(`
    CREATE FUNCTION wait_for_rename() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
    CREATE TRIGGER wait_for_rename BEFORE INSERT ON users EXECUTE FUNCTION wait_for_rename()`);
    const gate = await holdLocks('SELECT pg_advisory_xact_lock(1)');
    const importing = importLines(user(2), game(1));
    await untilBlocked();
    const rename = await holdLocks(`UPDATE users SET username = 'meanwhile' WHERE id = 1`);
    await gate.release();
    await Promise.race([importing, untilBlocked()]);
    await rename.commit();
    await importing;
    await sql('DROP FUNCTION wait_for_rename CASCADE');
    expect(await wrongOwners()).toEqual([]);
  });
});

describe('collections', () => {
  const entries = () =>
    sql<{ game_id: number; version: string }>(
      'SELECT game_id, ctid::text AS version FROM collection_games WHERE collection_id = 1 ORDER BY sort_key',
    );
  const order = async () => (await entries()).map(({ game_id }) => game_id);
  const games = (...ids: number[]) => ids.map((game_id) => ({ game_id }));
  const store = [user(1), user(2), ...[1, 2, 3, 4, 5].map((id) => game(id))];

  test('replaces the list, in display order', async () => {
    await importLines(...store, collection(1, { games: games(3, 1, 2) }));
    for (const ids of [[1, 2, 3], [5, 4, 3, 2, 1], [2], [], [4, 2, 5], [2, 4, 5], [1, 2, 4, 5, 3]]) {
      await importLines(collection(1, { games: games(...ids) }));
      expect([await order(), (await row('collections'))!.games_count]).toEqual([ids, ids.length]);
    }
    await importLines(collection(1));
    expect(await order()).toEqual([1, 2, 4, 5, 3]);
    await importLines(collection(1, { games: null }));
    expect([await order(), (await row('collections'))!.games_count]).toEqual([[], 0]);
  });

  test('does not write unmoved entries', async () => {
    await importLines(...store, collection(1, { games: games(1, 2, 3) }));
    const before = await entries();
    await importLines(collection(1, { games: games(1, 2, 3, 4) }));
    expect((await entries()).slice(0, 3)).toEqual(before);
    await importLines(collection(1, { games: games(1, 2, 4) }));
    expect((await entries()).slice(0, 2)).toEqual(before.slice(0, 2));
  });

  test('an entry keeps absent fields and clears null ones', async () => {
    const entry = async () =>
      (await sql('SELECT blurb, user_id, created_at FROM collection_games WHERE collection_id = 1'))[0];
    await importLines(
      ...store,
      collection(1, {
        games: [{ game_id: 1, blurb: 'good', user_id: 2, created_at: '2015-01-01T00:00:00Z' }],
      }),
    );
    const before = await entry();
    expect(before).toEqual({ blurb: 'good', user_id: 2, created_at: expect.stringContaining('2015-01-01') });
    expect(await importLines(collection(1, { games: games(1) }))).toEqual([
      'collections 0 new, 0 changed, 1 unchanged',
    ]);
    expect(await entry()).toEqual(before);
    await importLines(
      collection(1, { games: [{ game_id: 1, blurb: null, user_id: null, created_at: null }] }),
    );
    expect(await entry()).toEqual({ ...before, blurb: null, user_id: 1 });
  });

  test('sets updated_at to now for a change unless the record contains it, and keeps it without a change', async () => {
    const updated = async () => (await row('collections'))!.updated_at as string;
    await importLines(...store, collection(1, { updated_at: '2015-01-01T00:00:00Z', games: games(1) }));
    const first = await updated();
    const [{ before }] = (await sql(`SELECT date_trunc('second', now())::text AS before`)) as [
      { before: string },
    ];
    await importLines(collection(1, { games: games(1) }));
    expect(await updated()).toBe(first);
    await importLines(collection(1, { games: games(1, 2) }));
    expect(await sql('SELECT FROM collections WHERE id = 1 AND updated_at >= $1', [before])).toHaveLength(1);
    await importLines(collection(1, { games: games(1), updated_at: '2016-01-01T00:00:00Z' }));
    expect(await updated()).toContain('2016-01-01');
  });

  test('stores sanitized HTML, and null for an empty result', async () => {
    await importLines(
      ...store,
      collection(1, { description: '<p onclick="x()">Hi</p><script>no</script>' }),
      collection(2, { description: '<script>no</script>', title: ' Blanks around ' }),
    );
    expect(await row('collections', 1)).toMatchObject({ description: '<p>Hi</p>' });
    expect(await row('collections', 2)).toMatchObject({ description: null, title: 'Blanks around' });
  });
});

describe('IDs', () => {
  test('assigns IDs after the imported ones', async () => {
    await importLines(user(1), user(70_000));
    const [made] = await sql<{ id: number }>(`INSERT INTO users (username) VALUES ('made') RETURNING id`);
    expect(made!.id).toBeGreaterThan(70_000);
    await importLines(user(3));
    const [next] = await sql<{ id: number }>(`INSERT INTO users (username) VALUES ('next') RETURNING id`);
    expect(next!.id).toBe(made!.id + 1);
  });

  test('leaves IDs free after the largest one', async () => {
    const id = Number.MAX_SAFE_INTEGER;
    await importLines(user(id));
    expect(await row('users', id)).toMatchObject({ id });
    const [made] = await sql<{ id: number }>(`INSERT INTO users (username) VALUES ('made') RETURNING id`);
    expect(made!.id).toBeLessThan(2 ** 52);
  });

  test('never assigns IDs in the reserved range', async () => {
    const [before, first, last, after] = [2 ** 52 - 2 ** 40 - 1, 2 ** 52 - 2 ** 40, 2 ** 52 - 1, 2 ** 52];
    await importLines(user(after));
    for (const id of [first, last]) {
      const problem = `user ${id}: id must not be between ${first} and ${last}`;
      expect(await importErrors(user(id))).toEqual([`line 1: ${problem}`]);
      expect(await importErrors({ type: 'user', id, deleted: true })).toEqual([`line 1: ${problem}`]);
    }
    await importLines(user(before));
    await sql(`INSERT INTO users (username) SELECT 'made' || n FROM generate_series(1, 3) n`);
    expect(await row('users', after)).toMatchObject({ username: `user${after}` });
    await sql(`DELETE FROM users WHERE id >= $1`, [before]);
    await sql(`SELECT setval('users_id_seq', 100000)`);
  });

  test('does not advance the sequence for a rejected import', async () => {
    const sequence = () => sql('SELECT last_value, is_called FROM users_id_seq');
    const before = await sequence();
    await importErrors(user(9_000_000), game(1, { user_id: 5 }));
    expect(await sequence()).toEqual(before);
  });

  test('never assigns a duplicate while writes and imports run concurrently', async () => {
    const [{ last }] = (await sql<{ last: number }>('SELECT last_value AS last FROM users_id_seq')) as [
      { last: number },
    ];
    let stop = false;
    const writers = [0, 1, 2].map(async (writer) => {
      for (let n = 0; !stop; n++) {
        // Holds its ID for a while before the row is visible to others.
        await sql(
          `WITH made AS (INSERT INTO users (username) VALUES ($1) RETURNING id) SELECT pg_sleep(0.002) FROM made`,
          [`w${writer}-${n}`],
        );
      }
    });
    // Each import uses exactly the IDs that the writers are about to get.
    for (let round = 0; round < 15; round++) {
      const [{ next }] = (await sql<{ next: number }>('SELECT last_value AS next FROM users_id_seq')) as [
        { next: number },
      ];
      await importLines(
        ...Array.from({ length: 20 }, (_, i) => user(next + i, { username: `i${round}-${next + i}` })),
      );
    }
    stop = true;
    await Promise.all(writers);
    expect(last).toBeGreaterThan(0);
  });
});

describe('concurrent imports', () => {
  test('wait for each other and are all applied', async () => {
    await importLines(user(1), game(1), game(2));
    await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        importLines(
          game(1, { short_text: `text ${i}` }),
          game(2, { short_text: `text ${i}` }),
          purchase(i + 1, { game_id: [2, 1], amount: 100 }),
        ),
      ),
    );
    expect(await storedSales()).toMatchObject([
      { id: 1, purchases_count: 6, earnings: { USD: 300 } },
      { id: 2, purchases_count: 6, earnings: { USD: 300 } },
    ]);
  });
});

describe('an import', () => {
  test('checks again after a constraint violation between check and write', async () => {
    // Another writer takes the name between the check and the write.
    const interfering = (client: Client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      client.query = ((...args: unknown[]) =>
        typeof args[0] === 'string' && args[0].includes('INSERT INTO users')
          ? sql(`INSERT INTO users (username) VALUES ('leaf')`).then(() => query(...args))
          : query(...args)) as unknown as Client['query'];
      return Promise.resolve();
    };
    await expect(importDirectly([user(1, { username: 'leaf' })], { prepare: interfering })).rejects.toThrow(
      'line 1: user 1: the username is taken by user ',
    );
  });
});

describe('interrupted imports', () => {
  const nothingLeft = () =>
    until(async () => {
      const left = await sql(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'gamewharf import' AND state <> 'idle'`,
      );
      return left.length === 0;
    });

  test('change nothing after a broken connection', async () => {
    const { hostname, port } = new URL(baseUrl());
    const socket = connect(Number(port), hostname);
    const body = ndjson([user(1), user(2), '']);
    socket.write(
      `POST /operator/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${OPERATOR_TOKEN}\r\n` +
        `Content-Type: application/x-ndjson\r\nContent-Length: ${body.length + 100}\r\n` +
        'Expect: 100-continue\r\n\r\n',
    );
    expect(String((await once(socket, 'data'))[0])).toContain('100 Continue');
    await new Promise((resolve) => socket.write(body, resolve));
    socket.destroy();
    await nothingLeft();
    expect(await sql('SELECT id FROM users')).toEqual([]);
  });

  test('change nothing after an interruption while reading', async () => {
    const interruption = new AbortController();
    async function* slow() {
      yield Buffer.from(`${JSON.stringify(user(1))}\n`);
      setImmediate(() => interruption.abort());
      await new Promise(() => undefined);
    }
    await expect(importDirectly(slow(), { signal: interruption.signal })).rejects.toThrow(/abort/i);
    expect(await sql('SELECT id FROM users')).toEqual([]);
  });

  test('cancel the statement at once after an interruption while writing', async () => {
    const interruption = new AbortController();
    await importLines(user(1));
    // The row that the import is about to change.
    const { release } = await holdLocks('UPDATE users SET gamer = false');
    const importing = importDirectly([user(1, { username: 'other' })], { signal: interruption.signal });
    const outcome = expect(importing).rejects.toThrow(/abort/i);
    await untilBlocked();
    interruption.abort();
    // The row is still locked.
    await outcome;
    await release();
    expect(await row('users')).toMatchObject({ username: 'user1' });
  });

  test('change nothing when the source fails', async () => {
    async function* failing() {
      yield Buffer.from(`${JSON.stringify(user(1))}\n`);
      throw new Error('the disk failed');
    }
    await expect(importDirectly(failing())).rejects.toThrow('the disk failed');
    expect(await sql('SELECT id FROM users')).toEqual([]);
  });
});

describe('large imports', () => {
  const options = {
    users: 1500,
    games: 2500,
    purchases: 5000,
    download_keys: 2500,
    builds: 4000,
    collections: 200,
  };
  const lines = () => [...largeDemoRecords({ ...options, large_collection: 2000, api_keys: 50 })];
  test('keep totals, buyers and owners consistent with their definitions', async () => {
    await importDirectly(lines());
    expect(await storedSales()).toEqual(await expectedSales());
    expect(await wrongBuyers()).toEqual([]);
    expect(await wrongOwners()).toEqual([]);
  });

  test('leave no dangling references', async () => {
    await importDirectly(lines());
    const keys = await sql<{ conname: string }>(`SELECT conname FROM pg_constraint WHERE contype = 'f'`);
    expect(keys.length).toBeGreaterThan(15);
    const references = await sql<{ child: string; columns: string; parent: string; key: string }>(
      `SELECT conrelid::regclass::text AS child, a.attname AS columns, confrelid::regclass::text AS parent, b.attname AS key
       FROM pg_constraint c
       JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
       JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = c.confkey[1]
       WHERE contype = 'f'`,
    );
    for (const { child, columns, parent, key } of references)
      expect(
        await sql(
          `SELECT * FROM ${child} c WHERE c.${columns} IS NOT NULL
             AND NOT EXISTS (SELECT FROM ${parent} p WHERE p.${key} = c.${columns})`,
        ),
      ).toEqual([]);
  });
});
