import { type INestApplication, ParseIntPipe } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { ApiOperation, DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { parseRateLimits } from '../config/rate-limits';
import { Settings } from '../config/settings';
import { describeResponses, ERRORS_SCHEMA, HEADERS } from './openapi-responses';
import { introduction, operatorIntroduction, TAGS } from './openapi-introduction';
import { describeParameters, type Json } from './openapi-parameters';
import { type RequestClass, readRequestClass } from '../input/params.decorator';
import { listHandlers, type Named, namesWith, OPERATOR_PATH, readParameterTypes } from '../server/routes';
import { isUnlimited } from '../limits/rate-limits.decorators';

const BODY_METHODS = ['post', 'put', 'patch'];

export type Audience = 'everybody' | 'operator';

/** The OpenAPI document, from the decorators of routes, requests and responses. */
export function describeApi(app: INestApplication, audience: Audience = 'everybody'): OpenAPIObject {
  const document = SwaggerModule.createDocument(app, createConfig(app.get(Settings), audience), {
    operationIdFactory: (controller, method) => `${controller}.${method}.`,
  });
  for (const path of Object.keys(document.paths))
    if (path.startsWith(OPERATOR_PATH) !== (audience === 'operator')) delete document.paths[path];
  const components = (document.components ??= {});
  const schemas = (components.schemas ??= {}) as Record<string, Json>;
  schemas.Errors = ERRORS_SCHEMA;
  for (const schema of Object.values(schemas))
    // A class without @ApiProperty has no properties here, but may have some for class-validator.
    if (schema.type === 'object' && schema.additionalProperties === undefined && hasProperties(schema))
      schema.additionalProperties = false;
  components.headers = HEADERS as never;
  const handlers = new Map(
    listHandlers(app.get(ModulesContainer)).map((one) => [
      declaredOperationId(one.handler) ?? `${one.controller.name}.${one.handler.name}`,
      one,
    ]),
  );
  const tags = new Set<string>();
  for (const [path, item] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(item as Record<string, Json>)) {
      const { handler, controller } = handlers.get(String(operation.operationId).replace(SUFFIX, ''))!;
      describeOperation(operation, { path, method }, handler, controller, schemas);
      for (const tag of (operation.tags ?? []) as string[]) tags.add(tag);
    }
  document.tags = [...tags]
    .sort(compareByOrder(Object.keys(TAGS)))
    .map((name) => ({ name, description: TAGS[name] ?? name }));
  delete document.info.contact;
  dropUnused(schemas, document.paths);
  return document;
}

function createConfig({ RATE_LIMIT, PUBLIC_URL }: Settings, audience: Audience) {
  const builder = new DocumentBuilder()
    .setTitle(audience === 'operator' ? 'Gamewharf for operators' : 'Gamewharf')
    .setDescription(
      audience === 'operator' ? operatorIntroduction() : introduction(parseRateLimits(RATE_LIMIT) ?? null),
    )
    .setVersion('1')
    .setOpenAPIVersion('3.1.0')
    .setLicense('MIT', 'https://spdx.org/licenses/MIT.html')
    .addServer(PUBLIC_URL ?? '/', PUBLIC_URL ? undefined : 'The server of this description');
  const [name, description] =
    audience === 'operator' ? ['operator', 'An operator token'] : ['bearer', 'An API key or a JWT'];
  return builder.addBearerAuth({ type: 'http', scheme: 'bearer', description }, name).build();
}

function describeOperation(
  operation: Json,
  { path, method }: { path: string; method: string },
  handler: Named,
  controller: Named,
  schemas: Record<string, Json>,
): void {
  nameOperation(operation, handler, controller);
  successIs200(operation);
  const request = readRequestClass(handler);
  describeParameters(operation, request, schemas, {
    path,
    inBody: BODY_METHODS.includes(method),
    types: readParameterTypes(handler, controller) as (RequestClass | undefined)[],
    integers: namesWith(ParseIntPipe, handler, controller),
  });
  const { scope, credential } = describeSecurity(operation);
  const isLimited = !isUnlimited(handler, controller);
  const readsBody =
    operation.requestBody !== undefined || (BODY_METHODS.includes(method) && request !== undefined);
  const hasParameters = request !== undefined || readsBody || ((operation.parameters ?? []) as []).length > 0;
  describeResponses(operation, { hasParameters, readsBody, isLimited, credential, scope }, schemas);
}

const hasProperties = ({ properties }: Json) => Object.keys(properties ?? {}).length > 0;

/** Swagger describes a POST as 201, which the adapter sends as 200. */
function successIs200(operation: Json): void {
  const { 201: created, ...others } = operation.responses as Record<string, Json>;
  if (created) operation.responses = { 200: created, ...others };
}

const compareByOrder = (names: string[]) => (a: string, b: string) =>
  (names.indexOf(a) + 1 || 99) - (names.indexOf(b) + 1 || 99) || a.localeCompare(b);

/** The name of the metadata of `@ApiOperation()`, which Swagger doesn't export. */
const OPERATION = (() => {
  const handler = () => undefined;
  ApiOperation({ operationId: 'any' })({}, handler.name, { value: handler });
  return Reflect.getMetadataKeys(handler)[0] as string;
})();

/** The ID of `@ApiOperation({ operationId })`. */
const declaredOperationId = (handler: Named) =>
  (Reflect.getMetadata(OPERATION, handler) as { operationId?: string } | undefined)?.operationId;

/** What Swagger adds to an ID: the index of one of several paths, and the method for `@All()`. */
const SUFFIX = /(?:\[(\d+)\])?\.(?:_(\w+))?$/;

const capitalized = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);

