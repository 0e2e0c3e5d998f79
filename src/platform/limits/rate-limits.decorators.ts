import { SetMetadata } from '@nestjs/common';

const COST = 'gamewharf:request-cost';
const SIGNS_IN = 'gamewharf:signs-in';
const LOOKUP = 'gamewharf:lookup';

/** On a handler: a request counts as this fraction of one, such as 0.1. The headers count requests of this handler. */
export const RequestCost = (cost: number) => SetMetadata(COST, cost);

export const requestCostOf = (handler: object): number =>
  (Reflect.getMetadata(COST, handler) as number | undefined) ?? 1;

/** On a handler that checks a password: its requests count for `sign-in` instead of `address`. */
export const SignInAttempt = () => SetMetadata(SIGNS_IN, true);

export const signsIn = (handler: object): boolean => Reflect.hasMetadata(SIGNS_IN, handler);

/** On a handler that requires a credential: a user's failed lookups are limited. */
export const LimitFailedLookups = () => SetMetadata(LOOKUP, true);

export const limitsFailedLookups = (handler: object): boolean => Reflect.hasMetadata(LOOKUP, handler);

// What throttler's decorators write. Its public API doesn't export the names; test/api/throttle.test.ts notices a
// change.
const [SKIP, LIMIT] = ['THROTTLER:SKIP', 'THROTTLER:LIMIT'];

/** Whether `@SkipThrottle()` disables all limits. The handler's own decorator overrides the controller's. */
export const isUnlimited = (handler: object, controller: object): boolean =>
  ((Reflect.getMetadata(`${SKIP}default`, handler) ?? Reflect.getMetadata(`${SKIP}default`, controller)) as
    boolean | undefined) ?? false;

/** Whether the handler has `@Throttle({ default: ... })`. */
export const hasOwnLimit = (...targets: object[]): boolean =>
  targets.some((target) => Reflect.hasMetadata(`${LIMIT}default`, target));

/** The names of limits in throttler's decorators. */
export const limitNamesOf = (target: object): string[] =>
  Reflect.getMetadataKeys(target)
    .map((key) => /^THROTTLER:(?:SKIP|LIMIT)(.*)/.exec(String(key))?.[1])
    .filter((name) => name !== undefined);
