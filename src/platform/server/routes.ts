import { RequestMethod, type Type } from '@nestjs/common';
// Nest has no public API that lists routes and parameters. With its own constants, a change of theirs fails the build.
import {
  METHOD_METADATA,
  MODULE_PATH,
  PATH_METADATA,
  ROUTE_ARGS_METADATA,
  VERSION_METADATA,
} from '@nestjs/common/constants';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum';
import { DiscoveryService, MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { ApiResponse } from '@nestjs/swagger';

export const ERRORS = { $ref: '#/components/schemas/Errors' };

/** Describes a specific error response of a handler, with its possible messages. */
export const Fails = (status: number, ...texts: string[]) =>
  ApiResponse({
    status,
    description: texts.map((text) => `\`${text}\``).join(', '),
    content: { 'application/json': { schema: ERRORS, example: { errors: [texts[0]] } } },
  });

/** The prefix of the only routes that accept operator tokens. */
export const OPERATOR_PATH = '/operator/';

/** A handler or its controller. */
export type Named = object & { name: string };
type Controller = Named & { prototype: Record<string, Named> };

interface HandlerOfController {
  controller: Named;
  handler: Named;
  method: string;
  /** Paths with their parameters, such as `/games/:game_id/purchases`. */
  paths: string[];
}

/** All handlers of the application. */
export const listHandlers = (modules: ModulesContainer): HandlerOfController[] =>
  new DiscoveryService(modules).getControllers().flatMap(({ metatype, host }) => {
    const controller = metatype as Controller;
    // The path that RouterModule adds.
    const prefix = Reflect.getMetadata(MODULE_PATH + modules.applicationId, host!.metatype) as unknown;
    const parents = readPaths(controller).map((path) =>
      joinPaths((prefix as string | undefined) ?? '', path),
    );
    return new MetadataScanner()
      .getAllMethodNames(controller.prototype)
      .map((name) => controller.prototype[name]!)
      .filter((handler) => Reflect.hasMetadata(METHOD_METADATA, handler))
      .map((handler) => ({
        controller,
        handler,
        method: RequestMethod[Reflect.getMetadata(METHOD_METADATA, handler) as number]!,
        paths: readPaths(handler).flatMap((path) => parents.map((parent) => joinPaths(parent, path))),
      }));
  });

const readPaths = (target: object) =>
  [Reflect.getMetadata(PATH_METADATA, target) as string | string[]].flat();

const joinPaths = (...parts: string[]) =>
  `/${parts
    .map((part) => part.replace(/^\/|\/$/g, ''))
    .filter(Boolean)
    .join('/')}`;

/** Whether a handler or controller declares a version. */
export const hasVersion = (target: Named) => Reflect.getMetadata(VERSION_METADATA, target) !== undefined;

/** The declared types of a handler's parameters. */
export const readParameterTypes = (handler: Named, controller: Named): unknown[] =>
  (Reflect.getMetadata('design:paramtypes', (controller as Controller).prototype, handler.name) ??
    []) as unknown[];

interface Argument {
  data?: unknown;
  pipes?: unknown[];
}

/** The arguments that decorators such as `@Body()` pass, by the type of the decorator and their index. */
const readArguments = (handler: Named, controller: Named): [key: string, Argument][] =>
  Object.entries(
    (Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, handler.name) ?? {}) as Record<string, Argument>,
  );

/** The names of a handler's parameters that have this pipe. */
export const namesWith = (pipe: Type, handler: Named, controller: Named): (string | undefined)[] =>
  readArguments(handler, controller)
    .filter(([, { pipes = [] }]) => pipes.some((one) => one === pipe || one instanceof pipe))
    .map(([, { data }]) => data as string | undefined);

const { BODY, QUERY, PARAM } = RouteParamtypes;
const VALUES_OF_CLIENTS = new RegExp(`^(?:${BODY}|${QUERY}|${PARAM}):(\\d+)$`);

/** The types of `@Body()`, `@Query()` and `@Param()` without a name, such as a request class. */
export function readTypesOfClients(handler: Named, controller: Named): unknown[] {
  const types = readParameterTypes(handler, controller);
  return readArguments(handler, controller).flatMap(([key, { data }]) => {
    const [, index] = VALUES_OF_CLIENTS.exec(key) ?? [];
    return index === undefined || data !== undefined ? [] : [types[Number(index)]];
  });
}