/** `CollectionsController.addGame` becomes `collectionsAddGame`, with `Add game` as the default summary. */
function nameOperation(operation: Json, handler: Named, controller: Named): void {
  const noun = controller.name.replace(/Controller$/, '');
  const [, index = '0', method = ''] = SUFFIX.exec(String(operation.operationId)) ?? [];
  const suffix = `${index === '0' ? '' : Number(index) + 1}${capitalized(method)}`;
  operation.operationId =
    declaredOperationId(handler) ??
    noun[0]!.toLowerCase() + noun.slice(1) + capitalized(handler.name) + suffix;
  const words = handler.name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  if (!operation.summary) operation.summary = capitalized(words);
}

/** Describes the required credential, and returns its scope or permission. */
function describeSecurity(operation: Json) {
  const security = operation.security as Record<string, string[]>[] | undefined;
  const forOperators = security?.some((one) => 'operator' in one);
  const [scope] = (security ?? []).flatMap(({ bearer, operator }) => bearer ?? operator ?? []);
  const inPath = ((operation.parameters ?? []) as Json[]).some(({ name }) => name === 'KEY');
  // The KEY of the path may be the credential.
  if (security && inPath) operation.security = [...security, {}];
  // A handler that declares a 401 describes its own credential.
  const nothing = '401' in (operation.responses as object) ? '' : 'Needs no credential.';
  const says = forOperators
    ? `Needs an operator token${scope ? ` that permits \`${scope}\`` : ''}.`
    : scope
      ? `Needs the scope \`${scope}\`.`
      : security
        ? 'Needs any valid credential.'
        : nothing;
  operation.description = [operation.description, says].filter(Boolean).join('\n\n');
  const credential = forOperators ? ('operator' as const) : security && ('bearer' as const);
  return { scope, credential };
}

/** Removes schemas that only the other document uses. */
function dropUnused(schemas: Record<string, Json>, paths: object): void {
  const used = new Set<string>();
  const visit = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name!)) continue;
      used.add(name!);
      visit(schemas[name!]);
    }
  };
  visit(paths);
  for (const name of Object.keys(schemas)) if (!used.has(name)) delete schemas[name];
}
