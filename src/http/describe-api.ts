import type { INestApplication } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { ApiResponse, DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { type RateLimit, type RateLimits, rateLimitsOf } from '../config/rate-limits';
import { Settings } from '../config/settings';
import { exampleOf } from './openapi-examples';
import { isUnlimited } from './unlimited';
import { type Parameter, parametersOf } from './parameters';
import { requestClassOf } from './read-parameters';

type Json = Record<string, unknown>;
type Handler = (...args: never[]) => unknown;

const ERRORS = { $ref: '#/components/schemas/Errors' };

/** On a handler: an answer other than 200 that it makes itself, with the texts it may carry. */
export const Fails = (status: number, ...texts: string[]) =>
  ApiResponse({
    status,
    description: texts.map((text) => `\`${text}\``).join(', '),
    content: { 'application/json': { schema: ERRORS, example: { errors: [texts[0]] } } },
  });

const COMMON: Record<string, { description: string; texts: string[] }> = {
  400: {
    description:
      'A parameter is missing, malformed, out of range or given twice. Everything that is wrong is listed.',
    texts: ['game_id must be an integer'],
  },
  401: {
    description:
      'No credential (`authentication required`), one that is unknown or revoked (`invalid key`), a token that is not ours ' +
      '(`invalid token`), or one whose time is over (`token expired`).',
    texts: ['authentication required'],
  },
  403: {
    description: 'The credential is good, and lacks the scope.',
    texts: ['api key does not permit `SCOPE`'],
  },
  413: { description: 'The body, or the number of its fields, is too large.', texts: ['request too large'] },
  415: {
    description: 'The body is of a type, charset or encoding that is not read here.',
    texts: ['unsupported media type'],
  },
  429: {
    description: 'Too many requests: try again after `Retry-After` seconds.',
    texts: ['rate limit exceeded'],
  },
  500: {
    description: 'A fault of the service; its log has the request id.',
    texts: ['internal server error'],
  },
  503: {
    description: 'Overloaded, stopping, or without its database: try again after `Retry-After` seconds.',
    texts: ['service unavailable'],
  },
};

const header = (description: string, schema: Json, required = false) => ({
  description,
  schema,
  ...(required ? { required } : {}),
});

const HEADERS = {
  'X-Request-Id': header(
    'Names this request in the log; taken from the request where it has one.',
    { type: 'string' },
    true,
  ),
  'X-RateLimit-Limit': header('How many requests are allowed at once.', { type: 'integer' }),
  'X-RateLimit-Remaining': header('How many more are allowed now.', { type: 'integer' }),
  'X-RateLimit-Reset': header('Seconds until all of them are allowed again.', { type: 'integer' }),
  'Retry-After': header('Seconds to wait.', { type: 'integer' }, true),
  'WWW-Authenticate': header('`Bearer`, with what was wrong (RFC 6750).', { type: 'string' }, true),
};

const reference = (name: keyof typeof HEADERS) => ({ $ref: `#/components/headers/${name}` });

function headersOf(status: string, limited: boolean) {
  const names: (keyof typeof HEADERS)[] = ['X-Request-Id'];
  if (limited) names.push('X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset');
  if (status === '429' || status === '503') names.push('Retry-After');
  if (status === '401' || status === '403') names.push('WWW-Authenticate');
  return Object.fromEntries(names.map((name) => [name, reference(name)]));
}

const TAGS: Record<string, string> = {
  Credentials: 'What the credential of a request is, and what it may do.',
  Profile: 'The account behind the credential, and its games.',
  Purchases: 'Who bought a game, and who owns a key to it.',
  Collections: 'Lists of games that users keep.',
  Builds: 'Builds of games, as the tools of developers push them.',
  Legacy:
    'The first version of this API, kept for the integrations that speak it. New ones use the other routes.',
  Operations: 'What a load balancer and an operator ask.',
};

/** What a reader has to know before any route, in Markdown. */
function introduction(limits: RateLimits | null): string {
  const rate = ({ count, period_ms }: RateLimit) =>
    `${count} at once, and again ${count} over ${period_ms / 1000} seconds`;
  return [
    'The server-side API of a game marketplace.',
    '## Requests',
    'Parameters of a GET stand in the query string, those of a POST in a form-encoded, JSON or multipart body or in the query ' +
      'string; the same parameter twice is refused. Unknown parameters are ignored. Answers are JSON, in UTC.',
    '## Credentials',
    '`Authorization: Bearer CREDENTIAL`, with an API key or a JWT. A scope covers what is below it: `profile` covers ' +
      '`profile:me`. An object that the caller may not see is the same `404` as one that does not exist.',
    '## Errors',
    'Every failure is `{"errors": ["text", ...]}`, with the status that says what kind it is. Beyond those listed with each ' +
      'route: `400` `malformed request` for a path that is no UTF-8, `404` `invalid api endpoint` for an unknown path, `405` `method not allowed` with an `Allow` header, `408` ' +
      '`request timeout` for a request that takes more than 8 seconds to arrive, `414` and `431` for addresses and headers ' +
      'over 16 KiB or more than 100 headers. The checks are made in this order: route, credential, scope, parameters, object.',
    '## Limits',
    'A body has at most 512 KiB and 1,000 fields, a list of ids 500 ids, a page 500 entries.',
    limits
      ? `Requests: ${rate(limits.credential)} for a credential; ${rate(limits.user)} for all of a user; ` +
        `${rate(limits.address)} for an address without one; ` +
        `${rate(limits.misses)} for a user's lookups of keys and purchases that find nothing. \`X-RateLimit-*\` headers say what is ` +
        'left, and `429` carries `Retry-After`.'
      : 'The number of requests is not limited here.',
  ].join('\n\n');
}

/** The description of the API, from the declarations of its routes and of their request and answer classes. */
export function describeApi(app: INestApplication): OpenAPIObject {
  const settings = app.get(Settings);
  const config = new DocumentBuilder()
    .setTitle('Gamewharf')
    .setDescription(introduction(rateLimitsOf(settings.RATE_LIMIT) ?? null))
    .setVersion('1')
    .setLicense('MIT', 'https://spdx.org/licenses/MIT.html')
    .addServer(
      settings.PUBLIC_URL ?? '/',
      settings.PUBLIC_URL ? undefined : 'Where this description came from',
    )
    .addBearerAuth({ type: 'http', scheme: 'bearer', description: 'An API key or a JWT' }, 'bearer')
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    operationIdFactory: (controller, method) => `${controller}.${method}`,
  });
  const { schemas = {} } = (document.components ??= {});
  schemas.Errors = {
    type: 'object',
    description: 'What went wrong, one text each.',
    properties: { errors: { type: 'array', items: { type: 'string' }, minItems: 1 } as never },
    required: ['errors'],
  };
  for (const schema of Object.values(schemas) as Json[])
    if (schema.type === 'object' && schema.additionalProperties === undefined)
      schema.additionalProperties = false;
  document.components.headers = HEADERS as never;
  const handlers = handlersOf(app);
  const tags = new Set<string>();
  for (const [path, item] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(item as Record<string, Json>)) {
      const { handler, controller } = handlers.get(String(operation.operationId))!;
      const request = requestClassOf(handler);
      const parameters = request ? parametersOf(request).parameters : [];
      describeParameters(operation, method, path, parameters, request && parametersOf(request).exactlyOneOf);
      describeScope(operation);
      const limited = !isUnlimited(handler, controller);
      describeAnswers(
        operation,
        {
          hasParameters: parameters.length > 0,
          readsBody: method === 'post' && parameters.length > 0,
          limited,
        },
        schemas as Record<string, Json>,
      );
      nameOperation(operation);
      for (const tag of (operation.tags ?? []) as string[]) tags.add(tag);
    }
  document.tags = [...tags]
    .sort(inOrderOf(Object.keys(TAGS)))
    .map((name) => ({ name, description: TAGS[name] ?? name }));
  delete document.info.contact;
  document.openapi = '3.1.0';
  return withNullTypes(document) as OpenAPIObject;
}

