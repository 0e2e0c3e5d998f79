import { findChoiceProblem, findReader } from '../input/parameters';
import type { RequestClass } from '../input/params.decorator';

export type Json = Record<string, unknown>;

interface Parameter {
  name: string;
  required: boolean;
  description: unknown;
  schema: Json;
  example?: unknown;
}

interface Place {
  path: string;
  /** Parameters that are not in the path are in the body. */
  inBody: boolean;
  /** The classes of the handler's parameters. */
  types: (RequestClass | undefined)[];
  /** The names of the handler's parameters with ParseIntPipe. */
  integers: (string | undefined)[];
}

/**
 * Describes the parameters of a request class from the schema that Swagger generated for it. Swagger itself supports a
 * class for either the query or the body, and one media type; here a class may include path parameters too, and a body
 * has three media types.
 */
export function describeParameters(
  operation: Json,
  request: RequestClass | undefined,
  schemas: Record<string, Json>,
  { path, inBody, types, integers }: Place,
): void {
  const declared = ((operation.parameters ?? []) as (Json & Parameter)[]).map(
    ({ schema: generated, example, ...one }): Json & { name: string } => {
      // Swagger knows only the type of the argument, which is Number.
      const schema: Json = { ...generated, ...(integers.includes(one.name) && { type: 'integer' }) };
      const isReadList = types.some((type) => type && findReader(type, one.name)?.isList);
      return { ...one, ...inQuery({ name: one.name, schema, example }, isReadList && one.in === 'query') };
    },
  );
  operation.parameters = declared;
  if (!request) return describeBody(operation, types, schemas);
  const isInPath = ({ name }: Parameter) => path.includes(`{${name}}`);
  const all = parametersIn(schemas[request.name]!);
  const ofBody = inBody ? all.filter((one) => !isInPath(one)) : [];
  const others = all.filter((one) => !ofBody.includes(one));
  const names = new Set(others.map(({ name }) => name));
  operation.parameters = [
    ...declared.filter(({ name }) => !names.has(name)),
    ...others.map((one) => ({
      name: one.name,
      in: isInPath(one) ? 'path' : 'query',
      required: one.required,
      description: one.description,
      ...inQuery(one, isList(one)),
    })),
  ];
  const choice = findChoiceProblem(request);
  if (choice)
    operation.description = [operation.description, `${choice[0]!.toUpperCase()}${choice.slice(1)}.`]
      .filter(Boolean)
      .join('\n\n');
  // A handler that accepts parameters only in the body declares that with @ApiBody.
  const { description = 'Parameters may also be sent in the query string.' } = (operation.requestBody ??
    {}) as { description?: string };
  if (ofBody.length > 0) operation.requestBody = describeRequestBody(ofBody, description);
}

/** A list is one JSON text. Without a media type, it would be described as a repeated name. */
function inQuery(
  { name, schema, example }: Pick<Parameter, 'name' | 'schema' | 'example'>,
  isJson: boolean,
): Json {
  const described = { example: example ?? createExample(schema, {}, name), schema };
  return isJson ? { content: { 'application/json': described } } : described;
}

/** Adds the forms to the class of Nest's `@Body()`, which Swagger describes as JSON only. */
function describeBody(operation: Json, types: Place['types'], schemas: Record<string, Json>): void {
  const { content } = (operation.requestBody ?? {}) as { content?: Record<string, { schema?: Json }> };
  const reference = content?.['application/json']?.schema?.$ref;
  const request = types.find((type) => type && reference === `#/components/schemas/${type.name}`);
  if (!request) return;
  const parameters = parametersIn(schemas[request.name]!);
  // A form has only texts, which class-validator's decorators don't convert.
  if (
    parameters.length > 0 &&
    parameters.every(({ name, schema }) => schema.type === 'string' || findReader(request, name))
  )
    operation.requestBody = describeRequestBody(parameters, 'Send the parameters in the body.');
}

