import { DEVICE_GRANT, useOauth } from '../support/oauth';
import { theApp } from '../support/app';
import { send } from '../support/http';

useOauth();

describe('/.well-known/oauth-authorization-server', () => {
  test('RFC 9700 2.6 (RFC 8414): lists all endpoints', async () => {
    const url = await theApp().getUrl();
    const { body } = await send('GET', '/.well-known/oauth-authorization-server');
    expect(body).toEqual({
      issuer: url,
      authorization_endpoint: `${url}/user/oauth`,
      token_endpoint: `${url}/oauth/token`,
      device_authorization_endpoint: `${url}/oauth/device`,
      revocation_endpoint: `${url}/oauth/revoke`,
      jwks_uri: `${url}/.well-known/jwks.json`,
      service_documentation: `${url}/docs`,
      scopes_supported: expect.arrayContaining(['profile:me', 'collection:view']) as string[],
      response_types_supported: ['code', 'token'],
      response_modes_supported: ['query', 'fragment'],
      grant_types_supported: ['authorization_code', 'implicit', 'refresh_token', DEVICE_GRANT],
      token_endpoint_auth_methods_supported: ['none'],
      revocation_endpoint_auth_methods_supported: ['none'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    });
  });
});
