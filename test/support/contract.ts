import type { OpenAPIObject } from '@nestjs/swagger';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { type Body, parseBodyFields, read, type Schema } from './fields';

interface Media {
  schema?: Schema;
  encoding?: Record<string, { contentType?: string }>;
}

interface Operation {
  parameters?: { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<
    string,
    { description: string; content?: Record<string, Media>; headers?: Record<string, Header> }
  >;
}

interface Header {
  $ref?: string;
  required?: boolean;
}

export interface Received {
  status: number;
  body: unknown;
  header: (name: string) => string | null | undefined;
}

/** The required headers of a response, even if the description doesn't list its status. */
const HEADERS_OF_STATUS: Record<number, string[]> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  405: ['Allow'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

interface Found {
  operation: Operation;
  /** The path of the operation in its document, for a JSON pointer. */
  pointer: string;
  name: string;
  template: string;
  document: OpenAPIObject;
}

const FORM = 'application/x-www-form-urlencoded';
const MULTIPART = 'multipart/form-data';
const escaped = (part: string) =>
  part.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D');

/** The schema itself, or the one in the document to which it refers. */
function resolved(document: OpenAPIObject, schema: Schema & { $ref?: string } = {}): Schema {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  return name === undefined ? schema : (document.components!.schemas![name] as Schema);
}

const isRequired = (document: OpenAPIObject, header: Header): boolean | undefined =>
  header.$ref === undefined
    ? header.required
    : isRequired(document, document.components!.headers![header.$ref.split('/').at(-1)!] as Header);

/** Validates every request and response of all tests and of the fuzzer against the API description. */
export class Contract {
  private readonly ajv: Ajv2020;
  private readonly validators = new Map<string, ValidateFunction>();
  private readonly templates: [RegExp, string, number][];
  private readonly documents: OpenAPIObject[];

  /** The public description, and others. */
  constructor(...documents: [OpenAPIObject, ...OpenAPIObject[]]) {
    this.documents = documents;
    this.ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats(this.ajv);
    this.ajv.addFormat('int64', true);
    for (const [i, document] of documents.entries())
      this.ajv.addSchema({ ...document, $id: `api${i}` } as object);
    this.templates = documents
      .flatMap((document, i) => Object.keys(document.paths).map((path) => [path, i] as const))
      .sort(([a], [b]) => Number(a.includes('{')) - Number(b.includes('{')))
      .map(([path, i]) => [
        new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
        path,
        i,
      ]);
  }

  get document(): OpenAPIObject {
    return this.documents[0]!;
  }

  /** The operations of all documents, by name, such as `GET /profile`. */
  get operations(): [string, Operation][] {
    return this.documents.flatMap(({ paths }) =>
      Object.entries(paths).flatMap(([path, item]) =>
        Object.entries(item as Record<string, Operation>).map(([method, operation]): [string, Operation] => [
          `${method.toUpperCase()} ${path}`,
          operation,
        ]),
      ),
    );
  }

  /** Checks that the response is documented, and has its headers. */
  check(method: string, path: string, { status, body, header }: Received): void {
    const found = this.find(method, path);
    const name = found?.name ?? `${method} ${path}`;
    const response = found?.operation.responses[status];
    const isJson = header('content-type')?.startsWith('application/json') ?? false;
    const required = new Set(isJson ? ['X-Request-Id', ...(HEADERS_OF_STATUS[status] ?? [])] : []);
    for (const [of, description] of Object.entries(response?.headers ?? {}))
      if (isRequired(found!.document, description)) required.add(of);
    for (const of of required)
      if (!header(of)) throw new Error(`${name} returns ${status} without the header ${of}`);
    if (!isJson) return;
    if (status >= 400 && !response?.content)
      this.validate('api0#/components/schemas/Errors', body, `${name} ${status}`);
    if (!found) {
      if (status < 400) throw new Error(`${name} returns ${status} and is not documented`);
      return;
    }
    if (status === 400 && (body as { errors?: string[] }).errors?.[0] === 'malformed request') return;
    if (!response && ![404, 405, 408, 409, 413, 414, 415, 431].includes(status))
      throw new Error(`${name} returns ${status}, which its description does not list`);
    const [text = ''] = (body as { errors?: string[] }).errors ?? [];
    // A path that Express does not match is not about an object.
    if (
      status === 404 &&
      response &&
      text !== 'invalid api endpoint' &&
      !response.description.includes(`\`${text}\``)
    )
      throw new Error(`${name} returns 404 with "${text}", which its @Fails does not list`);
    if (status < 400 && !response?.content?.['application/json']?.schema)
      throw new Error(`${name}: the description has no schema for ${status}`);
    const schema = `${found.pointer}/responses/${status}/content/application~1json/schema`;
    if (response?.content) this.validate(schema, body, `${name} ${status}`);
  }

  /** Checks that the request is documented; `body` as passed to fetch. */
  checkRequest(method: string, path: string, type: string, body: Body): void {
    const found = this.find(method, path);
    if (!found) return;
    const { operation, pointer, name, template } = found;
    const [address = '', question = ''] = path.split('?');
    const query = new URLSearchParams(question);
    const inPath = template.split('/').map((part, i) => [part.slice(1, -1), address.split('/')[i]!] as const);
    for (const [i, { name: parameter, in: place, required, schema }] of (
      operation.parameters ?? []
    ).entries()) {
      if (place === 'header') continue;
      const text =
        place === 'path'
          ? decodeURIComponent(new Map(inPath).get(parameter)!)
          : (query.get(parameter) ?? undefined);
      if (text !== undefined)
        this.validate(`${pointer}/parameters/${i}/schema`, read(schema, text), `${name}: ${parameter}`);
      else if (required) throw new Error(`${name}: ${parameter} is missing`);
    }
    if (!operation.requestBody) return;
    // As documented, parameters may also be in the query string.
    const given = parseBodyFields(type, body);
    const { content } = operation.requestBody;
    const sent = type.split(';')[0]!.trim();
    // An empty body may have any type.
    const media = body instanceof FormData ? MULTIPART : (given || !(FORM in content)) && sent ? sent : FORM;
    const described = content[media];
    if (!described) throw new Error(`${name}: ${media} is not described`);
    const { properties } = resolved(found.document, described.schema);
    if (!properties) return;
    const fields: Record<string, unknown> = {};
    for (const [field, value] of [...query, ...(given ?? [])]) {
      const schema = properties[field];
      const isJson = described.encoding?.[field]?.contentType === 'application/json';
      fields[field] =
        schema && typeof value === 'string' && media !== 'application/json'
          ? read(schema, value, isJson)
          : value;
    }
    this.validate(`${pointer}/requestBody/content/${escaped(media)}/schema`, fields, `${name}: body`);
  }

  private find(method: string, path: string): Found | undefined {
    const [, template, index] = this.templates.find(([pattern]) => pattern.test(path.split('?')[0]!)) ?? [];
    if (template === undefined || index === undefined) return undefined;
    const document = this.documents[index]!;
    const verb = method.toLowerCase();
    const operations = document.paths[template] as Record<string, Operation>;
    const operation = operations[verb];
    if (!operation) return undefined;
    const pointer = `api${index}#/paths/${escaped(template)}/${verb}`;
    return { operation, pointer, name: `${method} ${template}`, template, document };
  }

  private validate(pointer: string, value: unknown, where: string): void {
    let validator = this.validators.get(pointer);
    if (!validator) {
      validator = this.ajv.compile({ $ref: pointer });
      this.validators.set(pointer, validator);
    }
    if (!validator(value))
      throw new Error(
        `${where} is not as described: ${this.ajv.errorsText(validator.errors)}\n${JSON.stringify(value)}`,
      );
  }
}
