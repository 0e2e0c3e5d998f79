import type { INestApplication } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { ApiResponse, DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { type Parameter, parametersOf, requestClassOf } from './parameters';

type Json = Record<string, unknown>;
type Handler = (...args: never[]) => unknown;

const ERRORS = { $ref: '#/components/schemas/Errors' };

/** On a handler: an answer other than 200 that it makes itself, with the texts it may carry. */
export const Fails = (status: number, ...texts: string[]) =>
  ApiResponse({
    status,
    description: texts.join(', '),
    content: { 'application/json': { schema: ERRORS, example: { errors: [texts[0]] } } },
  });

const COMMON: Record<string, string> = {
  400: 'A parameter is missing, malformed or given twice; every problem is listed',
  401: 'authentication required, invalid key, invalid token, token expired',
  403: 'The credential lacks the scope',
  429: 'rate limit exceeded',
  500: 'internal server error',
  503: 'service unavailable',
};

const failed = (description: string) => ({
  description,
  content: { 'application/json': { schema: ERRORS } },
});

/** The description of the API, from the declarations of its routes and of their request and answer classes. */
export function describeApi(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setTitle('Gamewharf')
    .setDescription('The server-side API of a game marketplace.')
    .setVersion('1')
    .addBearerAuth({ type: 'http', scheme: 'bearer', description: 'An API key or a JWT' }, 'bearer')
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    operationIdFactory: (controller, method) => `${controller}.${method}`,
  });
  const handlers = handlersOf(app);
  for (const [path, item] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(item as Record<string, Json>)) {
      const handler = handlers.get(String(operation.operationId));
      const request = handler && requestClassOf(handler);
      const parameters = request ? parametersOf(request).parameters : [];
      describeParameters(operation, method, path, parameters, request && parametersOf(request).exactlyOneOf);
      describeFailures(operation, parameters.length > 0);
    }
  const { schemas = {} } = (document.components ??= {});
  schemas.Errors = {
    type: 'object',
    properties: { errors: { type: 'array', items: { type: 'string' }, minItems: 1 } as never },
    required: ['errors'],
  };
  for (const schema of Object.values(schemas) as Json[])
    if (schema.type === 'object' && schema.additionalProperties === undefined)
      schema.additionalProperties = false;
  document.openapi = '3.1.0';
  return withNullTypes(document) as OpenAPIObject;
}

function handlersOf(app: INestApplication): Map<string, Handler> {
  const found = new Map<string, Handler>();
  for (const module of app.get(ModulesContainer).values())
    for (const { metatype } of module.controllers.values()) {
      const prototype = (metatype as { prototype: Record<string, Handler> }).prototype;
      for (const method of Object.getOwnPropertyNames(prototype))
        found.set(`${(metatype as { name: string }).name}.${method}`, prototype[method]!);
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
      schema,
      // A list is one field that holds a JSON array.
      ...(schema.type === 'array' ? { content: { 'application/json': { schema } }, schema: undefined } : {}),
    }));
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
  operation.requestBody = {
    required: required.length > 0,
    description: 'The parameters may also stand in the query string.',
    content: {
      'application/x-www-form-urlencoded': { schema },
      'application/json': { schema },
      'multipart/form-data': { schema },
    },
  };
}

function describeFailures(operation: Json, hasParameters: boolean): void {
  const responses = (operation.responses ??= {}) as Json;
  const statuses = ['429', '500', '503'];
  if (hasParameters) statuses.push('400');
  const security = operation.security as Record<string, string[]>[] | undefined;
  if (security) statuses.push('401');
  if (security?.some(({ bearer }) => bearer && bearer.length > 0)) statuses.push('403');
  for (const status of statuses) responses[status] ??= failed(COMMON[status]!);
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
