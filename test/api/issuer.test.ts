import { decodeJwt } from 'jose';
import { TokensService } from '../../src/auth/jwt/tokens.service';
import { Settings } from '../../src/platform/config/settings';
import { ServiceUrl } from '../../src/platform/server/service-url';
import { Server } from '../../src/server';
import { authorize, application, pkce, parseQuery, useOauth, user } from '../support/oauth';
import { sendRaw } from '../support/raw';
import { baseUrl, databaseUrl, openApp, theApp } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';

// These tests run without PUBLIC_URL.
useOauth();

const EVIL = 'evil.example';
const fetchIssuer = async (base = baseUrl()) =>
  ((await (await fetch(`${base}/.well-known/oauth-authorization-server`)).json()) as { issuer: string })
    .issuer;
const issueToken = (app = theApp()) =>
  app.get(TokensService).issue({ user_id: 1, game_id: 1, scopes: [], api_key_id: null });

/** A client that uses another host name. */
const askEvil = (method: string, path: string, body = '') =>
  sendRaw(
    `${method} ${path} HTTP/1.1\r\nHost: ${EVIL}\r\nAccept: text/html\r\nConnection: close\r\n` +
      `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );

test('the issuer is the same in metadata, OAuth responses, JWTs and pages', async () => {
  expect(await fetchIssuer()).toBe(baseUrl());
  const location = await authorize((await application()).codeRequest(pkce().code_challenge));
  expect(parseQuery(location).iss).toBe(baseUrl());
  expect(decodeJwt((await issueToken()).key)).toMatchObject({ iss: baseUrl(), aud: baseUrl() });
  const home = await send('GET', '/developers', { headers: { accept: 'text/html' } });
  expect(home.text).toContain(`curl ${baseUrl()}/`);
});

test('the issuer does not depend on the Host header', async () => {
  const app = await application();
  for (const response of [
    await askEvil('GET', '/.well-known/oauth-authorization-server'),
    await askEvil('POST', '/oauth/device', `client_id=${app.id}&scope=profile:me`),
    await askEvil('GET', '/developers'),
  ]) {
    expect(response.status).toBe(200);
    expect(response.body).not.toContain(EVIL);
    expect(response.body).toContain(baseUrl());
  }
});

test('the issuer is PUBLIC_URL if set, with JWT_ISSUER for JWTs only', async () => {
  const PUBLIC_URL = 'https://api.store.example';
  const one = await openApp({ PUBLIC_URL: `${PUBLIC_URL}/` });
  expect(await fetchIssuer(await one.getUrl())).toBe(PUBLIC_URL);
  expect(decodeJwt((await issueToken(one)).key).iss).toBe(PUBLIC_URL);
  const other = await openApp({ PUBLIC_URL, JWT_ISSUER: 'wharf' });
  expect(await fetchIssuer(await other.getUrl())).toBe(PUBLIC_URL);
  expect(decodeJwt((await issueToken(other)).key).iss).toBe('wharf');
});

test.each([
  ['127.0.0.1', 3000, 'http://127.0.0.1:3000'],
  ['::1', 3000, 'http://[::1]:3000'],
  ['localhost', 80, 'http://localhost:80'],
])('at %s, port %i, the issuer is %s, including for commands, which do not listen', (HOST, PORT, url) =>
  expect(new ServiceUrl({ HOST, PORT } as Settings, { httpAdapter: undefined } as never).url).toBe(url),
);

test('the issuer is printed by npm start', async () => {
  const settings = { ...theApp().get(Settings), DATABASE_URL: databaseUrl(), DEMO_DATA: false } as Settings;
  const printed = jest.spyOn(console, 'log').mockImplementation();
  const exit = jest.spyOn(process, 'exit').mockImplementation();
  const server = new Server();
  await server.start(() => settings);
  const [address] = /http:\S+/.exec(String(printed.mock.calls[0]![0]))!;
  const issuer = await fetchIssuer(address);
  const game = await make.game({ owner: user });
  const launched = await fetch(`${address}/credentials/subkey`, {
    method: 'POST',
    headers: user.headers,
    body: new URLSearchParams({ game_id: String(game.id), scope: 'profile:me' }),
  });
  const { key } = (await launched.json()) as { key: string };
  await server.stop(0);
  printed.mockRestore();
  exit.mockRestore();
  expect([issuer, decodeJwt(key).iss]).toEqual([address, address]);
  expect(address).not.toBe(baseUrl());
});

test('npm start exits with a different pepper and explains why', async () => {
  const settings = {
    ...theApp().get(Settings),
    DATABASE_URL: databaseUrl(),
    DEMO_DATA: false,
    API_KEY_PEPPER: 'that of another store',
  } as Settings;
  const exit = jest.spyOn(process, 'exit').mockImplementation();
  const server = new Server();
  const start = server.start(() => settings);
  await start.catch(() => undefined);
  await server.stop(1);
  exit.mockRestore();
  await expect(start).rejects.toThrow(/created with another API_KEY_PEPPER.*rotate --now/);
});
