import type { RateLimit, RateLimits } from '../config/rate-limits';

export const TAGS: Record<string, string> = {
  Ownership: 'Check who owns a game, as its player or as its developer.',
  Downloads: 'List and download the files of games.',
  Profile: 'Profile, games and keys of the authenticated user.',
  Games: 'Details of a game, and changes by its developer.',
  Purchases: 'Sales and download keys of a game, for its developer.',
  Builds: 'Versions that developers push to the channels of their games.',
  Bundles: 'Games that are sold together, and claimed one by one.',
  Collections: 'Lists of games that users curate.',
  Users: 'Public profiles.',
  Credentials: 'Scopes and expiry of a credential, and JWTs for launched games.',
  OAuth: 'Tokens for apps that act on behalf of users.',
  Selling: 'Purchases and refunds that your checkout records.',
  Operations: 'Health, metrics, imports and personal data.',
  Legacy:
    'The first version of this API, for existing integrations. New integrations use the other endpoints.',
};

const ERRORS_SECTION = [
  '## Errors',
  'Errors are `{"errors": ["text", ...]}` with a status code. In addition to the errors of each endpoint, every request can ' +
    'fail with `400` `malformed request` if the path is not valid UTF-8, `404` `invalid api endpoint` for an unknown path, ' +
    '`405` `method not allowed` with an `Allow` header, `408` `request timeout` if it takes more than 8 seconds to arrive, ' +
    '`414` `URL too long` if the URL exceeds 16 KiB, and `431` if it has more than 100 headers, or 16 KiB of headers and URL. ' +
    'Checks run in this order: route, credential, scope, parameters, object.',
];

/** The introduction of the OpenAPI document, in Markdown. */
export function introduction(limits: RateLimits | null): string {
  const rate = ({ count, period_ms }: RateLimit) =>
    `${count} at once, refilled over ${period_ms / 1000} seconds`;
  return [
    'The server-side API of a game marketplace.',
    '## Requests',
    'Send parameters of a GET in the query string, and parameters of a POST in the query string or in a form-encoded, JSON or ' +
      'multipart body. A parameter that is sent twice is rejected, unless it repeats the value in the path. Unknown parameters ' +
      'are ignored. In JSON, `null` clears a `description` or a `blurb`; any other parameter that is `null` counts as omitted. ' +
      'Text values of a boolean are `true`, `false`, `1`, `0`, `on`, `off`, `yes` and `no`. Responses are JSON, with times in UTC.',
    '## Credentials',
    'Send an API key or a JWT as `Authorization: Bearer CREDENTIAL`. A scope includes the scopes below it: `profile` includes ' +
      '`profile:me`. The `404` for an object that the user cannot see is the same as for one that does not exist.',
    ...ERRORS_SECTION,
    '## Limits',
    'Limits: 512 KiB per body, 1,000 parameters per request, 500 IDs per list, and 500 entries per page.',
    limits
      ? `Rate limits: ${rate(limits.credential)}, per credential; ${rate(limits.user)}, for all credentials of a user; ` +
        `${rate(limits.address)}, per IP address without a credential; ${rate(limits.misses)}, for a user's failed lookups of ` +
        'keys and purchases. The `X-RateLimit-*` headers report the remaining requests. A `429` has a `Retry-After` header.'
      : 'The number of requests is not limited.',
  ].join('\n\n');
}

export const operatorIntroduction = (): string =>
  [
    "Endpoints for a store's operator and their programs. Send an operator token, created with " +
      '`gamewharf operator-tokens create`, as `Authorization: Bearer TOKEN`. The token in `OPERATOR_TOKEN` has all permissions.',
    ...ERRORS_SECTION,
  ].join('\n\n');
