import { type ArgumentMetadata, Injectable, type PipeTransform } from '@nestjs/common';
import { getMetadataStorage, validateSync } from 'class-validator';
import type { Request } from 'express';
import { Failure } from './failure';
import { type Parameter, parametersOf } from './parameters';
import { Given, givenInBody, givenInQuery } from './parameter-sources';
import { Unreadable } from './readers';

type RequestClass = new () => object;

/** Turns a request into its request class, or into a 400 that lists all that is wrong. */
@Injectable()
export class ParametersPipe implements PipeTransform {
  transform(value: unknown, { metatype, type }: ArgumentMetadata): unknown {
    if (type !== 'custom' || !metatype || !isRequest(value)) return value;
    const request = metatype as RequestClass;
    if (parametersOf(request).parameters.length === 0) return value;
    const given = givenInQuery(value);
    if (value.method !== 'POST' && !value.parametersInBody)
      return readInto(request, given, value.params as Record<string, string>);
    return givenInBody(value, given).then(() =>
      readInto(request, given, value.params as Record<string, string>),
    );
  }
}

const isRequest = (value: unknown): value is Request =>
  typeof value === 'object' && value !== null && 'rawHeaders' in value;

function readInto(request: RequestClass, given: Given, path: Record<string, string>): object {
  const { parameters, exactlyOneOf } = parametersOf(request);
  const result = new request() as Record<string, unknown>;
  const problems: string[] = [];
  for (const parameter of parameters) {
    const value = valueOf(parameter, given, path);
    if (value instanceof Unreadable) problems.push(`${parameter.name} ${value.problem}`);
    else if (value !== undefined) result[parameter.name] = value;
    else if (parameter.required) problems.push(`${parameter.name} is required`);
  }
  if (exactlyOneOf) {
    const chosen = exactlyOneOf.filter((name) => isGiven(name, given));
    if (chosen.length !== 1) problems.push(`exactly one of ${exactlyOneOf.join(', ')} is required`);
  }
  if (hasRules(request))
    for (const { property, constraints } of validateSync(result))
      if (!problems.some((problem) => problem.startsWith(`${property} `)))
        problems.push(...Object.values(constraints ?? {}));
  if (problems.length > 0) throw new Failure(400, problems);
  return result;
}

const isGiven = (name: string, given: Given) =>
  given.values.has(name) ||
  given.repeated.has(name) ||
  given.bracketed.has(name) ||
  given.undecodable.has(name);

function valueOf({ name, in: place, read }: Parameter, given: Given, path: Record<string, string>): unknown {
  if (given.bracketed.has(name)) return new Unreadable('must be a single value');
  if (given.repeated.has(name) || (place === 'path' && isGiven(name, given)))
    return new Unreadable('must be given once');
  if (given.undecodable.has(name)) return new Unreadable('must be valid UTF-8 text');
  if (place === 'path') return read(path[name]);
  return given.values.has(name) ? read(given.values.get(name)) : undefined;
}

const rules = new WeakMap<RequestClass, boolean>();

// class-validator costs microseconds even where it has nothing to check.
function hasRules(request: RequestClass): boolean {
  let known = rules.get(request);
  if (known === undefined) {
    known = getMetadataStorage().getTargetValidationMetadatas(request, '', false, false).length > 0;
    rules.set(request, known);
  }
  return known;
}