const inOrderOf = (names: string[]) => (a: string, b: string) =>
  (names.indexOf(a) + 1 || 99) - (names.indexOf(b) + 1 || 99) || a.localeCompare(b);

/** `CollectionsController.addGame` becomes `collectionsAddGame`, with `Add game` where no summary is given. */
function nameOperation(operation: Json): void {
  const [controller = '', method = ''] = String(operation.operationId).split('.');
  const noun = controller.replace(/Controller$/, '');
  operation.operationId = noun[0]!.toLowerCase() + noun.slice(1) + method[0]!.toUpperCase() + method.slice(1);
  const words = method.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  if (!operation.summary) operation.summary = words[0]!.toUpperCase() + words.slice(1);
}

function describeScope(operation: Json): void {
  const [scope] = ((operation.security ?? []) as Record<string, string[]>[]).flatMap(
    ({ bearer }) => bearer ?? [],
  );
  const says = scope
    ? `Needs the scope \`${scope}\`.`
    : operation.security
      ? 'Needs any valid credential.'
      : // A handler that says which 401 it answers has its own credential, and says which.
        '401' in (operation.responses as object)
        ? ''
        : 'Needs no credential.';
  operation.description = [operation.description, says].filter(Boolean).join('\n\n');
}

function handlersOf(app: INestApplication): Map<string, { handler: Handler; controller: object }> {
  const found = new Map<string, { handler: Handler; controller: object }>();
  for (const module of app.get(ModulesContainer).values())
    for (const { metatype } of module.controllers.values()) {
      const prototype = (metatype as { prototype: Record<string, Handler> }).prototype;
      for (const method of Object.getOwnPropertyNames(prototype))
        found.set(`${(metatype as { name: string }).name}.${method}`, {
          handler: prototype[method]!,
          controller: metatype!,
        });
    }
  return found;
}

