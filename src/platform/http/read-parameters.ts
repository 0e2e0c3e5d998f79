import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { validateSync, getMetadataStorage, type ValidationError } from 'class-validator';
import type { Request } from 'express';
import { ApiError } from './api-error';
import { Given, givenInBody, givenInQuery } from './parameter-sources';
import {
  asText,
  type Declared,
  type Parameter,
  parametersOf,
  type RequestClass,
  Unreadable,
} from './parameters';

const REQUEST_CLASS = 'gamewharf:request-class';

/** The request class of a handler, for the API description. */
export const requestClassOf = (handler: object): RequestClass | undefined =>
  Reflect.getMetadata(REQUEST_CLASS, handler) as RequestClass | undefined;

/** Reads the parameters of path, query and body into the declared class, or answers 400 with all problems. */
export const Parameters = (): ParameterDecorator => (target, key, index) => {
  const request = (Reflect.getMetadata('design:paramtypes', target, key!) as RequestClass[])[index]!;
  Reflect.defineMetadata(REQUEST_CLASS, request, (target as Record<string | symbol, object>)[key!]!);
  readIntoClass(request)(target, key, index);
};

// Not a pipe, for which Nest creates three promises a parameter.
const readIntoClass = createParamDecorator((request: RequestClass, context: ExecutionContext) =>
  read(request, context.switchToHttp().getRequest<Request>()),
);

function read(request: RequestClass, req: Request): object | Promise<object> {
  const given = givenInQuery(req);
  const path = req.params as Record<string, string>;
  if (req.givenInBody)
    return req.givenInBody.then((inBody) => {
      given.addAll(inBody);
      return readInto(request, given, path);
    });
  if (req.method !== 'POST') return readInto(request, given, path);
  return givenInBody(req, given).then(() => {
    const inHeaders = req.parametersInHeaders;
    for (const name in inHeaders) given.addAgain(name, inHeaders[name]!);
    return readInto(request, given, path);
  });
}

function readInto(
  request: RequestClass,
  given: Given,
  path: Record<string, string>,
): object | Promise<object> {
  const values: unknown[] = [];
  let waits = false;
  const rules = rulesOf(request);
  for (const parameter of rules.parameters) {
    const value = valueOf(parameter, given, path);
    waits ||= value instanceof Promise;
    values.push(value);
  }
  // The reader of HTML is asynchronous.
  if (waits) return Promise.all(values).then((read) => checked(request, rules, given, read));
  return checked(request, rules, given, values);
}

function checked(request: RequestClass, rules: Rules, given: Given, values: unknown[]): object {
  const { parameters, exactlyOneOf, atLeastOneOf, byProperty, requiresSome } = rules;
  const result = new request() as Record<string, unknown>;
  const problems: string[] = [];
  // class-validator takes microseconds even without a rule.
  let mustCheck = requiresSome;
  parameters.forEach((parameter, i) => {
    const value = values[i];
    if (value instanceof Unreadable) problems.push(`${parameter.name} ${value.problem}`);
    else if (value !== undefined) {
      result[parameter.name] = value;
      mustCheck ||= byProperty.has(parameter.name);
    } else if (parameter.required) problems.push(`${parameter.name} is required`);
  });
  if (exactlyOneOf) {
    const chosen = exactlyOneOf.filter((name) => isGiven(name, given));
    if (chosen.length !== 1) problems.push(`exactly one of ${exactlyOneOf.join(', ')} is required`);
  }
  if (atLeastOneOf && !atLeastOneOf.some((name) => isGiven(name, given)))
    problems.push(`at least one of ${atLeastOneOf.join(', ')} is required`);
  if (mustCheck)
    for (const error of validateSync(result, { skipMissingProperties: true }))
      problems.push(...problemsOf(byProperty.get(error.property) ?? [], error));
  if (problems.length > 0) throw new ApiError(400, problems);
  return result;
}

const isGiven = (name: string, given: Given) =>
  given.values.has(name) ||
  given.repeated.has(name) ||
  given.bracketed.has(name) ||
  given.undecodable.has(name);

