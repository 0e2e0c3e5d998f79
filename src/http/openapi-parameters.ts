import { exampleOf } from './openapi-examples';
import { type Parameter, parametersOf } from './parameters';
import { keywordsOf } from './rules';

type Json = Record<string, unknown>;
type RequestClass = abstract new () => object;

/** The parameters of a request class, with the keywords of their class-validator decorators. */
const described = (request: RequestClass): Parameter[] =>
  parametersOf(request).parameters.map((parameter) => ({
    ...parameter,
    schema: { ...parameter.schema, ...keywordsOf(request, parameter.name) },
  }));

const isList = ({ schema }: Parameter) => schema.type === 'array';

interface Place {
  /** Parameters that are not in the path are in the body. */
  inBody: boolean;
  /** They may not be in the query string. */
  bodyOnly: boolean;
}

export function describeParameters(
  operation: Json,
  request: RequestClass | undefined,
  { inBody, bodyOnly }: Place,
): void {
  const parameters = request ? described(request) : [];
  const ofBody = inBody ? parameters.filter((one) => one.in === 'request') : [];
  describeAddress(
    operation,
    parameters.filter((one) => !ofBody.includes(one)),
  );
  const exactlyOneOf = request && parametersOf(request).exactlyOneOf;
  if (exactlyOneOf)
    operation.description = [operation.description, `Exactly one of ${exactlyOneOf.join(', ')} is required.`]
      .filter(Boolean)
      .join('\n\n');
  if (ofBody.length > 0) operation.requestBody = requestBodyOf(ofBody, bodyOnly);
}

function describeAddress(operation: Json, parameters: Parameter[]): void {
  const declared = (operation.parameters ?? []) as Json[];
  for (const one of declared) one.example ??= exampleOf((one.schema ?? {}) as Json, {}, String(one.name));
  const names = new Set(parameters.map(({ name }) => name));
  operation.parameters = [
    ...declared.filter(({ name }) => !names.has(String(name))),
    ...parameters.map(({ name, in: place, required, schema, description }) => ({
      name,
      in: place === 'path' ? 'path' : 'query',
      required,
      description,
      example: exampleOf(schema, {}, name),
      schema,
    })),
  ];
}

function requestBodyOf(parameters: Parameter[], bodyOnly: boolean): Json {
  const required = parameters.filter((one) => one.required && !one.mayBeInHeader).map(({ name }) => name);
  const lists = parameters.filter(isList).map(({ name }) => name);
  const objectOf = (schemaOf: (parameter: Parameter) => Json) => ({
    type: 'object',
    properties: Object.fromEntries(
      parameters.map((one) => [one.name, { ...schemaOf(one), description: one.description }]),
    ),
    ...(required.length > 0 ? { required } : {}),
  });
  const json = { contentType: 'application/json' };
  return {
    required: required.length > 0,
    description: bodyOnly
      ? 'The parameters stand in the body, and nowhere else: addresses are written into logs.'
      : 'The parameters may also stand in the query string.',
    content: {
      'application/x-www-form-urlencoded': {
        schema: objectOf(({ schema: { nullable: _, ...schema } }) => schema),
        ...(lists.length > 0 && { encoding: Object.fromEntries(lists.map((name) => [name, json])) }),
      },
      'application/json': {
        schema: objectOf(({ schema, required }) => ({ ...schema, nullable: !required })),
        example: Object.fromEntries(
          parameters.map(({ name, schema }) => [name, exampleOf(schema, {}, name)]),
        ),
      },
      'multipart/form-data': {
        // An array would be one part an item: a list is one part that holds a JSON text.
        schema: objectOf((one) => {
          const { nullable: _, ...schema } = one.schema;
          return isList(one)
            ? { type: 'string', contentMediaType: 'application/json', contentSchema: schema }
            : schema;
        }),
      },
    },
  };
}
