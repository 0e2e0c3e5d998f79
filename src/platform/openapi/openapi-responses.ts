import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExample, type Json } from './openapi-parameters';
import { ERRORS } from '../server/routes';

/** Responses of the demo store, by operation; test/operator/demo.test.ts writes the file. */
const EXAMPLES = JSON.parse(
  readFileSync(join(__dirname, 'assets', 'example-responses.json'), 'utf8'),
) as Record<string, unknown>;

type ErrorTexts = [description: string, text: string];

const COMMON_ERRORS: Record<string, ErrorTexts> = {
  400: [
    'A parameter is missing, malformed, out of range or sent twice, or the request has more than one `Authorization` header. The response lists every problem.',
    'game_id must be an integer',
  ],
  401: [
    'The credential is missing (`authentication required`), unknown or revoked (`invalid key`), not a token of this service ' +
      '(`invalid token`), or expired (`token expired`).',
    'authentication required',
  ],
  403: ['The credential is valid but lacks the scope.', 'api key does not permit `SCOPE`'],
  413: ['The body is too large, or has too many parameters.', 'too many parameters'],
  415: ['The media type, charset or encoding of the body is not supported.', 'unsupported media type'],
  429: ['Too many requests. Try again after `Retry-After` seconds.', 'rate limit exceeded'],
  500: ['An internal error. The log has the request ID.', 'internal server error'],
  503: [
    'The service is overloaded, stopping, or without its database. Try again after `Retry-After` seconds.',
    'service unavailable',
  ],
};

// These replace COMMON_ERRORS on routes for operator tokens.
const OPERATOR_ERRORS: typeof COMMON_ERRORS = {
  401: [
    'The token is missing (`authentication required`), or unknown or revoked (`invalid token`).',
    'authentication required',
  ],
  403: ['The token is valid but lacks the permission.', 'operator token does not permit `SCOPE`'],
  404: ['The object does not exist, or the store has no operator tokens.', 'invalid api endpoint'],
};

const ERRORS_WITHOUT_PARAMETERS: typeof COMMON_ERRORS = {
  400: ['The request has more than one `Authorization` header.', 'Authorization must be given once'],
};

const header = (description: string, schema: Json) => ({ description, schema });

const requiredHeader = (description: string, schema: Json) => ({
  ...header(description, schema),
  required: true,
});

export const HEADERS = {
  'X-Request-Id': requiredHeader('ID of this request in the log. Taken from the request if it has one.', {
    type: 'string',
  }),
  'X-RateLimit-Limit': header('Maximum number of requests at once.', { type: 'integer' }),
  'X-RateLimit-Remaining': header('Number of requests allowed now.', { type: 'integer' }),
  'X-RateLimit-Reset': header('Seconds until the maximum is allowed again.', { type: 'integer' }),
  'Retry-After': requiredHeader('Number of seconds to wait.', { type: 'integer' }),
  'WWW-Authenticate': requiredHeader('`Bearer`, with the error (RFC 6750).', { type: 'string' }),
};

export const ERRORS_SCHEMA = {
  type: 'object',
  description: 'The problems of the request.',
  properties: {
    errors: {
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      description:
        'One message for each problem. Use the status code to decide what to do; the messages distinguish the causes of a status',
    },
  },
  required: ['errors'],
};

const reference = (name: keyof typeof HEADERS) => ({ $ref: `#/components/headers/${name}` });

function describeHeaders(status: string, isLimited: boolean) {
  const names: (keyof typeof HEADERS)[] = ['X-Request-Id'];
  if (isLimited) names.push('X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset');
  if (status === '429' || status === '503') names.push('Retry-After');
  if (status === '401' || status === '403') names.push('WWW-Authenticate');
  return Object.fromEntries(names.map((name) => [name, reference(name)]));
}

interface OperationFacts {
  hasParameters: boolean;
  readsBody: boolean;
  isLimited: boolean;
  /** The credential that is required. */
  credential: 'bearer' | 'operator' | undefined;
  /** The required scope or permission. */
  scope: string | undefined;
}

/** Adds the responses of guards and filters, and the headers of all responses. */
export function describeResponses(
  operation: Json,
  { hasParameters, readsBody, isLimited, credential, scope }: OperationFacts,
  schemas: Record<string, Json>,
): void {
  const responses = (operation.responses ??= {}) as Record<string, Json>;
  const statuses = ['500', '503'];
  if (isLimited) statuses.push('429');
  if (hasParameters) statuses.push('400', '413');
  else if (credential) statuses.push('400');
  if (readsBody) statuses.push('415');
  if (credential) statuses.push('401');
  if (credential === 'operator') statuses.push('404');
  if (scope) statuses.push('403');
  const common = {
    ...COMMON_ERRORS,
    ...(credential === 'operator' && OPERATOR_ERRORS),
    ...(!hasParameters && ERRORS_WITHOUT_PARAMETERS),
  };
  for (const status of statuses) {
    const [description, text] = common[status]!;
    responses[status] ??= {
      description,
      content: {
        'application/json': {
          schema: ERRORS,
          example: { errors: [text.replace('SCOPE', scope ?? '')] },
        },
      },
    };
  }
  if (scope) alsoForScope(responses['403']!, scope, common[403]!);
  for (const [status, response] of Object.entries(responses)) {
    response.headers = { ...describeHeaders(status, isLimited), ...(response.headers as Json | undefined) };
    if (!status.startsWith('2')) continue;
    response.description ||= 'Success.';
    for (const media of Object.values((response.content ?? {}) as Record<string, Json>))
      if (media.schema && media.example === undefined && media.examples === undefined)
        media.example =
          EXAMPLES[String(operation.operationId)] ?? createExample(media.schema as Json, schemas);
  }
}

/** Adds the 403 of a missing scope to the handler's own 403. */
function alsoForScope(response: Json, scope: string, [description, text]: ErrorTexts): void {
  const lacks = { errors: [text.replace('SCOPE', scope)] };
  if (response.description === description) return;
  response.description = `${description} Or: ${String(response.description)}`;
  const media = (response.content as Record<string, Json>)['application/json']!;
  media.examples = { scope: { value: lacks }, object: { value: media.example } };
  delete media.example;
}
