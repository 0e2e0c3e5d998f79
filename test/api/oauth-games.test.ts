import {
  ACCESS,
  authorizePath,
  authorize,
  APPS,
  application,
  browser,
  decide,
  DEVICE_GRANT,
  form,
  pkce,
  type Tokens,
  useOauth,
  user,
  OauthClient,
} from '../support/oauth';
import { failure } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { send } from '../support/http';

useOauth();

const WORDS = 'Start games as you';
let game: { id: number };
beforeAll(async () => {
  game = await make.game({ owner: await make.user() });
});

const start = (token: string) =>
  user.with(token).post('/credentials/subkey', { game_id: game.id, scope: 'profile:me' });
const rejection = failure(403, 'the application may not start games');
const change = (client: OauthClient, may_start_games: boolean) =>
  sql('UPDATE oauth_applications SET may_start_games = $2 WHERE client_id = $1', [
    client.id,
    may_start_games,
  ]);

test("an app cannot start games without the user's consent, whatever its scopes", async () => {
  const client = await application();
  await browser.get(authorizePath(client.codeRequest(pkce().code_challenge)));
  expect(browser.words).not.toContain(WORDS);
  const { access_token } = await client.tokensFor({ scope: 'profile' });
  expect(await start(access_token)).toEqual(rejection);
  const { headers } = await send('POST', '/credentials/subkey', {
    headers: {
      authorization: `Bearer ${access_token}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: `game_id=${game.id}&scope=profile:me`,
  });
  expect(headers.get('www-authenticate')).toContain('error="insufficient_scope"');
});

test('an app can start games after a consent page that says so', async () => {
  const client = await application({ may_start_games: true });
  await browser.get(authorizePath(client.codeRequest(pkce().code_challenge)));
  expect(browser.words).toContain(WORDS);
  const { access_token } = await client.tokensFor();
  expect((await start(access_token)).status).toBe(200);
  await browser.get(ACCESS);
  expect(browser.words).toContain(`See who you are ${WORDS}`);
});

test('an app that requests it later asks again, and the response reports the addition', async () => {
  const client = await application();
  const { access_token } = await client.tokensFor();
  await change(client, true);
  expect(await start(access_token)).toEqual(rejection);
  const { status } = await browser.get(authorizePath(client.codeRequest(pkce().code_challenge)));
  expect(status).toBe(200);
  expect(browser.words).toContain(`See who you are ${WORDS} New`);
  await browser.submit('/user/oauth', {}, 'Allow');
  expect((await start(access_token)).status).toBe(200);
});

test('an app that no longer requests it cannot start games', async () => {
  const client = await application({ may_start_games: true });
  const { access_token } = await client.tokensFor();
  await change(client, false);
  expect(await start(access_token)).toEqual(rejection);
});

test('consent covers what the page displayed, not later changes to the app', async () => {
  const client = await application();
  const asking = client.codeRequest(pkce().code_challenge);
  await browser.get(authorizePath(asking));
  await change(client, true);
  await browser.submit('/user/oauth', {}, 'Allow');
  expect(await sql('SELECT may_start_games FROM oauth_grants WHERE client_id = $1', [client.id])).toEqual([
    { may_start_games: false },
  ]);
  await browser.get(authorizePath(asking));
  await change(client, false);
  await browser.submit('/user/oauth', {}, 'Allow');
  await change(client, true);
  expect((await browser.get(authorizePath(asking))).status).toBe(200);
});

test('a device can request it', async () => {
  const [launcher, other] = [await application({ may_start_games: true }), await application()];
  for (const client of [launcher, other]) {
    const { device_code, user_code } = await client.device();
    await browser.get(`/user/oauth/device?code=${user_code}`);
    expect(browser.words.includes(WORDS)).toBe(client === launcher);
    await decide(user_code, 'Allow');
    const { body } = await form('/oauth/token', {
      grant_type: DEVICE_GRANT,
      client_id: client.id,
      device_code,
    });
    const response = await start((body as Tokens).access_token);
    if (client === launcher) expect(response.status).toBe(200);
    else expect(response).toEqual(rejection);
  }
});

test('personal keys start games with any scope that includes it', async () => {
  expect((await start(user.key!)).status).toBe(200);
  expect((await start(await make.key({ owner: user, scopes: ['profile:me'] }))).status).toBe(200);
});

test('an app registers it on its page', async () => {
  await browser.get(`${APPS}/new`);
  expect(browser.words).toContain('Start games for users');
  await browser.submit(APPS, {
    name: 'Launcher',
    redirect_uris: 'https://game.example/',
    may_start_games: 'yes',
  });
  await browser.follow();
  expect(browser.page.text).toMatch(/name="may_start_games"\s+value="yes"\s+checked/);
  expect(await sql(`SELECT may_start_games FROM oauth_applications WHERE name = 'Launcher'`)).toEqual([
    { may_start_games: true },
  ]);
  expect(await authorize((await application()).codeRequest(pkce().code_challenge))).toContain('code=');
});