function describeParameters(
  operation: Json,
  method: string,
  path: string,
  parameters: Parameter[],
  exactlyOneOf: string[] | undefined,
): void {
  const inBody = method === 'post' ? parameters.filter((one) => one.in === 'request') : [];
  const declared = (operation.parameters ?? []) as Json[];
  const described = parameters
    .filter((one) => !inBody.includes(one))
    .map(({ name, in: place, required, schema, description }) => ({
      name,
      in: place === 'path' ? 'path' : 'query',
      required,
      description,
      example: exampleOf(schema, {}, name),
      schema,
      // A list is one field that holds a JSON array.
      ...(schema.type === 'array'
        ? {
            content: { 'application/json': { schema, example: exampleOf(schema, {}, name) } },
            schema: undefined,
            example: undefined,
          }
        : {}),
    }));
  for (const one of declared) one.example ??= exampleOf((one.schema ?? {}) as Json, {}, String(one.name));
  const names = new Set(described.map(({ name }) => name));
  operation.parameters = [...declared.filter(({ name }) => !names.has(String(name))), ...described];
  if (exactlyOneOf)
    operation.description = [operation.description, `Exactly one of ${exactlyOneOf.join(', ')} is required.`]
      .filter(Boolean)
      .join('\n\n');
  if (inBody.length === 0) return;
  const required = inBody.filter((one) => one.required).map(({ name }) => name);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(
      inBody.map(({ name, schema, description }) => [name, { ...schema, description }]),
    ),
    ...(required.length > 0 ? { required } : {}),
  };
  const alternatives = new Set(exactlyOneOf?.slice(1));
  const example = Object.fromEntries(
    inBody
      .filter(({ name }) => !alternatives.has(name))
      .map(({ name, schema }) => [name, exampleOf(schema, {}, name)]),
  );
  operation.requestBody = {
    required: required.length > 0,
    description: 'The parameters may also stand in the query string.',
    content: {
      'application/x-www-form-urlencoded': { schema },
      'application/json': { schema, example },
      'multipart/form-data': { schema },
    },
  };
}

function describeAnswers(
  operation: Json,
  { hasParameters, readsBody, limited }: { hasParameters: boolean; readsBody: boolean; limited: boolean },
  schemas: Record<string, Json>,
): void {
  const responses = (operation.responses ??= {}) as Record<string, Json>;
  const statuses = ['500', '503'];
  if (limited) statuses.push('429');
  if (hasParameters) statuses.push('400');
  if (readsBody || operation.requestBody) statuses.push('413', '415');
  const security = operation.security as Record<string, string[]>[] | undefined;
  if (security) statuses.push('401');
  const scope = security?.flatMap(({ bearer }) => bearer ?? [])[0];
  if (scope) statuses.push('403');
  for (const status of statuses) {
    const { description, texts } = COMMON[status]!;
    responses[status] ??= {
      description,
      content: {
        'application/json': {
          schema: ERRORS,
          example: { errors: texts.map((text) => text.replace('SCOPE', scope ?? '')) },
        },
      },
    };
  }
  if (scope) alsoForScope(responses['403']!, scope);
  for (const [status, response] of Object.entries(responses)) {
    response.headers = { ...headersOf(status, limited), ...(response.headers as Json | undefined) };
    if (!status.startsWith('2')) continue;
    response.description ||= 'Done.';
    for (const media of Object.values((response.content ?? {}) as Record<string, Json>))
      if (media.schema && media.example === undefined && media.examples === undefined)
        media.example = exampleOf(media.schema as Json, schemas);
  }
}

/** A handler's own 403 is not the only one. */
function alsoForScope(response: Json, scope: string): void {
  const { description, texts } = COMMON[403]!;
  const lacks = { errors: texts.map((text) => text.replace('SCOPE', scope)) };
  if (response.description === description) return;
  response.description = `${description} Or: ${String(response.description)}`;
  const media = (response.content as Record<string, Json>)['application/json']!;
  media.examples = { scope: { value: lacks }, object: { value: media.example } };
  delete media.example;
}

/** OpenAPI 3.1 has no `nullable`: null is a type. */
function withNullTypes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNullTypes);
  if (typeof value !== 'object' || value === null) return value;
  const { nullable, ...rest } = Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .map(([key, inner]) => [key, withNullTypes(inner)]),
  );
  if (nullable !== true) return nullable === undefined || nullable === false ? rest : { ...rest, nullable };
  if (typeof rest.type !== 'string') return { anyOf: [rest, { type: 'null' }] };
  return {
    ...rest,
    type: [rest.type, 'null'],
    ...(Array.isArray(rest.enum) ? { enum: [...rest.enum, null] } : {}),
  };
}
