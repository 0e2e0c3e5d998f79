import { SetMetadata } from '@nestjs/common';
import { SkipThrottle, Throttle } from '@nestjs/throttler';

const COST = 'gamewharf:request-cost';
const SIGNS_IN = 'gamewharf:signs-in';
const LOOKUP = 'gamewharf:lookup';

/** On a handler: a request counts as this part of one, such as 0.1. The headers count requests of this handler. */
export const RequestCost = (cost: number) => SetMetadata(COST, cost);

export const requestCostOf = (handler: object): number =>
  (Reflect.getMetadata(COST, handler) as number | undefined) ?? 1;

/** On a handler that checks a password: its requests count for `sign-in` in place of `address`. */
export const SignInAttempt = () => SetMetadata(SIGNS_IN, true);

export const signsIn = (handler: object): boolean => Reflect.hasMetadata(SIGNS_IN, handler);

/** On a handler: lookups without a result are limited, for each user, or for the networks around an anonymous client. */
export const LimitFailedLookups = () => SetMetadata(LOOKUP, true);

export const limitsFailedLookups = (handler: object): boolean => Reflect.hasMetadata(LOOKUP, handler);

/** The metadata keys that one of throttler's decorators writes; they are not part of its public API. */
const keysOf = (decorator: ClassDecorator): string[] => {
  class Target {}
  decorator(Target);
  return (Reflect.getMetadataKeys(Target) as string[]).filter((key) => !key.startsWith('design:'));
};

const [SKIP_ALL] = keysOf(SkipThrottle());
const PREFIXES = [
  ...keysOf(Throttle({ '': { limit: 1, ttl: 1, blockDuration: 1 } })),
  ...keysOf(SkipThrottle({ '': true })),
];

/** Whether `@SkipThrottle()` turns off all limits. The handler's own decorator wins over the controller's. */
export const isUnlimited = (handler: object, controller: object): boolean =>
  [handler, controller]
    .map((target) => Reflect.getMetadata(SKIP_ALL!, target) as boolean | undefined)
    .find((skips) => skips !== undefined) ?? false;

const [DEFAULT_LIMIT] = keysOf(Throttle({ default: { limit: 1, ttl: 1 } }));

/** Whether the handler has `@Throttle({ default: ... })`. */
export const hasOwnLimit = (handler: object, controller: object): boolean =>
  Reflect.hasMetadata(DEFAULT_LIMIT!, handler) || Reflect.hasMetadata(DEFAULT_LIMIT!, controller);

/** The names of limits in throttler's decorators. */
export const limitNamesOf = (target: object): string[] =>
  (Reflect.getMetadataKeys(target) as unknown[]).flatMap((key) => {
    const prefix = PREFIXES.find((one) => typeof key === 'string' && key.startsWith(one));
    return prefix === undefined ? [] : [String(key).slice(prefix.length)];
  });
