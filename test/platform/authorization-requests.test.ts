import {
  type AuthorizationRequest,
  findOAuthError,
} from '../../src/auth/oauth/authorization-requests.service';

const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

const codeRequest = { response_type: 'code', code_challenge: CHALLENGE, code_challenge_method: 'S256' };
const tokenRequest = { response_type: 'token' };

const rejection = (
  fields: AuthorizationRequest['fields'],
  implicit_allowed = true,
  scopes = ['profile:me'],
) =>
  findOAuthError({
    fields,
    scopes,
    application: { implicit_allowed, scopes: ['profile'] },
  } as AuthorizationRequest);

test.each<[AuthorizationRequest['fields']]>([
  [codeRequest],
  [tokenRequest],
  [{ ...codeRequest, state: 'x'.repeat(4000) }],
  [{ ...tokenRequest, state: 'x' }],
])('accepts %j', (fields) => expect(rejection(fields)).toBeUndefined());

test('accepts a code request of an app that does not allow the implicit flow', () =>
  expect(rejection(codeRequest, false)).toBeUndefined());

test.each<[AuthorizationRequest['fields'], string, string]>([
  [{}, 'invalid_request', 'response_type is missing'],
  [{ ...codeRequest, state: 'x'.repeat(4001) }, 'invalid_request', 'state is too long'],
  [{ ...tokenRequest, state: 'x'.repeat(4001) }, 'invalid_request', 'state is too long'],
  [{ response_type: 'id_token' }, 'unsupported_response_type', 'response_type must be code or token'],
  [{ response_type: 'code' }, 'invalid_request', 'code_challenge is missing'],
  [
    { response_type: 'code', code_challenge: CHALLENGE },
    'invalid_request',
    'code_challenge_method must be S256',
  ],
  [
    { ...codeRequest, code_challenge_method: 'plain' },
    'invalid_request',
    'code_challenge_method must be S256',
  ],
  ...[CHALLENGE.slice(1), `${CHALLENGE}A`, `=${CHALLENGE}`, CHALLENGE.replace('-', '+')].map(
    (code_challenge): [AuthorizationRequest['fields'], string, string] => [
      { ...codeRequest, code_challenge },
      'invalid_request',
      'code_challenge must be 43 characters',
    ],
  ),
])('rejects %j: %s, %s', (fields, error, error_description) =>
  expect(rejection(fields)).toEqual({ error, error_description }),
);

test('rejects a token request of an app that does not allow the implicit flow', () =>
  expect(rejection(tokenRequest, false)).toEqual({
    error: 'unauthorized_client',
    error_description: 'this app does not allow tokens in the redirect URI',
  }));

test.each([
  [[], 'scope is missing'],
  [['game'], 'a requested scope is not registered for the app'],
])('validates the scopes %j: %s', (scopes, error_description) => {
  for (const fields of [codeRequest, tokenRequest])
    expect(rejection(fields, true, scopes)).toEqual({ error: 'invalid_scope', error_description });
});
