import { SetMetadata } from '@nestjs/common';
import { SkipThrottle, Throttle } from '@nestjs/throttler';

const COST = 'gamewharf:request-cost';
const SIGNS_IN = 'gamewharf:signs-in';
const LOOKUP = 'gamewharf:lookup';

/**
 * Counts a request to this handler as a fraction of one, such as 0.1. The headers count requests to this
 * handler.
 */
export const RequestCost = (cost: number) => SetMetadata(COST, cost);

export const readRequestCost = (handler: object): number =>
  (Reflect.getMetadata(COST, handler) as number | undefined) ?? 1;

/** Marks a handler that checks a password: its requests count for `sign-in` instead of `address`. */
export const SignInAttempt = () => SetMetadata(SIGNS_IN, true);

export const signsIn = (handler: object): boolean => Reflect.hasMetadata(SIGNS_IN, handler);

/** Limits a user's failed lookups. The handler must require a credential. */
export const LimitFailedLookups = () => SetMetadata(LOOKUP, true);

export const limitsFailedLookups = (handler: object): boolean => Reflect.hasMetadata(LOOKUP, handler);

/** The metadata that throttler's decorators write, whose names it doesn't export; without the name of the limit. */
function decorateAndRead(decorator: ClassDecorator, value: unknown): string {
  class Decorated {}
  decorator(Decorated);
  const key = Reflect.getMetadataKeys(Decorated).find((key) => Reflect.getMetadata(key, Decorated) === value);
  return String(key).slice(0, -'default'.length);
}

const SKIP = decorateAndRead(SkipThrottle(), true);
const LIMIT = decorateAndRead(Throttle({ default: { limit: 1, ttl: 2 } }), 1);

/** Whether `@SkipThrottle()` disables all limits. The handler's own decorator overrides the controller's. */
export const isUnlimited = (handler: object, controller: object): boolean =>
  ((Reflect.getMetadata(`${SKIP}default`, handler) ?? Reflect.getMetadata(`${SKIP}default`, controller)) as
    boolean | undefined) ?? false;

/** Whether the handler has `@Throttle({ default: ... })`. */
export const hasOwnLimit = (...targets: object[]): boolean =>
  targets.some((target) => Reflect.hasMetadata(`${LIMIT}default`, target));

/** The names of limits in throttler's decorators. */
export const readLimitNames = (target: object): string[] =>
  Reflect.getMetadataKeys(target)
    .map(String)
    .flatMap((key) =>
      [SKIP, LIMIT].filter((prefix) => key.startsWith(prefix)).map((prefix) => key.slice(prefix.length)),
    );
