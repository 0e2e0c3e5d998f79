import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { validateSync } from 'class-validator';
import type { Request } from 'express';
import { Failure } from './failure';
import { type Parameter, parametersOf } from './parameters';
import { Given, givenInBody, givenInQuery } from './parameter-sources';
import { asText, Unreadable } from './readers';
import { problemsOf, rulesOf } from './rules';

type RequestClass = new () => object;

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
  for (const parameter of parametersOf(request).parameters) {
    const value = valueOf(parameter, given, path);
    waits ||= value instanceof Promise;
    values.push(value);
  }
  // The reader of HTML is asynchronous.
  if (waits) return Promise.all(values).then((read) => checked(request, given, read));
  return checked(request, given, values);
}

function checked(request: RequestClass, given: Given, values: unknown[]): object {
  const { parameters, exactlyOneOf } = parametersOf(request);
  const { byProperty, requiresSome } = rulesOf(request);
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
  if (mustCheck)
    for (const error of validateSync(result, { skipMissingProperties: true }))
      problems.push(...problemsOf(request, error));
  if (problems.length > 0) throw new Failure(400, problems);
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
