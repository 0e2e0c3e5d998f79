import { ApiError } from '../../platform/errors/api-error';

type CredentialType = 'key' | 'jwt';

const challenge = (status: number, text: string, parameters: string) =>
  new ApiError(status, [text], { 'WWW-Authenticate': `Bearer realm="gamewharf"${parameters}` });

// Without a credential, the header names no error (RFC 6750, 3.1).
export const authenticationRequired = () => challenge(401, 'authentication required', '');

const invalid = (text: string) =>
  challenge(401, text, `, error="invalid_token", error_description="${text}"`);
export const invalidKey = () => invalid('invalid key');
export const invalidToken = () => invalid('invalid token');
export const tokenExpired = () => invalid('token expired');

export const noLongerValid = ({ type }: { type: CredentialType }) =>
  type === 'key' ? invalidKey() : invalidToken();

const insufficient = (text: string, details = `error_description="${text}"`) =>
  challenge(403, text, `, error="insufficient_scope", ${details}`);

export const insufficientScope = ({ type }: { type: CredentialType }, scope: string) =>
  insufficient(`${type === 'key' ? 'api key' : 'token'} does not permit \`${scope}\``, `scope="${scope}"`);
export const insufficientPermission = (permission: string) =>
  insufficient(`operator token does not permit \`${permission}\``, `scope="${permission}"`);
export const apiKeyRequired = () => insufficient('an api key is required');
export const mayNotStartGames = () => insufficient('the application may not start games');

/** No other credential of this user would help, so the challenge names none. */
export const forbidden = (text: string) => challenge(403, text, '');
