import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { ApiExtraModels } from '@nestjs/swagger';
import type { Request } from 'express';
import { addValue } from './input-values';
import { asText } from './readers';

export type RequestClass = new () => object;

const REQUEST_CLASS = 'gamewharf:request-class';

/** The request class of a handler, for the API description. */
export const readRequestClass = (handler: object): RequestClass | undefined =>
  Reflect.getMetadata(REQUEST_CLASS, handler) as RequestClass | undefined;

/** Tells the values of `@Params()` from those of other custom decorators. */
export const PARAMETERS = Symbol('parameters');

const parametersDecorator = createParamDecorator(
  (_: typeof PARAMETERS, context: ExecutionContext) =>
    collectParameters(context.switchToHttp().getRequest<Request>()),
  [describe],
);

/** The parameters of a request, in its path, query or body. Like `@Body()`, but clients may send each in either. */
export const Params = () => parametersDecorator(PARAMETERS);

function describe(target: object, key: string | symbol | undefined, index: number): void {
  const request = (Reflect.getMetadata('design:paramtypes', target, key!) as RequestClass[])[index]!;
  const handler = Object.getOwnPropertyDescriptor(target, key!)!;
  Reflect.defineMetadata(REQUEST_CLASS, request, handler.value as object);
  ApiExtraModels(request)(target, key!, handler);
}

function collectParameters(req: Request): Record<string, unknown> {
  const parameters = Object.assign(Object.create(null), req.query) as Record<string, unknown>;
  const body = req.body as Record<string, unknown> | undefined;
  for (const name in body) addValue(parameters, name, body[name]);
  addFixed(parameters, req.params as Record<string, string>);
  addFixed(parameters, req.parametersInHeaders);
  return parameters;
}

/** A value in the path or a header may be repeated elsewhere if it is the same there. */
function addFixed(parameters: Record<string, unknown>, values: Record<string, string> | undefined): void {
  for (const name in values) {
    const other = parameters[name] ?? undefined;
    if (other === undefined || asText(other) === values[name]) parameters[name] = values[name];
    else addValue(parameters, name, values[name]);
  }
}
