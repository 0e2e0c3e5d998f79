import 'reflect-metadata';
import {
  readBoolean,
  readEmail,
  readIdList,
  readInteger,
  readSelector,
  readText,
  type Reader,
} from './readers';

/** A parameter of a request class. */
export interface Parameter {
  name: string;
  in: 'path' | 'request';
  required: boolean;
  /** A guard may read it from a header. */
  mayBeInHeader: boolean;
  read: Reader<unknown>;
  /** The keywords of its kind; class-validator's decorators add the others. `nullable`: null clears it. */
  schema: Record<string, unknown>;
  description: string;
}

interface Declared {
  parameters: Parameter[];
  exactlyOneOf?: string[];
}

const declared = new WeakMap<object, Declared>();

function declarationOf(prototype: object): Declared {
  let own = declared.get(prototype);
  if (!own) {
    const parent = Object.getPrototypeOf(prototype) as object | null;
    const inherited = parent && parent !== Object.prototype ? declarationOf(parent) : undefined;
    own = { parameters: [...(inherited?.parameters ?? [])], exactlyOneOf: inherited?.exactlyOneOf };
    declared.set(prototype, own);
  }
  return own;
}

export const parametersOf = (request: abstract new () => object): Declared =>
  declarationOf(request.prototype as object);

interface Options {
  in?: 'path';
  required?: boolean;
  mayBeInHeader?: boolean;
  default?: unknown;
  example?: unknown;
}

/** Creates the decorator for a kind of parameter. */
export const parameter =
  (read: Reader<unknown>, schema: Record<string, unknown>) =>
  (
    description: string,
    { in: place, required, mayBeInHeader = false, ...more }: Options = {},
  ): PropertyDecorator =>
  (prototype, name) => {
    declarationOf(prototype).parameters.push({
      name: String(name),
      in: place ?? 'request',
      required: required ?? place === 'path',
      mayBeInHeader,
      read,
      schema: { ...schema, ...more },
      description,
    });
  };

export const IntegerParameter = parameter(readInteger, { type: 'integer', format: 'int64', minimum: 0 });
export const BooleanParameter = parameter(readBoolean, { type: 'boolean' });
export const TextParameter = parameter(readText, { type: 'string' });
export const SelectorParameter = parameter(readSelector, { type: 'string', minLength: 1 });
export const EmailParameter = parameter(readEmail, { type: 'string', minLength: 1 });
export const IdListParameter = parameter(readIdList, {
  type: 'array',
  items: { type: 'integer', format: 'int64', minimum: 0 },
  maxItems: 500,
  uniqueItems: true,
});

/** On a request class: exactly one of these parameters is required. */
export const ExactlyOneOf =
  (...names: string[]): ClassDecorator =>
  (request) => {
    declarationOf(request.prototype as object).exactlyOneOf = names;
  };
