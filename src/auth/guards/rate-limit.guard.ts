import { type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import {
  InjectThrottlerOptions,
  InjectThrottlerStorage,
  ThrottlerGuard,
  type ThrottlerModuleOptions,
  type ThrottlerRequest,
  ThrottlerStorage,
} from '@nestjs/throttler';
import type { Request, Response } from 'express';
import {
  isUnlimited,
  readLimitNames,
  readRequestCost,
  signsIn,
} from '../../platform/limits/rate-limits.decorators';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';
import type { RateLimitKeys } from '../../platform/server/request';
import { type Credential, rateLimitKeys } from '../access/credential';

const LIMIT_ORDER = ['default', 'sign-in', 'address', 'credential', 'user'];

/** Counts a request for its credential and user, or for its IP address if no credential is required. */
@Injectable()
export class RateLimitGuard extends ThrottlerGuard {
  /** Whether a handler or its controller has a decorator of throttler. Most have none. */
  private readonly decorated = new WeakMap<object, boolean>();

  constructor(
    @InjectThrottlerOptions() options: ThrottlerModuleOptions,
    @InjectThrottlerStorage() storage: ThrottlerStorage,
    private readonly limits: RateLimitsService,
  ) {
    super(options, storage, new Reflector());
  }

  override async onModuleInit(): Promise<void> {
    await super.onModuleInit();
    // Throttler sorts limits by period. A request over a narrow limit must not count toward a wider one.
    this.throttlers.sort((a, b) => LIMIT_ORDER.indexOf(a.name!) - LIMIT_ORDER.indexOf(b.name!));
  }

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== 'http') return true;
    const { req, res } = this.getRequestResponse(context) as { req: Request; res: Response };
    const [handler, controller] = [context.getHandler(), context.getClass()];
    // A checkout's request rate depends on its sales, so operators have only the concurrency limits.
    if (!this.limits.rates || req.operator || isUnlimited(handler, controller)) return true;
    const isSignIn = signsIn(handler);
    if (isSignIn) this.limits.check('sign-in', req, res);
    const keys = (req.rateLimitKeys = collectKeys(req, isSignIn));
    // The headers show the limits of the credential, not of the IP address, where the request is refunded.
    res.requestsLeft = Infinity;
    if (this.isDecorated(handler, controller)) return super.canActivate(context);
    // Throttler would read six decorators of each limit for each request.
    const cost = readRequestCost(handler);
    for (const { name, limit, ttl } of this.throttlers as { name: string; limit: number; ttl: number }[])
      if (keys[name] !== undefined && limit !== Infinity)
        await this.limits.charge(res, { name, key: `${name}:${keys[name]}`, limit: limit / cost, ttl });
    return true;
  }

  private isDecorated(handler: object, controller: object): boolean {
    let isDecorated = this.decorated.get(handler);
    if (isDecorated === undefined) {
      isDecorated = [handler, controller].some((target) => readLimitNames(target).length > 0);
      this.decorated.set(handler, isDecorated);
    }
    return isDecorated;
  }

  protected override async handleRequest({
    context,
    limit,
    ttl,
    throttler,
    getTracker,
    generateKey,
  }: ThrottlerRequest): Promise<boolean> {
    const { req, res } = this.getRequestResponse(context) as { req: Request; res: Response };
    const name = throttler.name!;
    const [handler, controller] = [context.getHandler(), context.getClass()];
    const shared = generateKey(context, await getTracker(req, context), name);
    const isShared = limit === throttler.limit && ttl === throttler.ttl;
    await this.limits.charge(res, {
      name,
      key: isShared ? shared : `${controller.name}.${handler.name}:${shared}`,
      limit: limit / readRequestCost(handler),
      ttl,
    });
    return true;
  }

  protected override generateKey(_context: ExecutionContext, tracker: string, name: string): string {
    return `${name}:${tracker}`;
  }
}

function collectKeys(req: Request, isSignIn: boolean): RateLimitKeys {
  if (req.user) return rateLimitKeys(req.user as Credential);
  const { network } = req.inFlight.client;
  return isSignIn ? { 'sign-in': network, default: network } : { address: network, default: network };
}
