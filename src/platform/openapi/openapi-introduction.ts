import type { RateLimit, RateLimits } from '../config/rate-limits';

export const TAGS: Record<string, string> = {
  Credentials: 'What the credential of a request is, and what it may do.',
  Profile: 'The account behind the credential, and its games.',
  Games: 'What there is to know of a game, and whether the user owns it.',
  Purchases: 'Who bought a game, and who owns a key to it.',
  Collections: 'Lists of games that users keep.',
  Builds: 'Builds of games, as the tools of developers push them.',
  OAuth: 'How applications get tokens to act for users.',
  Legacy:
    'The first version of this API, kept for the integrations that speak it. New ones use the other routes.',
  Selling: 'What a checkout sells, one sale in one request, and takes back.',
  Operations: 'What a load balancer and an operator ask.',
};

const ERRORS = [
  '## Errors',
  'Every failure is `{"errors": ["text", ...]}`, with the status that says what kind it is. Beyond those listed with each ' +
    'route: `400` `malformed request` for a path that is no UTF-8, `404` `invalid api endpoint` for an unknown path, `405` ' +
    '`method not allowed` with an `Allow` header, `408` `request timeout` for a request that takes more than 8 seconds to ' +
    'arrive, `431` for an address and headers of more than 16 KiB together, or more than 100 headers. The checks are made in ' +
    'this order: route, credential, scope, parameters, object.',
];

/** The introduction of the API's description, in Markdown. */
export function introduction(limits: RateLimits | null): string {
  const rate = ({ count, period_ms }: RateLimit) =>
    `${count} at once, and again ${count} over ${period_ms / 1000} seconds`;
  return [
    'The server-side API of a game marketplace.',
    '## Requests',
    'Parameters of a GET stand in the query string, those of a POST in a form-encoded, JSON or multipart body or in the query ' +
      'string; the same parameter twice is refused, but one of the path may be repeated with its value. Unknown parameters are ' +
      'ignored. In JSON `null` clears a `description` and a `blurb`; any other parameter that is `null` counts as left out. A ' +
      'boolean is `true`, `false`, `1`, `0`, `on`, `off`, `yes` or `no` where it is text. Answers are JSON, in UTC.',
    '## Credentials',
    '`Authorization: Bearer CREDENTIAL`, with an API key or a JWT. A scope covers what is below it: `profile` covers ' +
      '`profile:me`. An object that the caller may not see is the same `404` as one that does not exist.',
    ...ERRORS,
    '## Limits',
    'A body has at most 512 KiB, a request 1,000 parameters, a list of ids 500 ids, a page 500 entries.',
    limits
      ? `Requests: ${rate(limits.credential)} for a credential; ${rate(limits.user)} for all of a user; ` +
        `${rate(limits.address)} for an address without one; ` +
        `${rate(limits.misses)} for a user's lookups of keys and purchases that find nothing. \`X-RateLimit-*\` headers say what is ` +
        'left, and `429` carries `Retry-After`.'
      : 'The number of requests is not limited here.',
  ].join('\n\n');
}

export const operatorIntroduction = (): string =>
  [
    "What the operator of a store asks of the service, and the operator's programs. Each request carries a token that " +
      '`gamewharf operator-tokens create` made, or `OPERATOR_TOKEN`, which may do all.',
    ...ERRORS,
  ].join('\n\n');
