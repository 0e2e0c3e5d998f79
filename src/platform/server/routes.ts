import type { Type } from '@nestjs/common';
import {
  METHOD_METADATA,
  MODULE_PATH,
  PARAMTYPES_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants';
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

/** Only the routes below it accept operator tokens. */
export const OPERATOR_PATH = '/operator/';

/** A handler or its controller. */
export type Named = object & { name: string };
type Controller = Named & { prototype: Record<string, Named> };

interface HandlerOfController {
  controller: Named;
  handler: Named;
  /** The path that RouterModule adds. */
  prefix: string;
}

/** All handlers of the application. */
export const listHandlers = (modules: ModulesContainer): HandlerOfController[] =>
  new DiscoveryService(modules)
    .getControllers()
    .flatMap(({ metatype, host }) => {
      const controller = metatype as Controller;
      const path = Reflect.getMetadata(MODULE_PATH + modules.applicationId, host!.metatype) as unknown;
      return new MetadataScanner().getAllMethodNames(controller.prototype).map((name) => ({
        controller,
        handler: controller.prototype[name]!,
        prefix: (path as string | undefined) ?? '',
      }));
    })
    .filter(({ handler }) => Reflect.hasMetadata(METHOD_METADATA, handler));

/** The declared types of a handler's parameters. */
export const readParameterTypes = (handler: Named, controller: Named): unknown[] =>
  (Reflect.getMetadata(PARAMTYPES_METADATA, (controller as Controller).prototype, handler.name) ??
    []) as unknown[];

interface Argument {
  data?: string;
  pipes?: unknown[];
}

/** The names of a handler's parameters that have this pipe. */
export const namesWith = (pipe: Type, handler: Named, controller: Named): (string | undefined)[] =>
  Object.values(
    (Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, handler.name) ?? {}) as Record<string, Argument>,
  )
    .filter(({ pipes = [] }) => pipes.some((one) => one === pipe || one instanceof pipe))
    .map(({ data }) => data);
