import * as refusals from '../../src/auth/errors';
import type { Credential } from '../../src/auth/credential';
import type { ApiError } from '../../src/platform/http/api-error';

const key: Credential = { type: 'key', user_id: 1, scopes: [], api_key_id: 1 };
const jwt: Credential = { ...key, type: 'jwt' };
const INVALID = 'error="invalid_token", error_description=';
const SCOPE = 'error="insufficient_scope", scope="game"';

test.each<[ApiError, number, string, string]>([
  [refusals.authenticationRequired(), 401, 'authentication required', ''],
  [refusals.invalidKey(), 401, 'invalid key', `${INVALID}"invalid key"`],
  [refusals.invalidToken(), 401, 'invalid token', `${INVALID}"invalid token"`],
  [refusals.tokenExpired(), 401, 'token expired', `${INVALID}"token expired"`],
  [refusals.noLongerValid(key), 401, 'invalid key', `${INVALID}"invalid key"`],
  [refusals.noLongerValid(jwt), 401, 'invalid token', `${INVALID}"invalid token"`],
  [refusals.insufficientScope(key, 'game'), 403, 'api key does not permit `game`', SCOPE],
  [refusals.insufficientScope(jwt, 'game'), 403, 'token does not permit `game`', SCOPE],
  [
    refusals.insufficientRight('import'),
    403,
    'operator token does not permit `import`',
    'error="insufficient_scope", scope="import"',
  ],
  [
    refusals.startsNoGames(),
    403,
    'the application may not start games',
    'error="insufficient_scope", error_description="the application may not start games"',
  ],
  [refusals.forbidden('not yours'), 403, 'not yours', ''],
  [
    refusals.apiKeyRequired(),
    403,
    'an api key is required',
    'error="insufficient_scope", error_description="an api key is required"',
  ],
])('%s', ({ status, errors, headers }, expected, text, parameters) => {
  expect([status, errors]).toEqual([expected, [text]]);
  expect(headers).toEqual({
    'WWW-Authenticate': `Bearer realm="gamewharf"${parameters && `, ${parameters}`}`,
  });
});
