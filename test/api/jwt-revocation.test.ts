import type { NestExpressApplication } from '@nestjs/platform-express';
import { decodeJwt } from 'jose';
import { ApiKeysService } from '../../src/auth/keys/api-keys.service';
import { TokensService } from '../../src/auth/jwt/tokens.service';
import { signInBrowser } from '../support/browser';
import { type Actor } from '../support/actor';
import { baseUrl, openApp, theApp, theClock, useStore } from '../support/app';
import { failure } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { recordStatements } from '../support/statements';
import { until } from '../support/time';
import { forge } from '../support/tokens';

useStore();

const ACCESS = '/user/settings/authorized-apps';

let player: Actor;
let otherUser: Actor;
let game: { id: number };
beforeEach(async () => {
  const { owner, stranger } = await actors();
  [player, otherUser] = [stranger, owner];
  game = await make.game({ owner });
});

const invalid = failure(401, 'invalid token');
const launch = async (who: Actor) =>
  ((await who.post('/credentials/subkey', { game_id: game.id, scope: 'profile:me' })).body as { key: string })
    .key;
const operatorsToken = async () =>
  (
    await theApp()
      .get(TokensService)
      .issue({ user_id: player.id, game_id: game.id, scopes: ['profile:me'], api_key_id: null })
  ).key;
const profile = (token: string) => player.with(token).get('/profile');
const revokeAll = () => theApp().get(ApiKeysService).revokeAllTokens(player.id);

test('invalidates all JWTs of the user at the next request, and no other credential', async () => {
  const tokens = [await launch(player), await launch(player), await operatorsToken()];
  const others = await launch(otherUser);
  for (const token of [...tokens, others]) expect((await profile(token)).status).toBe(200);
  await revokeAll();
  for (const token of tokens) expect(await profile(token)).toEqual(invalid);
  for (const good of [others, player.key!, otherUser.key!]) expect((await profile(good)).status).toBe(200);
});

test('accepts JWTs issued afterwards, immediately and after repeated revocations', async () => {
  const old: string[] = [];
  for (let round = 0; round < 3; round++) {
    const young = await launch(player);
    expect((await profile(young)).status).toBe(200);
    for (const token of old) expect(await profile(token)).toEqual(invalid);
    old.push(young);
    await revokeAll();
    expect(await profile(young)).toEqual(invalid);
  }
  expect(decodeJwt(old[0]!)).not.toHaveProperty('generation');
  expect(decodeJwt(old[2]!).generation).toBe(2);
});

test.each([-1, 1, 0.5, '0', null, 2 ** 31, [0]])(
  'rejects a generation that is not the user’s: %p',
  async (generation) => {
    expect(await profile(await forge({ sub: player.id, claims: { generation } }))).toEqual(invalid);
    expect((await profile(await forge({ sub: player.id, claims: { generation: 0 } }))).status).toBe(200);
  },
);

describe('works on another replica', () => {
  let replica: NestExpressApplication;
  let url: string;
  beforeAll(async () => {
    replica = await openApp({ PUBLIC_URL: baseUrl() });
    url = await replica.getUrl();
  });

  test('takes effect when the token has been cached for 700 ms', async () => {
    theClock().stop();
    const token = await launch(player);
    const ask = async () => (await fetch(`${url}/profile`, { headers: { authorization: token } })).status;
    expect(await ask()).toBe(200);
    await revokeAll();
    theClock().advance(699);
    expect(await ask()).toBe(200);
    theClock().advance(1);
    expect(await ask()).toBe(401);
  });
});

test('is available to users under “Connected apps” and recorded as an audit event', async () => {
  const browser = await signInBrowser(player);
  const token = await launch(player);
  expect((await profile(token)).status).toBe(200);
  await browser.get(ACCESS);
  expect(browser.words).toContain('Games that you started');
  await browser.submit(`${ACCESS}/game-tokens/revoke`);
  await browser.follow();
  expect(browser.words).toContain('The tokens of all games that you started were revoked.');
  expect(await profile(token)).toEqual(invalid);
  const event = () =>
    sql(`SELECT event FROM audit_events WHERE user_id = $1 AND event = 'jwt.revoked'`, [player.id]);
  await until(async () => (await event()).length === 1);
});

test('forgets cached JWTs and keeps cached keys', async () => {
  const [jwt, key] = [await launch(otherUser), otherUser.key!];
  theClock().stop();
  for (const one of [jwt, key]) expect((await profile(one)).status).toBe(200);
  await revokeAll();
  expect(await recordStatements(() => profile(key))).toEqual(['user']);
  expect(await recordStatements(() => profile(jwt))).toEqual(['live_user_of_token', 'user']);
});
