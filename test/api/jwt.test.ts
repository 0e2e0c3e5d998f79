import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign,
} from 'node:crypto';
import type { NestExpressApplication } from '@nestjs/platform-express';
import {
  calculateJwkThumbprint,
  createRemoteJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  type JWK,
  jwtVerify,
  SignJWT,
} from 'jose';
import { ApiKeysService } from '../../src/auth/keys/api-keys.service';
import { SigningKeysService } from '../../src/auth/jwt/signing-keys.service';
import { TokensService } from '../../src/auth/jwt/tokens.service';
import { CredentialCache } from '../../src/auth/keys/credential-cache';
import { Settings } from '../../src/platform/config/settings';
import { type Actor, anonymous } from '../support/actor';
import { baseUrl, logged, openApp, PEPPER, theApp, theClock, useStore } from '../support/app';
import { type HttpResponse, failure, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { recordStatements } from '../support/statements';
import { buildClaims, forge } from '../support/tokens';

useStore({ RATE_LIMIT: 'off', PUBLIC_URL: 'https://api.gamewharf.example' });

const signingKeys = () => theApp().get(SigningKeysService);
const invalid = failure(401, 'invalid token');
const info = (token: string) => anonymous.with(token).get('/credentials/info');

async function subkey(actor: Actor, game_id: number, scope = 'profile:me'): Promise<string> {
  const response = await actor.post('/credentials/subkey', { game_id, scope });
  expect(response.status).toBe(200);
  return (response.body as { key: string }).key;
}

const published = async () =>
  ((await anonymous.get('/.well-known/jwks.json')).body as { keys: (JsonWebKey & { kid: string })[] }).keys;

describe('POST /credentials/subkey', () => {
  let player: Actor;
  let game: { id: number };
  beforeAll(async () => {
    const { owner, stranger } = await actors();
    player = stranger;
    game = await make.game({ owner });
  });
  const order = (fields: Record<string, unknown>, who = player) => who.post('/credentials/subkey', fields);

  test('issues a JWT with the claims that a game needs', async () => {
    const before = Math.floor(theClock().now() / 1000);
    const response = await order({ game_id: game.id, scope: 'profile:me' });
    const { key, expires_at } = response.body as { key: string; expires_at: string };
    expect(response).toEqual(ok({ key, expires_at }));
    expect(decodeProtectedHeader(key)).toEqual({
      alg: 'EdDSA',
      typ: 'JWT',
      kid: (await published())[0]!.kid,
    });
    const claims = decodeJwt(key);
    expect(claims).toEqual({
      iss: 'https://api.gamewharf.example',
      aud: 'https://api.gamewharf.example',
      sub: String(player.id),
      scope: 'profile:me',
      game_id: game.id,
      api_key_id: expect.any(Number) as number,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      iat: expect.any(Number) as number,
      exp: claims.iat! + 3600,
    });
    expect(claims.iat).toBeGreaterThanOrEqual(before);
    expect(expires_at).toBe(new Date(claims.exp! * 1000).toISOString().replace('.000', ''));
    expect(await info(key)).toEqual(ok({ type: 'jwt', scopes: ['profile:me'], expires_at }));
    expect(await player.with(key).get('/profile')).toMatchObject({ body: { user: { id: player.id } } });
    expect(await player.with(key).get('/profile/games')).toEqual(
      failure(403, 'token does not permit `profile:games`'),
    );
  });

  test('issues a JWT that expires with its API key', async () => {
    const expires_at = new Date(Math.floor(theClock().now() / 1000 + 600) * 1000)
      .toISOString()
      .replace('.000', '');
    const { id, key } = await theApp().get(ApiKeysService).create(player.id, { expires_at });
    const response = await order({ game_id: game.id, scope: 'profile:me' }, player.with(key));
    expect(response.body).toMatchObject({ expires_at });
    const jwt = (response.body as { key: string }).key;
    expect(decodeJwt(jwt)).toMatchObject({ api_key_id: id, exp: Date.parse(expires_at) / 1000 });
    expect((await info(jwt)).body).toMatchObject({ expires_at });
  });

  test('is logged but not stored, to avoid a row per launch of a game', async () => {
    const key = await subkey(player, game.id);
    const lines = logged
      .filter((line) => line.includes('"audit":true'))
      .map((line) => JSON.parse(line) as object);
    expect(lines.at(-1)).toMatchObject({
      event: 'jwt.created',
      user_id: player.id,
      api_key_id: decodeJwt(key).api_key_id,
      game_id: game.id,
      request_id: expect.any(String) as string,
    });
    expect(JSON.stringify(lines)).not.toContain(key.split('.')[2]);
    expect(await sql(`SELECT FROM audit_events WHERE event = 'jwt.created'`)).toEqual([]);
  });

  test('issues different tokens each time', async () => {
    const [a, b] = [await subkey(player, game.id), await subkey(player, game.id)];
    expect(decodeJwt(a).jti).not.toBe(decodeJwt(b).jti);
  });

  test.each<[Record<string, unknown>, HttpResponse]>([
    [{}, failure(400, 'game_id is required', 'scope is required')],
    [{ game_id: 'x', scope: '' }, failure(400, 'game_id must be an integer', 'scope must not be empty')],
    [{ scope: 'profile:me' }, failure(400, 'game_id is required')],
    ...[
      'profile',
      'profile:games',
      'nonsense',
      'prof',
      ' ',
      'profile:me collection',
      'profile:me,profile:me',
    ].map((scope): [Record<string, unknown>, HttpResponse] => [
      { game_id: 1, scope },
      failure(400, 'scope must be one or more of profile:me game:view:ownership'),
    ]),
    [{ game_id: 4e6, scope: 'profile:me' }, failure(404, 'invalid game')],
    [{ game_id: '9007199254740993', scope: 'profile:me' }, failure(404, 'invalid game')],
    [{ game_id: '9223372036854775808', scope: 'profile:me' }, failure(400, 'game_id must be an integer')],
  ])('%p', async (fields, expected) => expect(await order(fields)).toEqual(expected));

  test('rejects a long list of scopes', async () => {
    const most = `profile:me ${' '.repeat(989)}`;
    expect(await order({ game_id: game.id, scope: most })).toMatchObject({ status: 200 });
    expect(await order({ game_id: game.id, scope: `${most} ` })).toEqual(
      failure(400, 'scope must be at most 1000 characters'),
    );
  });

  test('deduplicates scopes', async () => {
    const token = await subkey(player, game.id, ' profile:me  profile:me ');
    expect(decodeJwt(token).scope).toBe('profile:me');
  });

  test('grants at most the scopes of the key', async () => {
    const small = player.with(await make.key({ owner: player, scopes: ['profile:games'] }));
    expect(await order({ game_id: game.id, scope: 'profile:me' }, small)).toEqual(
      failure(403, 'api key does not permit `profile:me`'),
    );
    const enough = player.with(await make.key({ owner: player, scopes: ['profile'] }));
    expect((await order({ game_id: game.id, scope: 'profile:me' }, enough)).status).toBe(200);
  });

  test('rejects a game that the player can neither view nor owns', async () => {
    const hidden = await make.game({ owner: await make.user(), visibility: 'private' });
    const restricted = await make.game({ owner: await make.user(), visibility: 'restricted' });
    for (const { id } of [hidden, restricted])
      expect(await order({ game_id: id, scope: 'profile:me' })).toEqual(failure(404, 'invalid game'));
    await make.downloadKey({ game: restricted, user_id: player.id });
    await make.purchase({ games: [hidden], user_id: player.id });
    for (const { id } of [hidden, restricted]) {
      const token = player.with(await subkey(player, id, 'game:view:ownership'));
      expect(await token.get(`/games/${id}/ownership`)).toEqual(ok({ owns: true }));
    }
  });

  test('rejects a JWT', async () => {
    const token = player.with(await subkey(player, game.id));
    expect(await order({ game_id: 'no matter', scope: 'profile:me' }, token)).toEqual(
      failure(403, 'an api key is required'),
    );
  });

  test('allows manifests only the scopes in the setting', async () => {
    const other = await openApp({
      DATABASE_URL: theApp().get(Settings).DATABASE_URL!,
      MANIFEST_SCOPES: 'profile game collection:view',
      RATE_LIMIT: 'off',
    });
    const ask = async (scope: string) => {
      const body = new URLSearchParams({ game_id: String(game.id), scope });
      const response = await fetch(`${await other.getUrl()}/credentials/subkey`, {
        method: 'POST',
        headers: player.headers,
        body,
      });
      return { status: response.status, body: (await response.json()) as unknown };
    };
    const { body } = await ask('profile collection:view profile:games');
    expect(decodeJwt((body as { key: string }).key).scope).toBe('collection:view profile profile:games');
    const grantable =
      'profile profile:me profile:games profile:owned profile:collections game:view:ownership game:view:purchases collection:view';
    // The scopes of games include downloads and new download keys.
    for (const scope of ['collection', 'game', 'game:view', 'game:view:uploads', 'game:edit:keys'])
      expect(await ask(scope)).toEqual(failure(400, `scope must be one or more of ${grantable}`));
    await other.close();
    await expect(openApp({ MANIFEST_SCOPES: 'profile:you' })).rejects.toThrow(
      'MANIFEST_SCOPES has unknown scopes: profile:you',
    );
  });
});

describe('GET /.well-known/jwks.json', () => {
  test('contains only the public key and can be cached', async () => {
    const response = await send('GET', '/.well-known/jwks.json');
    expect(response.headers.get('cache-control')).toBe('public, max-age=300');
    const { keys } = response.body as { keys: JsonWebKey[] };
    expect(keys).toEqual([
      {
        kty: 'OKP',
        crv: 'Ed25519',
        x: expect.stringMatching(/^[\w-]{43}$/) as string,
        kid: expect.stringMatching(/^[\w-]{43}$/) as string,
        alg: 'EdDSA',
        use: 'sig',
      },
    ]);
  });

  test('lets a game server verify a player without a request', async () => {
    const { owner, stranger } = await actors();
    const token = await subkey(stranger, (await make.game({ owner })).id);
    const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', baseUrl()));
    const url = 'https://api.gamewharf.example';
    const { payload } = await jwtVerify(token, keys, { algorithms: ['EdDSA'], issuer: url, audience: url });
    expect(payload.sub).toBe(String(stranger.id));
  });
});

describe('invalid JWTs', () => {
  let owner: Actor;
  beforeAll(async () => ({ owner } = await actors()));
  const by = (forgery: Parameters<typeof forge>[0] = {}) => forge({ sub: owner.id, ...forgery });
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

  async function unsigned(header: Record<string, unknown>, signature: (text: string) => string) {
    const text = `${base64(header)}.${base64(buildClaims({ sub: owner.id }))}`;
    return `${text}.${signature(text)}`;
  }
  const kid = async () => (await published())[0]!.kid;
  const publicKey = async () => createPublicKey({ key: (await published())[0]!, format: 'jwk' });
  const stranger = generateKeyPairSync('ed25519');
  const signedBy = (key: KeyObject) => (text: string) =>
    sign(null, Buffer.from(text), key).toString('base64url');

  test("control: the test's forger can create a valid one", async () => {
    expect((await info(await by())).status).toBe(200);
    expect((await info(await by({ claims: { game_id: undefined } }))).status).toBe(200);
  });

  test.each(['none', 'None', 'NONE', '', null, 'ES256', 'EdDSA ', 'Ed25519', 'RS256'])(
    'alg %p',
    async (alg) => {
      const header = { alg, typ: 'JWT', kid: await kid() };
      expect(await info(await unsigned(header, () => ''))).toEqual(invalid);
      expect(await info(await unsigned(header, () => 'AAAA'))).toEqual(invalid);
      expect(await info(await unsigned(header, signedBy(stranger.privateKey)))).toEqual(invalid);
    },
  );

  test('HS256 with the public key as the secret', async () => {
    const key = await publicKey();
    const secrets = [
      key.export({ format: 'pem', type: 'spki' }),
      key.export({ format: 'der', type: 'spki' }),
      Buffer.from((await published())[0]!.x!, 'base64url'),
      Buffer.from((await published())[0]!.x!),
    ];
    for (const secret of secrets) {
      const hmac = (text: string) => createHmac('sha256', secret).update(text).digest('base64url');
      for (const alg of ['HS256', 'EdDSA'])
        expect(await info(await unsigned({ alg, typ: 'JWT', kid: await kid() }, hmac))).toEqual(invalid);
    }
  });

  test.each([
    ['unknown', 'A'.repeat(43)],
    ['a path', '../../../../dev/null'],
    ['SQL', "' OR 1=1 --"],
    ['a number', 1],
    ['null', null],
    ['a list', ['x']],
    ['a prototype', '__proto__'],
    ['absent', undefined],
    ['long', 'k'.repeat(5000)],
  ])('kid %s', async (_, hostile) => {
    const header = { alg: 'EdDSA', typ: 'JWT', kid: hostile };
    expect(await info(await unsigned(header, signedBy(stranger.privateKey)))).toEqual(invalid);
  });

  test('a key embedded in the header', async () => {
    const jwk = { ...stranger.publicKey.export({ format: 'jwk' }), alg: 'EdDSA' };
    for (const more of [
      { jwk },
      { jku: 'https://evil.example/jwks.json' },
      { x5u: 'https://evil.example/cert' },
      { x5c: ['MIIB'] },
      { crit: ['exp'] },
      { b64: false, crit: ['b64'] },
    ]) {
      const header = { alg: 'EdDSA', typ: 'JWT', kid: await kid(), ...more };
      expect(await info(await unsigned(header, signedBy(stranger.privateKey)))).toEqual(invalid);
    }
    for (const more of [{ jwk }, { jku: 'https://evil.example/jwks.json' }, { cty: 'JWT' }])
      expect(await info(await by({ header: more }))).toEqual(invalid);
  });

  test.each(['at+jwt', 'jwt', 'JWS', '', null, undefined, 1])('typ %p', async (typ) =>
    expect(await info(await by({ header: { typ: typ as string } }))).toEqual(invalid),
  );

  test.each([
    ['aud of another service', { aud: 'https://other.example' }],
    ['no aud', { claims: { aud: undefined } }],
    ['iss of another service', { iss: 'https://other.example' }],
    ['no iss', { claims: { iss: undefined } }],
    ['no exp', { claims: { exp: undefined } }],
    ['exp as text', { claims: { exp: '4102444800' } }],
    ['exp with a fraction', { claims: { exp: 4102444800.5 } }],
    ['exp null', { claims: { exp: null } }],
    ['nbf in the future', { claims: { nbf: Math.floor(theClock().now() / 1000) + 300 } }],
    ['nbf as text', { claims: { nbf: 'now' } }],
    ['no iat', { claims: { iat: undefined } }],
    ['iat with a fraction', { claims: { iat: 1.5 } }],
    ['no sub', { claims: { sub: undefined } }],
    ['sub of a missing user', { sub: 0 }],
    ['sub beyond all numbers', { sub: '9007199254740993' }],
    ['sub as a number', { claims: { sub: 1 } }],
    ['sub with a sign', { sub: '+1' }],
    ['sub with a leading letter', { sub: 'x1' }],
    ['sub with a trailing letter', { sub: '1x' }],
    ['sub with a fraction', { sub: '1.5' }],
    ['no jti', { claims: { jti: undefined } }],
    ['no scope', { claims: { scope: undefined } }],
    ['scope as list', { claims: { scope: ['profile'] } }],
    ['an invalid parent', { api_key_id: 4e6 }],
    ['a parent as text', { api_key_id: '1' }],
    ['a parent with a fraction', { api_key_id: 1.5 }],
  ])('%s', async (_, forgery) => expect(await info(await by(forgery))).toEqual(invalid));

  test('rejects an unknown form of kid without a statement', async () => {
    const good = await kid();
    for (const hostile of [`${good}A`, `A${good}`, good.slice(1), [good], 1, null]) {
      const header = { alg: 'EdDSA', typ: 'JWT', kid: hostile };
      const token = await unsigned(header, signedBy(stranger.privateKey));
      expect(await recordStatements(async () => expect(await info(token)).toEqual(invalid))).toEqual([]);
    }
  });

  test('sorts and deduplicates scopes, however they are written', async () => {
    const token = await by({ scope: ' profile:me  collection profile:me ' });
    expect(await info(token)).toMatchObject(ok({ scopes: ['collection', 'profile:me'] }));
    expect(await info(await by({ scope: '' }))).toMatchObject(ok({ scopes: [] }));
  });

  test('reads all digits of a long user ID', async () => {
    const user = await make.user({ id: 9_007_199_254 });
    expect(await user.with(await by({ sub: user.id })).get('/profile')).toMatchObject({
      body: { user: { id: user.id } },
    });
  });

  test('exp in the past by more than the clock tolerance', async () => {
    expect(await info(await by({ expires_in: -62 }))).toEqual(failure(401, 'token expired'));
    expect((await info(await by({ expires_in: -50 }))).status).toBe(200);
    expect(await info(await by({ expires_in: -62, aud: 'other' }))).toEqual(invalid);
  });

  test("the child of another user's key", async () => {
    const other = await make.user();
    const { id } = await theApp().get(ApiKeysService).create(other.id);
    expect(await info(await by({ api_key_id: id }))).toEqual(invalid);
  });

  test('tampered with', async () => {
    const [header, , signature] = (await by()).split('.');
    const claims = base64(buildClaims({ sub: owner.id, scope: 'profile collection game' }));
    expect(await info(`${header}.${claims}.${signature}`)).toEqual(invalid);
    const good = await by();
    expect(await info(`${good.slice(0, -4)}AAAA`)).toEqual(invalid);
  });

  test.each([
    'a.b.c',
    'a.b.',
    'eyJhbGciOiJub25lIn0.e30.',
    'e30.e30.e30',
    'bnVsbA.bnVsbA.bnVsbA',
    'W10.W10.W10',
    '_._._',
  ])('malformed: %s', async (token) => expect(await info(token)).toEqual(invalid));

  test.each(['a.b', 'a.b.c.d', '..', 'a..c', 'a.b.c=', 'a.b.ü'])(
    'not in the format of a JWT: %s',
    async (token) => expect(await info(token)).toEqual(failure(401, 'invalid key')),
  );

  test('is reported in the challenge', async () => {
    const response = await send('GET', '/profile', {
      headers: { authorization: await by({ expires_in: -100 }) },
    });
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="gamewharf", error="invalid_token", error_description="token expired"',
    );
  });

  test('ignores a payload without game_id or with a prototype', async () => {
    const { kid: id, privateKey } = await signingKeys().signer(60);
    const claims = JSON.parse(
      JSON.stringify(buildClaims({ sub: owner.id })).replace('{', '{"__proto__":{"scope":"game"},'),
    ) as Record<string, unknown>;
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', kid: id })
      .sign(privateKey());
    expect(await info(token)).toMatchObject({ status: 200, body: { scopes: ['profile'] } });
  });
});

