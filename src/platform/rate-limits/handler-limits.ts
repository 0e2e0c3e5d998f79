import {
  THROTTLER_BLOCK_DURATION,
  THROTTLER_KEY_GENERATOR,
  THROTTLER_LIMIT,
  THROTTLER_TRACKER,
  THROTTLER_TTL,
} from '@nestjs/throttler/dist/throttler.constants';
import { accessOf } from '../../auth/access';
import { isLimitName, type LimitName } from '../config/rate-limits';
import { isUnlimited, type Named } from '../http/routes';
import type { Guesses, Limit, RateLimitsService } from './rate-limits.service';

/** The limits of a handler's requests. */
export interface HandlerLimits {
  /** The handler takes no credential. */
  open: boolean;
  ofStrangers: readonly Limit[];
  ofCredentials: readonly Limit[];
  misses: Limit | undefined;
  /** Limits guesses at what the handler protects. */
  guesses: Guesses | undefined;
}

/** Reads throttler's decorators. `@Throttle({ misses: {} })`, a name of ours without numbers, applies that limit. */
export function handlerLimits(
  service: RateLimitsService,
  handler: Named,
  controller: Named,
): HandlerLimits | null {
  const { limits, guesses } = service;
  if (!limits || isUnlimited(handler, controller)) return null;
  const access = accessOf(handler);
  const open = access === 'public' || access === 'signed in';
  const asked = new Map<string, Limit>();
  for (const name of namesOf(handler, controller))
    asked.set(name, limitOf(service, name, open, handler, controller));
  const isOn = (name: string) => !isUnlimited(handler, controller, name);
  const standing = (...names: LimitName[]) =>
    names.filter(isOn).map((name) => asked.get(name) ?? limits[name]);
  const own = [...asked].filter(([name]) => !isLimitName(name) && isOn(name)).map(([, limit]) => limit);
  const signsIn = asked.has('sign-in');
  const misses = isOn('misses') ? asked.get('misses') : undefined;
  return {
    open,
    ofStrangers: [...standing(signsIn ? 'sign-in' : 'address'), ...(open ? own : [])],
    ofCredentials: [...standing('credential', 'user'), ...(misses ? [misses] : []), ...(open ? [] : own)],
    misses,
    guesses: signsIn ? guesses?.['sign-in'] : !open || misses ? guesses?.address : undefined,
  };
}

const namesOf = (handler: Named, controller: Named): Set<string> =>
  new Set(
    [controller, handler]
      .flatMap((target) => Reflect.getMetadataKeys(target) as unknown[])
      .filter((key) => typeof key === 'string' && key.startsWith(THROTTLER_LIMIT))
      .map((key) => String(key).slice(THROTTLER_LIMIT.length)),
  );

function limitOf(
  service: RateLimitsService,
  name: string,
  open: boolean,
  handler: Named,
  controller: Named,
): Limit {
  const where = `${controller.name}.${handler.name}`;
  const read = (key: string): unknown =>
    Reflect.getMetadata(key + name, handler) ?? Reflect.getMetadata(key + name, controller);
  for (const key of [THROTTLER_BLOCK_DURATION, THROTTLER_TRACKER, THROTTLER_KEY_GENERATOR])
    if (read(key) !== undefined)
      throw new Error(`@Throttle of ${where} may have limit and ttl, and not ${key.split(':')[1]}`);
  const shared = isLimitName(name) ? service.limits![name] : undefined;
  const [limit, ttl] = [read(THROTTLER_LIMIT), read(THROTTLER_TTL)];
  if (shared && limit === undefined && ttl === undefined) return shared;
  if (typeof limit !== 'number' || typeof ttl !== 'number' || !(limit >= 1 && ttl >= 1))
    throw new Error(`@Throttle of ${where} must have limit and ttl, as numbers`);
  const counts = shared?.counts ?? (open ? 'network' : 'user');
  return service.limit(`${where}:${name}`, name, counts, { count: limit, period_ms: ttl });
}
