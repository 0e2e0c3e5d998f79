import { ApiError } from '../../platform/errors/api-error';

export type OauthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'server_error'
  | 'temporarily_unavailable';

/** An error with a code of RFC 6749 or RFC 8628. */
export class OauthError extends ApiError {
  constructor(
    readonly error: OauthErrorCode,
    readonly description: string,
    status = 400,
    headers: Record<string, string> = {},
  ) {
    super(status, [error], headers);
  }
}

const NO_CLIENT = 'unknown client_id';

export const invalidClient = () => new OauthError('invalid_client', NO_CLIENT);

/** RFC 6749, section 5.2: a client that used HTTP Basic gets a Basic challenge. */
export const invalidBasicClient = (description = NO_CLIENT) =>
  new OauthError('invalid_client', description, 401, { 'WWW-Authenticate': 'Basic realm="gamewharf"' });

// All reasons share one message, so that tokens cannot be probed.
export const invalidGrant = () =>
  new OauthError(
    'invalid_grant',
    'unknown, used, expired or revoked, or issued for another client or redirect URI',
  );

export const invalidScope = (description: string) => new OauthError('invalid_scope', description);
export const invalidRequest = (description: string) => new OauthError('invalid_request', description);