test('issuer and audience are settings', async () => {
  const issued = async (environment: Record<string, string>) => {
    const other = await openApp({ RATE_LIMIT: 'off', ...environment });
    const { key } = await other
      .get(TokensService)
      .issue({ user_id: 1, game_id: 1, scopes: [], api_key_id: null });
    await other.close();
    const { iss, aud } = decodeJwt(key);
    return [iss, aud];
  };
  const PUBLIC_URL = 'https://api.gamewharf.example';
  expect(await issued({ PUBLIC_URL })).toEqual([PUBLIC_URL, PUBLIC_URL]);
  expect(await issued({ PUBLIC_URL, JWT_ISSUER: 'wharf' })).toEqual(['wharf', 'wharf']);
  expect(await issued({ PUBLIC_URL, JWT_AUDIENCE: 'games' })).toEqual([PUBLIC_URL, 'games']);
});

describe('the key of a JWT', () => {
  test('invalidates the JWT when it is revoked', async () => {
    const { owner } = await actors();
    const keys = theApp().get(ApiKeysService);
    const { id, key } = await keys.create(owner.id);
    const token = await subkey(owner.with(key), (await make.game({ owner })).id);
    expect((await info(token)).status).toBe(200);
    await keys.revoke(id, owner.id);
    expect(await info(token)).toEqual(invalid);
  });

  test('is absent for a JWT that an operator issues', async () => {
    const { owner } = await actors();
    const { key } = await theApp()
      .get(TokensService)
      .issue({
        user_id: owner.id,
        game_id: 1,
        scopes: ['profile:me'],
        api_key_id: null,
        lifetime_seconds: 120,
      });
    expect((await owner.with(key).get('/profile')).status).toBe(200);
    expect(decodeJwt(key)).not.toHaveProperty('api_key_id');
  });
});

