import { THROTTLER_SKIP } from '@nestjs/throttler/dist/throttler.constants';

/** Whether `@SkipThrottle` turns the limit off; its name for all limits is `default`. */
export const isUnlimited = (handler: object, controller: object, limit = 'default'): boolean =>
  [handler, controller]
    .map((target) => Reflect.getMetadata(THROTTLER_SKIP + limit, target) as boolean | undefined)
    .find((skips) => skips !== undefined) ?? false;
