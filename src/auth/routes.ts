import { RequestMethod } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants';
import type { ModulesContainer } from '@nestjs/core';
import { OperatorError } from '../platform/config/operator-error';
import { handlersOf, OPERATOR_PATH } from '../platform/http/routes';
import { type Access, accessOf, isForOperators, PAGES } from './access';

export interface Route {
  method: string;
  /** With its parameters, such as `/games/:game_id/purchases`. */
  path: string;
  /** undefined: the handler declares none. */
  access: Access | undefined;
  /** Its controller is one of pages. */
  page: boolean;
  handler: string;
}

export const routesOf = (modules: ModulesContainer): Route[] =>
  handlersOf(modules)
    .flatMap(({ controller, handler }) =>
      pathsOf(handler).flatMap((path) =>
        pathsOf(controller).map((prefix) => ({
          method: RequestMethod[Reflect.getMetadata(METHOD_METADATA, handler) as number]!,
          path: joined(prefix, path),
          access: accessOf(handler, controller),
          page: Reflect.hasMetadata(PAGES, controller),
          handler: `${controller.name}.${handler.name}`,
        })),
      ),
    )
    .toSorted((a, b) => a.path.localeCompare(b.path) || a.method.localeCompare(b.method));

/** Stops the startup if a handler declares no access, or an access that no guard checks. */
export function requireAccess(modules: ModulesContainer): void {
  const routes = routesOf(modules);
  failWith(
    'Declare its access with @Scopes, @AnyCredential or @Public of src/auth/access.ts, or with @OperatorMay',
    routes.filter(({ access }) => access === undefined),
  );
  failWith(
    `Use @OperatorMay for all paths under ${OPERATOR_PATH}, and for no other`,
    routes.filter(({ access, path }) => isForOperators(access!) !== path.startsWith(OPERATOR_PATH)),
  );
  failWith(
    'Use @SignedIn on controllers with @Pages only',
    routes.filter(({ access, page }) => access === 'signed in' && !page),
  );
}

function failWith(problem: string, routes: Route[]): void {
  if (routes.length === 0) return;
  const names = routes.map(({ handler, method, path }) => `${handler} (${method} ${path})`);
  throw new OperatorError(`${problem}: ${names.join(', ')}.`);
}

const pathsOf = (target: object) => [Reflect.getMetadata(PATH_METADATA, target) as string | string[]].flat();

const joined = (...parts: string[]) =>
  `/${parts
    .map((part) => part.replace(/^\/|\/$/g, ''))
    .filter(Boolean)
    .join('/')}`;