describe('signing keys', () => {
  const environment = () => ({
    DATABASE_URL: theApp().get(Settings).DATABASE_URL!,
    PUBLIC_URL: 'https://api.gamewharf.example',
    RATE_LIMIT: 'off',
  });
  const replica = (more = {}) => openApp({ ...environment(), ...more });
  const statusAt = async (app: NestExpressApplication, token: string) =>
    (await fetch(`${await app.getUrl()}/credentials/info`, { headers: { authorization: token } })).status;
  const issue = (app: NestExpressApplication, user_id: number) =>
    app
      .get(TokensService)
      .issue({ user_id, game_id: 1, scopes: ['profile:me'], api_key_id: null })
      .then(({ key }) => key);
  const publishedKids = async (app: NestExpressApplication) =>
    (await app.get(SigningKeysService).published()).map(({ kid }) => kid);
  const readKid = (token: string) => decodeProtectedHeader(token).kid;

  // This block manages its own keys.
  beforeEach(async () => {
    await sql('DELETE FROM signing_keys');
    await signingKeys().reload();
    theApp().get(CredentialCache).forgetAll();
  });

  test('are created once when replicas start together on an empty store', async () => {
    await sql('DELETE FROM signing_keys');
    const replicas = await Promise.all([1, 2, 3].map(() => replica()));
    const kids = await Promise.all(replicas.map(publishedKids));
    expect(new Set(kids.flat()).size).toBe(1);
    expect(await sql('SELECT kid FROM signing_keys')).toHaveLength(1);
    await Promise.all(replicas.map((app) => app.close()));
  });

  test('sign at once in a new store, even if the clock of the database is ahead', async () => {
    const { owner } = await actors();
    theClock().setTimeOfDay(theClock().now() - 30_000);
    const token = await issue(theApp(), owner.id).finally(() => theClock().reset());
    expect((await info(token)).status).toBe(200);
  });

  test('have names according to RFC 7638', async () => {
    const [key] = await published();
    expect(key!.kid).toBe(await calculateJwkThumbprint(key as JWK));
  });

  test('are encrypted: neither the key nor its format can be read from the database', async () => {
    const [row] = await sql<{ private_key: Buffer }>('SELECT private_key FROM signing_keys');
    const { privateKey } = await signingKeys().signer(60);
    const { d } = privateKey().export({ format: 'jwk' });
    expect(row!.private_key.includes(Buffer.from(d!, 'base64url'))).toBe(false);
    expect(row!.private_key).toHaveLength(12 + 16 + 48);
  });

  test('are published before they sign, and until their last token has expired', async () => {
    const { owner } = await actors();
    const old = await issue(theApp(), owner.id);
    const next = await signingKeys().rotate();
    expect((await published()).map(({ kid }) => kid)).toEqual([readKid(old), next.kid]);
    expect(next.signs_from - theClock().now() / 1000).toBeGreaterThan(590);
    expect(readKid(await issue(theApp(), owner.id))).toBe(readKid(old));

    // Ten minutes later.
    await sql(`UPDATE signing_keys SET signs_from = signs_from - interval '601 seconds'`);
    const later = await replica();
    expect(readKid(await issue(later, owner.id))).toBe(next.kid);
    expect(await statusAt(later, old)).toBe(200);
    await later.close();

    // The last token of the old key has expired, even with the clock tolerance.
    await sql(`UPDATE signing_keys SET signs_from = signs_from - interval '3690 seconds'`);
    const still = await replica();
    expect(await publishedKids(still)).toHaveLength(2);
    await still.close();
    await sql(`UPDATE signing_keys SET signs_from = signs_from - interval '41 seconds'`);
    const last = await replica();
    expect(await publishedKids(last)).toEqual([next.kid]);
    expect(await statusAt(last, await forge({ sub: owner.id, header: { kid: readKid(old) } }))).toBe(401);
    expect(await statusAt(last, old)).toBe(401);
    await last.get(SigningKeysService).rotate();
    expect((await sql<{ kid: string }>('SELECT kid FROM signing_keys')).map(({ kid }) => kid)).not.toContain(
      readKid(old),
    );
    await last.close();
  });

  test('cannot be replaced by accident while one waits to sign', async () => {
    const next = await signingKeys().rotate();
    await expect(signingKeys().rotate()).rejects.toThrow(
      `Key ${next.kid} is already published and will be used from ${new Date(next.signs_from * 1000).toISOString().slice(0, 19)}Z.`,
    );
    expect((await signingKeys().rotate({ at_once: true })).signs_from).toBeLessThanOrEqual(
      theClock().now() / 1000,
    );
  });

  test('rejects no valid token while keys rotate repeatedly under two replicas', async () => {
    const { owner } = await actors();
    const other = await replica();
    const tokens: string[] = [];
    for (let i = 0; i < 5; i++) {
      const [here, there] = i % 2 ? [theApp(), other] : [other, theApp()];
      await here.get(SigningKeysService).rotate({ at_once: true });
      tokens.push(await issue(here, owner.id), await issue(there, owner.id));
      // This is another replica's first request with a key that it doesn't know yet.
      expect(
        await Promise.all(tokens.flatMap((token) => [statusAt(here, token), statusAt(there, token)])),
      ).toEqual(tokens.flatMap(() => [200, 200]));
    }
    expect(new Set(tokens.map(readKid)).size).toBeGreaterThanOrEqual(5);
    await other.close();
  });

  test('take one statement for concurrent unknown key IDs', async () => {
    await published();
    const kids = Array.from({ length: 100 }, (_, i) => String(i).padStart(43, 'x'));
    const found: unknown[] = [];
    const verify = async (kid: string) => found.push(await signingKeys().verifier(kid));
    expect(await recordStatements(() => Promise.all(kids.map(verify)))).toEqual(['signing_keys']);
    expect(found).toEqual(kids.map(() => undefined));
  });

  test('revoke their tokens when revoked, and another key signs', async () => {
    const { owner } = await actors();
    const token = await issue(theApp(), owner.id);
    await signingKeys().revoke(readKid(token)!);
    theApp().get(CredentialCache).forgetAll();
    expect(await info(token)).toEqual(invalid);
    const next = await issue(theApp(), owner.id);
    expect(readKid(next)).not.toBe(readKid(token));
    expect((await info(next)).status).toBe(200);
    await expect(signingKeys().revoke('nonsense')).rejects.toThrow("Signing key nonsense doesn't exist.");
  });

  test('are not replaced if a revoked one does not sign', async () => {
    const [old] = await published();
    const next = await signingKeys().rotate({ at_once: true });
    await signingKeys().revoke(old!.kid);
    expect((await published()).map(({ kid }) => kid)).toEqual([next.kid]);
  });

  test('never sign again after a newer one is revoked', async () => {
    const [old] = await published();
    const next = await signingKeys().rotate({ at_once: true });
    await signingKeys().revoke(next.kid);
    const { kid } = await signingKeys().signer(60);
    expect([old!.kid, next.kid]).not.toContain(kid);
    expect((await published()).map((key) => key.kid)).toEqual([old!.kid, kid]);
  });

  test('are reloaded every ten seconds to see changes of other replicas', async () => {
    const timers = jest.spyOn(globalThis, 'setInterval');
    const other = await replica();
    await publishedKids(other);
    await publishedKids(other);
    const reloads = timers.mock.calls.filter(([, every]) => every === 10_000);
    timers.mockRestore();
    const next = await signingKeys().rotate({ at_once: true });
    expect(await publishedKids(other)).not.toContain(next.kid);
    expect(reloads).toHaveLength(1);
    for (const [reload] of reloads) reload();
    await until(async () => (await publishedKids(other)).includes(next.kid));
    await other.close();
  });

  test('are loaded for the first token only', async () => {
    const { owner } = await actors();
    const other = await replica();
    expect(await recordStatements(() => issue(other, owner.id), other)).toEqual([
      'signing_keys',
      'select users',
    ]);
    expect(await recordStatements(() => issue(other, owner.id), other)).toEqual(['select users']);
    await other.close();
  });

  test('are not reloaded for a token with a known key ID', async () => {
    const { owner } = await actors();
    const other = await replica();
    const token = await issue(other, owner.id);
    const verified = async () => expect(await statusAt(other, token)).toBe(200);
    expect(await recordStatements(verified, other)).toEqual(['live_user_of_token']);
    await other.close();
  });

  test('do not verify after they expire, even before the next reload', async () => {
    const [old] = await published();
    const next = await signingKeys().rotate({ at_once: true });
    theClock().stop();
    // The lifetime of a token, and the differences between clocks and replicas.
    theClock().advance((3600 + 120) * 1000);
    expect(await publishedKids(theApp())).toEqual([old!.kid, next.kid]);
    expect(await signingKeys().verifier(old!.kid)).toBeDefined();
    theClock().advance(20_000);
    expect(await publishedKids(theApp())).toEqual([next.kid]);
    expect(await signingKeys().verifier(old!.kid)).toBeUndefined();
  });

  test('are not deleted by a process with a fast clock', async () => {
    const [old] = await published();
    const now = theClock().now();
    theClock().setTimeOfDay(now + 7200 * 1000);
    await signingKeys().rotate({ at_once: true });
    await signingKeys().rotate({ at_once: true });
    theClock().setTimeOfDay(now);
    expect(await signingKeys().verifier(old!.kid)).toBeDefined();
  });

  test('are loaded for the next token if they could not be loaded at first', async () => {
    const other = await replica();
    await sql('ALTER TABLE signing_keys RENAME TO away');
    const failed = await publishedKids(other).catch((error: Error) => error.message);
    await sql('ALTER TABLE away RENAME TO signing_keys');
    expect(failed).toContain('signing_keys');
    expect(await publishedKids(other)).toHaveLength(1);
    await other.close();
  });

  test('know about a longer token lifetime before the first token with it is signed', async () => {
    const { owner } = await actors();
    await theApp()
      .get(TokensService)
      .issue({ user_id: owner.id, game_id: 1, scopes: [], api_key_id: null, lifetime_seconds: 80_000 });
    expect(await sql('SELECT token_lifetime FROM signing_keys')).toEqual([{ token_lifetime: 80_000 }]);
  });

  test('are decrypted with the previous pepper by the first process after it changes', async () => {
    const requirePepper = (on: NestExpressApplication) => on.get(SigningKeysService).requirePepper();
    const { owner } = await actors();
    const [before] = await sql<{ kid: string; private_key: Buffer }>('SELECT * FROM signing_keys');
    const next = 'another pepper, which came in after the first';
    const rotated = await replica({ API_KEY_PEPPER: next, API_KEY_PEPPER_PREVIOUS: PEPPER });
    expect(readKid(await issue(rotated, owner.id))).toBe(before!.kid);
    await until(async () => {
      const [stored] = await sql<{ private_key: Buffer }>('SELECT private_key FROM signing_keys');
      return !stored!.private_key.equals(before!.private_key);
    });
    await rotated.close();
    const alone = await replica({ API_KEY_PEPPER: next });
    await requirePepper(alone);
    expect(readKid(await issue(alone, owner.id))).toBe(before!.kid);
    await alone.close();
    const wrong = await replica({ API_KEY_PEPPER: 'a pepper that nothing was ever sealed under' });
    expect(await publishedKids(wrong)).toEqual([before!.kid]);
    await expect(issue(wrong, owner.id)).rejects.toThrow('is encrypted with a pepper that isn’t configured');
    await expect(requirePepper(wrong)).rejects.toThrow('were created with another API_KEY_PEPPER');
    const both = await replica({
      API_KEY_PEPPER: 'a third pepper that is wrong too',
      API_KEY_PEPPER_PREVIOUS: next,
    });
    await requirePepper(both);
    await both.close();
    // An operator who has lost the pepper can continue without the old keys.
    await wrong.get(SigningKeysService).rotate({ at_once: true });
    await requirePepper(wrong);
    await wrong.close();
  });

  test('need no previous pepper after a start, even those that sign no more', async () => {
    await signingKeys().rotate({ at_once: true });
    const next = 'another pepper, which came in after the first';
    const start = async (peppers: object) => {
      const app = await replica(peppers);
      await app
        .get(SigningKeysService)
        .requirePepper()
        .finally(() => app.close());
    };
    await start({ API_KEY_PEPPER: next, API_KEY_PEPPER_PREVIOUS: PEPPER });
    await start({ API_KEY_PEPPER: next });
    await expect(start({ API_KEY_PEPPER: PEPPER })).rejects.toThrow(
      'were created with another API_KEY_PEPPER',
    );
  });

  test('provided by the operator: publishes all, signs with the first, stores none', async () => {
    const { owner } = await actors();
    await sql('DELETE FROM signing_keys');
    const pem = () =>
      generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
    const [first, second] = [pem(), pem()];
    const before = await replica({ SIGNING_KEYS: first });
    const old = await issue(before, owner.id);
    const after = await replica({ SIGNING_KEYS: second + first });
    expect(await statusAt(after, old)).toBe(200);
    const young = await issue(after, owner.id);
    expect(await publishedKids(after)).toEqual([readKid(young), readKid(old)]);
    expect(await statusAt(before, young)).toBe(401);
    await expect(after.get(SigningKeysService).rotate()).rejects.toThrow(
      'The signing keys are set in SIGNING_KEYS',
    );
    // The app of this file, which has no such setting, may have created one meanwhile.
    const stored = await sql('SELECT FROM signing_keys WHERE kid = ANY ($1)', [
      [readKid(young), readKid(old)],
    ]);
    expect(stored).toEqual([]);
    await Promise.all([before.close(), after.close()]);

    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    await expect(
      replica({ SIGNING_KEYS: rsa.export({ format: 'pem', type: 'pkcs8' }) as string }),
    ).rejects.toThrow('SIGNING_KEYS must contain Ed25519 private keys in PEM format');
    await expect(after.get(SigningKeysService).revoke('nonsense')).rejects.toThrow('add the new key after');
  });
});
