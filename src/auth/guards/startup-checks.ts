import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { getOptionsToken } from '@nestjs/throttler';
import { plainToInstance } from 'class-transformer';
import { ValidationTypes } from 'class-validator';
import type { Express } from 'express';
import { OperatorError } from '../../platform/errors/operator-error';
import { readRules } from '../../platform/input/parameters';
import { readRequestClass } from '../../platform/input/params.decorator';
import {
  hasVersion,
  listHandlers,
  type Named,
  OPERATOR_PATH,
  readTypesOfClients,
} from '../../platform/server/routes';
import { readLimitNames } from '../../platform/limits/rate-limits.decorators';
import { isForOperators } from '../access/access';
import { type Route, listRoutes } from '../access/routes';

const KNOWN_PATH = '/health/live';

/** Fails the startup if a declaration would have no effect. */
@Injectable()
export class StartupChecks implements OnModuleInit {
  constructor(
    private readonly modules: ModulesContainer,
    private readonly host: HttpAdapterHost,
    @Inject(getOptionsToken()) private readonly limits: { throttlers: { name?: string }[] },
  ) {}

  onModuleInit(): void {
    this.requireOwnPaths();
    const routes = listRoutes(this.modules);
    requireNone(
      'Declare its access with @Scopes, @AnyCredential or @Public of src/auth/access/access.ts, or with @OperatorMay',
      routes.filter(({ access }) => access === undefined).map(describeRoute),
    );
    requireNone(
      `Use @OperatorMay for all paths under ${OPERATOR_PATH}, and for no other`,
      routes
        .filter(({ access, path }) => isForOperators(access!) !== path.startsWith(OPERATOR_PATH))
        .map(describeRoute),
    );
    requireNone(
      'Use @SignedIn on controllers with @Pages only',
      routes.filter(({ access, page }) => access === 'signed in' && !page).map(describeRoute),
    );
    requireNone(
      'Write versions into the paths of controllers, because enableVersioning is not supported',
      this.ofHandlers((...targets) => (targets.some(hasVersion) ? ['a version'] : [])),
    );
    const known = this.limits.throttlers.map(({ name }) => name!);
    requireNone(
      `Name only existing limits in @Throttle and @SkipThrottle (${known.join(', ')})`,
      this.ofHandlers((...targets) =>
        targets.flatMap(readLimitNames).filter((name) => !known.includes(name)),
      ),
    );
    requireNone(
      'Put a validator of class-validator on each property of a request class',
      this.ofHandlers((...targets) =>
        listRequestClasses(...targets).flatMap((request) =>
          unvalidated(request).map((property) => `${request.name}.${property}`),
        ),
      ),
    );
  }

  /**
   * Rejects a global prefix or versions, because unknown paths, operator paths and the legacy API are
   * recognized by their own paths.
   */
  private requireOwnPaths(): void {
    // Commands have no routes.
    if (!this.host.httpAdapter) return;
    const { locals } = this.host.httpAdapter.getInstance<Express>();
    // Nest has no public API that returns the prefix.
    if (locals.listMethods(KNOWN_PATH).length === 0)
      throw new OperatorError(
        `No route has the path ${KNOWN_PATH}. setGlobalPrefix and enableVersioning are not supported: write prefixes and versions into the paths of controllers.`,
      );
  }

  private ofHandlers(problemsOf: (handler: Named, controller: Named) => string[]): string[] {
    return listHandlers(this.modules).flatMap(({ controller, handler }) =>
      [...new Set(problemsOf(handler, controller))].map(
        (problem) => `${problem} in ${controller.name}.${handler.name}`,
      ),
    );
  }
}

const describeRoute = ({ handler, method, path }: Route) => `${handler} (${method} ${path})`;

function requireNone(rule: string, problems: string[]): void {
  if (problems.length > 0) throw new OperatorError(`${rule}: ${problems.join('; ')}.`);
}

type RequestClass = Named & (new () => object);

/** The classes of the parameters that a client sends. */
const listRequestClasses = (handler: Named, controller: Named): RequestClass[] =>
  [readRequestClass(handler), ...readTypesOfClients(handler, controller)].filter(
    (type): type is RequestClass =>
      typeof type === 'function' && ![Object, String, Number, Boolean, Array].includes(type as never),
  );

/**
 * The fields of the class without a validator. An instance has all fields as own properties, even those
 * without a value, because the compiler's target is at least ES2022.
 */
function unvalidated(request: RequestClass, seen = new Set([request])): string[] {
  const rules = readRules(request);
  const validated = new Set(rules.map(({ propertyName }) => propertyName));
  const nested = rules
    .filter(({ type }) => type === ValidationTypes.NESTED_VALIDATION)
    .flatMap(({ propertyName }) => {
      const type = findNestedClass(request, propertyName);
      if (!type || seen.has(type)) return [];
      return unvalidated(type, seen.add(type)).map((property) => `${propertyName}.${property}`);
    });
  return [...Object.keys(new request()).filter((property) => !validated.has(property)), ...nested];
}

/** The class that @Type declares, which class-transformer doesn't expose. */
function findNestedClass(request: RequestClass, property: string): RequestClass | undefined {
  const instance = plainToInstance(request, { [property]: {} }) as Record<string, object | undefined>;
  const type = instance[property]?.constructor as RequestClass | undefined;
  return type === Object ? undefined : type;
}
