/** The parts of an OpenAPI document that the reference page reads. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  items?: Schema;
  description?: string;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  maxItems?: number;
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  oneOf?: Schema[];
  allOf?: Schema[];
  anyOf?: Schema[];
}

export type Schemas = Record<string, Schema>;

export type Content = Record<
  string,
  { schema?: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }
>;

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header' | 'body';
  required?: boolean;
  description?: string;
  schema?: Schema;
  content?: Content;
  example?: unknown;
}

export interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  deprecated?: boolean;
  tags?: string[];
  security?: object[];
  parameters?: Parameter[];
  requestBody?: { content: Content };
  responses: Record<string, { description: string; content?: Content }>;
}

export interface Route {
  method: string;
  path: string;
  operation: Operation;
}

export function listParameters({ parameters = [], requestBody }: Operation): Parameter[] {
  const schema = requestBody?.content['application/x-www-form-urlencoded']?.schema;
  const example = (requestBody?.content['application/json']?.example ?? {}) as Record<string, unknown>;
  const ofBody = Object.entries(schema?.properties ?? {}).map(([name, property]) => ({
    name,
    in: 'body' as const,
    required: schema?.required?.includes(name),
    description: property.description,
    schema: property,
    example: example[name],
  }));
  return [...parameters, ...ofBody];
}

export const parameterSchema = (parameter: Parameter): Schema =>
  parameter.schema ?? Object.values(parameter.content ?? {})[0]?.schema ?? {};

export function createExample(parameter: Parameter): string {
  const example = parameter.example ?? Object.values(parameter.content ?? {})[0]?.example;
  return example === undefined ? '' : typeof example === 'string' ? example : JSON.stringify(example);
}

/**
 * The parameters that a request needs, as lists of names of which one must be set. The key of a list is its
 * first name, whose example completes the request. The list of a required parameter contains only its own
 * name.
 */
export function findAlternatives(
  { description = '' }: Operation,
  parameters: Parameter[],
): Record<string, string[]> {
  const [, list] = /(?:Exactly|At least) one of ([\w, ]+) is required/.exec(description) ?? [];
  const required = parameters.filter((one) => one.required).map(({ name }) => [name]);
  const groups = list === undefined ? required : [...required, list.split(', ')];
  return Object.fromEntries(groups.map((names) => [names[0]!, names]));
}
