import { RequestMethod } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants';
import type { ModulesContainer } from '@nestjs/core';
import { listHandlers } from '../../platform/server/routes';
import { type Access, readAccess, PAGES } from './access';

export interface Route {
  method: string;
  /** Includes its parameters, such as `/games/:game_id/purchases`. */
  path: string;
  /** undefined: the handler declares none. */
  access: Access | undefined;
  /** Its controller is one of pages. */
  page: boolean;
  handler: string;
}

export const listRoutes = (modules: ModulesContainer): Route[] =>
  listHandlers(modules)
    .flatMap(({ controller, handler, prefix }) =>
      readPaths(handler).flatMap((path) =>
        readPaths(controller).map((parent) => ({
          method: RequestMethod[Reflect.getMetadata(METHOD_METADATA, handler) as number]!,
          path: joined(prefix, parent, path),
          access: readAccess(handler, controller),
          page: Reflect.hasMetadata(PAGES, controller),
          handler: `${controller.name}.${handler.name}`,
        })),
      ),
    )
    .toSorted((a, b) => a.path.localeCompare(b.path) || a.method.localeCompare(b.method));

const readPaths = (target: object) =>
  [Reflect.getMetadata(PATH_METADATA, target) as string | string[]].flat();

const joined = (...parts: string[]) =>
  `/${parts
    .map((part) => part.replace(/^\/|\/$/g, ''))
    .filter(Boolean)
    .join('/')}`;
