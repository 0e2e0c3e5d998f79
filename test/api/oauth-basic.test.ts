import {
  application,
  CALLBACK,
  DEVICE_GRANT,
  type Fields,
  form,
  oauthError,
  type Tokens,
  useOauth,
  isAccepted,
} from '../support/oauth';
import { sql } from '../support/sql';

useOauth();

const basic = (user: string, password = '') => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

test('RFC 6749 2.3.1: accepts a public client as HTTP Basic user with an empty password at every endpoint', async () => {
  const client = await application();
  const as = basic(client.id);
  const { code, code_verifier } = await client.codeFor();
  const exchanged = await form(
    '/oauth/token',
    { grant_type: 'authorization_code', code, code_verifier, redirect_uri: CALLBACK },
    as,
  );
  const { refresh_token } = exchanged.body as Tokens;
  const refreshed = await form('/oauth/token', { grant_type: 'refresh_token', refresh_token }, as);
  const { access_token } = refreshed.body as Tokens;
  expect(await isAccepted(access_token)).toBe(true);
  expect((await form('/oauth/revoke', { token: access_token }, as)).status).toBe(200);
  expect(await isAccepted(access_token)).toBe(false);

  const { device_code } = (await form('/oauth/device', { scope: 'profile:me' }, as)).body as Fields;
  expect((await form('/oauth/device/poll', { device_code: device_code! }, as)).body).toMatchObject({
    status: 'pending',
  });
  await sql('UPDATE oauth_device_requests SET polled_at = NULL');
  const fields = { grant_type: DEVICE_GRANT, device_code: device_code! };
  expect(await form('/oauth/token', fields, as)).toMatchObject(oauthError('authorization_pending'));
});

test('RFC 6749 2.3.1: accepts the client ID in the body too if it is the same', async () => {
  const [client, other] = [await application(), await application()];
  const { refresh_token } = await client.tokensFor();
  const fields = { grant_type: 'refresh_token', refresh_token };
  expect(await form('/oauth/token', { ...fields, client_id: other.id }, basic(client.id))).toMatchObject({
    status: 400,
    body: { error: 'invalid_request', errors: ['client_id must be given once'] },
  });
  expect((await form('/oauth/token', { ...fields, client_id: client.id }, basic(client.id))).status).toBe(
    200,
  );
});

test('RFC 6749 2.3.1: decodes the client ID as in a form', async () => {
  const client = await application();
  const named = `${client.id} & söns`;
  await sql('UPDATE oauth_applications SET client_id = $2 WHERE client_id = $1', [client.id, named]);
  const encoded = encodeURIComponent(named).replaceAll('%20', '+');
  const { status } = await form('/oauth/device', { scope: 'profile:me' }, basic(encoded));
  expect(status).toBe(200);
});

test.each([
  ['a password', basic('client', 'secret')],
  ['an extra colon', basic('client', ':')],
  ['no user', basic('')],
  ['no colon', { authorization: `Basic ${Buffer.from('client').toString('base64')}` }],
  ['an invalid escape', basic('%zz')],
  ['invalid Base64', { authorization: 'Basic !!!' }],
  ['nothing', { authorization: 'Basic' }],
])('RFC 6749 5.2: returns 401 and the scheme for %s', async (_, headers) => {
  const { refresh_token } = await (await application()).tokensFor();
  for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/device', '/oauth/device/poll']) {
    const response = await form(path, { grant_type: 'refresh_token', refresh_token }, headers);
    expect(response).toMatchObject(oauthError('invalid_client', 401));
    expect(response.headers.get('www-authenticate')).toBe('Basic realm="gamewharf"');
  }
});

test('RFC 6749 5.2: returns 401 for an unknown client here, and 400 if it is in the body', async () => {
  const fields = { grant_type: 'refresh_token', refresh_token: 'x' };
  const response = await form('/oauth/token', fields, basic('nobody'));
  expect(response).toMatchObject(oauthError('invalid_client', 401, 'unknown client_id'));
  expect(response.headers.get('www-authenticate')).toBe('Basic realm="gamewharf"');
  expect(await form('/oauth/token', { ...fields, client_id: 'nobody' })).toMatchObject(
    oauthError('invalid_client', 400, 'unknown client_id'),
  );
});

test('RFC 6749 5.2: names all missing parameters without it', async () => {
  expect(await form('/oauth/token', {}, { authorization: 'Bearer x' })).toMatchObject({
    status: 400,
    body: { errors: ['grant_type is required', 'client_id is required'] },
  });
});
