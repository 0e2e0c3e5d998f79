import { SkipThrottle } from '@nestjs/throttler';

/** No rate limit at all: for those who watch over the service. */
export const Unlimited = () => SkipThrottle();

export const isUnlimited = (handler: object, controller: object): boolean =>
  [handler, controller].some((target) => Reflect.getMetadata('THROTTLER:SKIPdefault', target) === true);
