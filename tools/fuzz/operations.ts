export interface Schema {
  type?: string | string[];
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  enum?: unknown[];
  pattern?: string;
  description?: string;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'body' | 'header';
  required: boolean;
  schema: Schema;
}

export interface Operation {
  /** The method and path, such as `GET /profile`. */
  name: string;
  method: string;
  path: string;
  parameters: Parameter[];
  exactlyOneOf: string[];
  statuses: Set<number>;
  /** The media type of a successful response. */
  type: string;
  /** Whether the operation needs a user's credential, and with which scope. */
  secured: boolean;
  scope: string | undefined;
}

interface Described {
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; schema?: Schema; content?: Content }[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Record<string, unknown> }>;
  security?: Record<string, string[]>[];
}

type Content = Record<
  string,
  { schema: Schema & { properties?: Record<string, Schema>; required?: string[] } }
>;

export interface Document {
  paths: Record<string, Record<string, Described>>;
}

/** The operations, as the API describes itself. */
export function readOperations(document: Document): Map<string, Operation> {
  const found = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, described]) => readOperation(method.toUpperCase(), path, described)),
  );
  return new Map(found.map((operation) => [operation.name, operation]));
}

function readOperation(method: string, path: string, described: Described): Operation {
  const parameters = (described.parameters ?? []).map((one) => ({
    name: one.name,
    in: one.in as Parameter['in'],
    required: one.required ?? false,
    schema: one.schema ?? one.content?.['application/json']?.schema ?? {},
  }));
  const { properties = {}, required = [] } =
    described.requestBody?.content['application/x-www-form-urlencoded']?.schema ?? {};
  for (const [name, schema] of Object.entries(properties))
    parameters.push({ name, in: 'body', required: required.includes(name), schema });
  const scopes = described.security?.flatMap(({ bearer }) => bearer ?? []);
  return {
    name: `${method} ${path}`,
    method,
    path,
    parameters,
    exactlyOneOf:
      /Exactly one of ([\w, ]+) is required\./.exec(described.description ?? '')?.[1]?.split(', ') ?? [],
    type: Object.keys(described.responses['200']?.content ?? {})[0] ?? 'application/json',
    statuses: new Set(Object.keys(described.responses).map(Number)),
    secured: described.security?.some((one) => 'bearer' in one) ?? false,
    scope: scopes?.[0],
  };
}
