import { ok } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import {
  authorize,
  application,
  browser,
  type Fields,
  form,
  parseFragment,
  oauthError,
  type Tokens,
  useOauth,
  user,
  isAccepted,
  OauthClient,
} from '../support/oauth';
import { signInBrowser } from '../support/browser';
import { recordStatements } from '../support/statements';

useOauth();

const revoke = async (client: OauthClient, token: string, more: Fields = {}) => {
  const { status, body } = await form('/oauth/revoke', { client_id: client.id, token, ...more });
  return { status, body };
};
const done = ok({});

test('RFC 7009 2.1: revokes only an access token, immediately', async () => {
  const client = await application();
  const [first, other] = [await client.tokensFor(), await client.tokensFor()];
  expect(await isAccepted(first.access_token)).toBe(true);
  expect(await revoke(client, first.access_token)).toEqual(done);
  expect(await isAccepted(first.access_token)).toBe(false);
  expect(await isAccepted(other.access_token)).toBe(true);
  const { status, body } = await client.refresh(first.refresh_token);
  expect(status).toBe(200);
  expect(await isAccepted((body as Tokens).access_token)).toBe(true);
});

test('RFC 7009 2.1: revokes a refresh token with its family', async () => {
  const client = await application();
  const [first, other] = [await client.tokensFor(), await client.tokensFor()];
  const second = (await client.refresh(first.refresh_token)).body as Tokens;
  for (const { access_token } of [first, second]) expect(await isAccepted(access_token)).toBe(true);
  expect(await revoke(client, second.refresh_token)).toEqual(done);
  for (const { access_token, refresh_token } of [first, second]) {
    expect(await isAccepted(access_token)).toBe(false);
    expect(await client.refresh(refresh_token)).toMatchObject(oauthError('invalid_grant'));
  }
  expect(await isAccepted(other.access_token)).toBe(true);
  expect((await client.refresh(other.refresh_token)).status).toBe(200);
});

test('RFC 7009 2.1: revokes the family of a used refresh token', async () => {
  const client = await application();
  const first = await client.tokensFor();
  const second = (await client.refresh(first.refresh_token)).body as Tokens;
  expect(await revoke(client, first.refresh_token)).toEqual(done);
  expect(await isAccepted(second.access_token)).toBe(false);
  expect(await client.refresh(second.refresh_token)).toMatchObject(oauthError('invalid_grant'));
});

test('RFC 7009 2.1: revokes a token of the implicit flow', async () => {
  const client = await application();
  const { access_token } = parseFragment(await authorize(client.tokenRequest()));
  expect(await isAccepted(access_token!)).toBe(true);
  expect(await revoke(client, access_token!)).toEqual(done);
  expect(await isAccepted(access_token!)).toBe(false);
});

test.each(['access_token', 'refresh_token', 'nonsense', ''])(
  'RFC 7009 2.1: ignores the hint %p',
  async (token_type_hint) => {
    const client = await application();
    const { access_token, refresh_token } = await client.tokensFor();
    expect(await revoke(client, access_token, { token_type_hint })).toEqual(done);
    expect(await revoke(client, refresh_token, { token_type_hint })).toEqual(done);
    expect(await isAccepted(access_token)).toBe(false);
    expect(await client.refresh(refresh_token)).toMatchObject(oauthError('invalid_grant'));
  },
);

test("RFC 7009 2.2: does nothing for an unknown or revoked token, another client's token or a personal key", async () => {
  const [client, attacker] = [await application(), await application()];
  const { access_token, refresh_token } = await client.tokensFor();
  for (const token of ['nonsense', 'x'.repeat(1000), access_token, refresh_token, user.key!])
    expect(await revoke(attacker, token)).toEqual(done);
  expect(await revoke(client, user.key!)).toEqual(done);
  expect(await isAccepted(user.key!)).toBe(true);
  expect(await isAccepted(access_token)).toBe(true);
  expect((await client.refresh(refresh_token)).status).toBe(200);
  for (let i = 0; i < 2; i++) expect(await revoke(client, access_token)).toEqual(done);
});

test('RFC 7009 2.1: reports invalid requests like the token endpoint', async () => {
  const client = await application();
  expect(await form('/oauth/revoke', {})).toMatchObject({
    status: 400,
    body: { error: 'invalid_request', errors: ['client_id is required', 'token is required'] },
  });
  expect(await revoke(new OauthClient('nobody'), 'x')).toMatchObject(oauthError('invalid_client'));
  expect(await form(`/oauth/revoke?token=x`, { client_id: client.id })).toMatchObject(
    oauthError('invalid_request', 400, 'send the parameters in the body'),
  );
});

test("keeps other users' keys cached", async () => {
  const client = await application();
  const { refresh_token } = await client.tokensFor();
  const otherUser = await make.user();
  await otherUser.get('/credentials/info');
  await revoke(client, refresh_token);
  expect(await recordStatements(() => otherUser.get('/credentials/info'))).toEqual([]);
});

test('leaves no valid token after a concurrent refresh', async () => {
  const client = await application();
  const other = await signInBrowser(await make.user());
  for (let round = 0; round < 5; round++) {
    const { refresh_token } = await client.tokensFor({}, round % 2 ? other : browser);
    const [{ body }] = await Promise.all([client.refresh(refresh_token), revoke(client, refresh_token)]);
    const { access_token } = body as Partial<Tokens>;
    if (access_token) expect(await isAccepted(access_token)).toBe(false);
  }
  expect(
    await sql(
      `SELECT FROM oauth_refresh_tokens t JOIN oauth_grants g ON g.id = t.grant_id WHERE g.client_id = $1`,
      [client.id],
    ),
  ).toEqual([]);
});
