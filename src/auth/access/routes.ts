import type { ModulesContainer } from '@nestjs/core';
import { listHandlers } from '../../platform/server/routes';
import { type Access, readAccess, PAGES } from './access';

export interface Route {
  method: string;
  /** The path with its parameters, such as `/games/:game_id/purchases`. */
  path: string;
  /** Undefined if the handler declares no access. */
  access: Access | undefined;
  /** Whether the controller serves pages. */
  page: boolean;
  handler: string;
}

export const listRoutes = (modules: ModulesContainer): Route[] =>
  listHandlers(modules)
    .flatMap(({ controller, handler, method, paths }) =>
      paths.map((path) => ({
        method,
        path,
        access: readAccess(handler, controller),
        page: Reflect.hasMetadata(PAGES, controller),
        handler: `${controller.name}.${handler.name}`,
      })),
    )
    .toSorted((a, b) => a.path.localeCompare(b.path) || a.method.localeCompare(b.method));
