import * as rejections from '../../src/auth/access/errors';
import type { Credential } from '../../src/auth/access/credential';
import type { ApiError } from '../../src/platform/errors/api-error';

const key: Credential = { type: 'key', user_id: 1, scopes: [], api_key_id: 1 };
const jwt: Credential = { ...key, type: 'jwt' };
const INVALID = 'error="invalid_token", error_description=';
const SCOPE = 'error="insufficient_scope", scope="game"';

test.each<[ApiError, number, string, string]>([
  [rejections.authenticationRequired(), 401, 'authentication required', ''],
  [rejections.invalidKey(), 401, 'invalid key', `${INVALID}"invalid key"`],
  [rejections.invalidToken(), 401, 'invalid token', `${INVALID}"invalid token"`],
  [rejections.tokenExpired(), 401, 'token expired', `${INVALID}"token expired"`],
  [rejections.noLongerValid(key), 401, 'invalid key', `${INVALID}"invalid key"`],
  [rejections.noLongerValid(jwt), 401, 'invalid token', `${INVALID}"invalid token"`],
  [rejections.insufficientScope(key, 'game'), 403, 'api key does not permit `game`', SCOPE],
  [rejections.insufficientScope(jwt, 'game'), 403, 'token does not permit `game`', SCOPE],
  [
    rejections.insufficientPermission('import'),
    403,
    'operator token does not permit `import`',
    'error="insufficient_scope", scope="import"',
  ],
  [
    rejections.mayNotStartGames(),
    403,
    'the application may not start games',
    'error="insufficient_scope", error_description="the application may not start games"',
  ],
  [rejections.forbidden('not yours'), 403, 'not yours', ''],
  [
    rejections.apiKeyRequired(),
    403,
    'an api key is required',
    'error="insufficient_scope", error_description="an api key is required"',
  ],
])('%s', ({ statusCode: status, errors, headers }, expected, text, parameters) => {
  expect([status, errors]).toEqual([expected, [text]]);
  expect(headers).toEqual({
    'WWW-Authenticate': `Bearer realm="gamewharf"${parameters && `, ${parameters}`}`,
  });
});