function valueOf(parameter: Parameter, given: Given, path: Record<string, string>): unknown {
  const { name, in: place, read } = parameter;
  const isNull = given.nulls?.has(name) && parameter.schema.nullable === true;
  if (given.bracketed.has(name)) return new Unreadable('must be a single value');
  if (given.repeated.has(name) || (isNull && given.values.has(name)))
    return new Unreadable('must be given once');
  if (given.undecodable.has(name)) return new Unreadable('must be valid UTF-8 text');
  if (isNull) return null;
  const value = given.values.get(name);
  if (place === 'path') {
    const differs = value !== undefined && asText(value) !== path[name];
    return differs ? new Unreadable('must be given once') : read(path[name]);
  }
  return value === undefined ? undefined : read(value);
}

type Schema = Record<string, unknown>;

/** A class-validator decorator on a property. */
interface Rule {
  name: string;
  constraint: unknown;
  /** Whether the decorator has its own message. */
  hasMessage: boolean;
}

/** The OpenAPI keywords and error texts of decorators; others have class-validator's texts. */
const WORDS: Record<
  string,
  { keywords: (constraint: never) => Schema; problem?: (constraint: never) => string }
> = {
  min: {
    keywords: (minimum: number) => ({ minimum }),
    problem: (minimum: number) => `must be at least ${minimum}`,
  },
  max: {
    keywords: (maximum: number) => ({ maximum }),
    problem: (maximum: number) => `must be at most ${maximum}`,
  },
  isIn: {
    keywords: (values: readonly string[]) => ({ enum: values }),
    problem: (values: readonly string[]) => `must be one of ${values.join(', ')}`,
  },
  matches: { keywords: ({ source }: RegExp) => ({ pattern: source }) },
  isNotEmpty: { keywords: () => ({ minLength: 1 }) },
  minLength: {
    keywords: (minLength: number) => ({ minLength }),
    problem: (minLength: number) =>
      minLength === 1 ? 'must not be empty' : `must be at least ${minLength} characters`,
  },
  maxLength: { keywords: (maxLength: number) => ({ maxLength }) },
  maxCharacters: {
    keywords: (maxLength: number) => ({ maxLength }),
    problem: (maxLength: number) => `must be at most ${maxLength} characters`,
  },
};

interface Rules extends Declared {
  byProperty: ReadonlyMap<string, Rule[]>;
  /** A missing property breaks a rule. */
  requiresSome: boolean;
}

const known = new WeakMap<RequestClass, Rules>();

/** The parameters and rules of a request class, cached. */
function rulesOf(request: RequestClass): Rules {
  let rules = known.get(request);
  if (!rules) {
    const byProperty = new Map<string, Rule[]>();
    const metadata = getMetadataStorage().getTargetValidationMetadatas(request, '', false, false);
    for (const { name = '', propertyName, constraints, message } of metadata) {
      const rule = { name, constraint: constraints?.[0] as unknown, hasMessage: message !== undefined };
      byProperty.set(propertyName, [...(byProperty.get(propertyName) ?? []), rule]);
    }
    const requiresSome = metadata.some(({ name }) => name === 'isDefined');
    rules = { ...parametersOf(request), byProperty, requiresSome };
    known.set(request, rules);
  }
  return rules;
}

export const keywordsOf = (request: RequestClass, property: string): Schema =>
  Object.assign(
    {},
    ...(rulesOf(request).byProperty.get(property) ?? []).map(({ name, constraint }) =>
      WORDS[name]?.keywords(constraint as never),
    ),
  );

/** The error texts of the rules that a property breaks. */
function problemsOf(rules: Rule[], { property, constraints = {} }: ValidationError): string[] {
  const constraintOf = (name: string) => rules.find((rule) => rule.name === name)?.constraint;
  return Object.entries(constraints).map(([name, text]) => {
    const problem = WORDS[name]?.problem;
    if (!problem || rules.some((rule) => rule.name === name && rule.hasMessage)) return text;
    const [min, max] = [constraintOf('min'), constraintOf('max')];
    if ((name === 'min' || name === 'max') && min !== undefined && max !== undefined)
      return `${property} must be between ${String(min)} and ${String(max)}`;
    return `${property} ${problem(constraintOf(name) as never)}`;
  });
}
