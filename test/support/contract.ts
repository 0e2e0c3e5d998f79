import type { OpenAPIObject } from '@nestjs/swagger';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';

interface Operation {
  responses: Record<string, { content?: Record<string, { schema?: object }> }>;
}

/** Holds every answer of every test, and of the fuzzer, against the API's own description. */
export class Contract {
  private readonly ajv: Ajv2020;
  private readonly validators = new Map<string, ValidateFunction>();
  private readonly templates: [RegExp, string][];

  constructor(readonly document: OpenAPIObject) {
    this.ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats(this.ajv);
    this.ajv.addFormat('int64', true);
    this.ajv.addSchema({ ...document, $id: 'api' } as object);
    this.templates = Object.keys(document.paths)
      .sort((a, b) => Number(a.includes('{')) - Number(b.includes('{')))
      .map((path) => [new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`), path]);
  }

  check(method: string, path: string, status: number, type: string, body: unknown): void {
    if (!type.startsWith('application/json')) return;
    const template = this.templates.find(([pattern]) => pattern.test(path.split('?')[0]!))?.[1];
    const operation = template
      ? ((this.document.paths[template] as Record<string, Operation>)[method.toLowerCase()] as
          Operation | undefined)
      : undefined;
    if (status >= 400 && !operation?.responses[status]?.content)
      this.validate('#/components/schemas/Errors', body, `${method} ${template ?? path} ${status}`);
    if (!operation) {
      if (status < 400) throw new Error(`${method} ${path} answers ${status} and is not described`);
      return;
    }
    const answer = operation.responses[status];
    if (status === 400 && (body as { errors?: string[] }).errors?.[0] === 'malformed request') return;
    if (!answer && ![404, 405, 408, 409, 413, 414, 415, 431].includes(status))
      throw new Error(`${method} ${template} answers ${status}, which its description does not list`);
    if (status < 400 && !answer?.content?.['application/json']?.schema)
      throw new Error(`${method} ${template}: the description has no schema for ${status}`);
    const pointer = `#/paths/${template!.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`;
    if (answer?.content) this.validate(pointer, body, `${method} ${template} ${status}`);
  }

  private validate(pointer: string, body: unknown, where: string): void {
    let validator = this.validators.get(pointer);
    if (!validator) {
      validator = this.ajv.compile({ $ref: `api${pointer}` });
      this.validators.set(pointer, validator);
    }
    if (!validator(body))
      throw new Error(
        `${where} is not as described: ${this.ajv.errorsText(validator.errors)}\n${JSON.stringify(body)}`,
      );
  }
}