const parametersIn = ({ properties = {}, required = [] }: Json): Parameter[] =>
  Object.entries(properties as Record<string, Json>).map(([name, { description, type, ...schema }]) => ({
    name,
    required: (required as string[]).includes(name),
    description,
    // Only JSON has null.
    schema: type === undefined ? schema : { type: [type].flat()[0], ...schema },
  }));

const orNull = (schema: Json): Json =>
  schema.type === undefined
    ? { anyOf: [schema, { type: 'null' }] }
    : {
        ...schema,
        type: [schema.type, 'null'],
        ...(Array.isArray(schema.enum) && { enum: [...(schema.enum as unknown[]), null] }),
      };

/** One or several IDs are a list, too: a form contains the JSON text of either. */
const isList = ({ schema }: Parameter) => schema.type === 'array' || 'oneOf' in schema;

function describeRequestBody(parameters: Parameter[], description: string): Json {
  const required = parameters.filter((one) => one.required).map(({ name }) => name);
  const lists = parameters.filter(isList).map(({ name }) => name);
  const objectSchema = (toSchema: (parameter: Parameter) => Json) => ({
    type: 'object',
    properties: Object.fromEntries(
      parameters.map((one) => [one.name, { ...toSchema(one), description: one.description }]),
    ),
    ...(required.length > 0 ? { required } : {}),
  });
  const json = { contentType: 'application/json' };
  return {
    required: required.length > 0,
    description,
    content: {
      'application/x-www-form-urlencoded': {
        schema: objectSchema(({ schema }) => schema),
        ...(lists.length > 0 && { encoding: Object.fromEntries(lists.map((name) => [name, json])) }),
      },
      'application/json': {
        schema: objectSchema(({ schema, required }) => (required ? schema : orNull(schema))),
        example: Object.fromEntries(
          parameters.map(({ name, schema }) => [name, createExample(schema, {}, name)]),
        ),
      },
      'multipart/form-data': {
        // An array would be one part per item: a list is one part with a JSON text.
        schema: objectSchema((one) =>
          isList(one)
            ? { type: 'string', contentMediaType: 'application/json', contentSchema: one.schema }
            : one.schema,
        ),
      },
    },
  };
}

const BY_FORMAT: Record<string, unknown> = {
  'date-time': '2024-05-06T07:08:09Z',
  uri: 'https://gamewharf.example/',
};

const BY_NAME: Record<string, unknown> = {
  email: 'azure-bison@example.net',
  game_id: 1,
  collection_id: 1,
  user_id: 2,
  source: 'card',
  title: 'Games for a train ride',
  download_key: 'm3xYY1CD6PtRvIFTFfH6rsZl',
  KEY: 'key',
  key: 'm3xYY1CD6PtRvIFTFfH6rsZl',
  blurb: '<p>The best of its year.</p>',
  description: '<p>Games for a rainy day.</p>',
};

/** An example of the schema: from the examples of its properties, or a plausible value. */
export function createExample(schema: Json, schemas: Record<string, Json>, name = ''): unknown {
  if (schema.example !== undefined) return schema.example;
  if (typeof schema.$ref === 'string')
    return createExample(schemas[schema.$ref.split('/').at(-1)!]!, schemas, name);
  for (const choice of ['allOf', 'oneOf', 'anyOf'])
    if (Array.isArray(schema[choice])) return createExample((schema[choice] as Json[])[0]!, schemas, name);
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const type = Array.isArray(schema.type) ? (schema.type as string[])[0] : schema.type;
  if (type === 'object')
    return Object.fromEntries(
      Object.entries((schema.properties ?? {}) as Record<string, Json>).map(([key, property]) => [
        key,
        createExample(property, schemas, key),
      ]),
    );
  if (type === 'array') return [createExample(schema.items as Json, schemas, name)];
  if (typeof schema.format === 'string' && schema.format in BY_FORMAT) return BY_FORMAT[schema.format];
  if (name in BY_NAME) return BY_NAME[name];
  if (type === 'integer' || type === 'number') return Math.max(1, Number(schema.minimum ?? 1));
  if (type === 'boolean') return true;
  return name === '' ? 'text' : name.replaceAll('_', ' ');
}
