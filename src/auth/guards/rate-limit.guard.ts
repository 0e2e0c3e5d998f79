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
import { ApiError } from '../../platform/errors/api-error';
import {
  isUnlimited,
  limitNamesOf,
  requestCostOf,
  signsIn,
} from '../../platform/limits/rate-limits.decorators';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';
import { accessOf } from '../access/access';
import { BearerStrategy } from './bearer.strategy';
import { type Credential, trackersOf } from '../access/credential';

const ORDER = ['default', 'sign-in', 'address', 'credential', 'user'];

/** Throttler reads six decorators of each limit at every request. Most handlers and controllers have none. */
class ThrottleReflector extends Reflector {
  private readonly decorated = new Map<object, boolean>();

  override getAllAndOverride(key: unknown, targets: never[]): never {
    const isDecorated = targets.some((target) => this.isDecorated(target));
    return (isDecorated ? super.getAllAndOverride(key as string, targets) : undefined) as never;
  }

  private isDecorated(target: object): boolean {
    let isDecorated = this.decorated.get(target);
    if (isDecorated === undefined)
      this.decorated.set(target, (isDecorated = limitNamesOf(target).length > 0));
    return isDecorated;
  }
}

/**
 * Before the credential is verified: counts a cached one for its own limits, and any other request for its IP address.
 */
@Injectable()
export class RateLimitGuard extends ThrottlerGuard {
  constructor(
    @InjectThrottlerOptions() options: ThrottlerModuleOptions,
    @InjectThrottlerStorage() storage: ThrottlerStorage,
    private readonly limits: RateLimitsService,
    private readonly credentials: BearerStrategy,
  ) {
    super(options, storage, new ThrottleReflector());
  }

  override async onModuleInit(): Promise<void> {
    if (!this.limits.rates) return;
    await super.onModuleInit();
    // Throttler sorts limits by period. A request that exceeds a narrow limit must not count toward a wider one.
    this.throttlers.sort((a, b) => ORDER.indexOf(a.name!) - ORDER.indexOf(b.name!));
  }

  override canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== 'http') return Promise.resolve(true);
    const [handler, controller] = [context.getHandler(), context.getClass()];
    const { req, res } = this.getRequestResponse(context) as { req: Request; res: Response };
    // A checkout's request rate depends on its sales, so operators have only the concurrency limits.
    if (!this.limits.rates || req.operator || isUnlimited(handler, controller)) return Promise.resolve(true);
    const { network } = req.exchange.client;
    const access = accessOf(handler, controller);
    if (access === 'public' || access === 'signed in') {
      const isSignIn = signsIn(handler);
      if (isSignIn) this.limits.check('sign-in', req, res);
      req.trackers = isSignIn
        ? { 'sign-in': network, default: network }
        : { address: network, default: network };
    } else {
      const { presented } = req;
      const isComplete = presented !== undefined && !(presented instanceof ApiError);
      req.trackers = isComplete ? this.credentials.trackersOf(presented) : undefined;
      if (!req.trackers) {
        // Unknown credentials are limited before they cost a query.
        if (isComplete) this.limits.check('address', req, res);
        req.trackers = { address: network };
      }
    }
    return super.canActivate(context);
  }

  /** After the credential is verified: counts a request whose credential was not cached before. */
  async verified(context: ExecutionContext): Promise<boolean> {
    const { req, res } = this.getRequestResponse(context) as { req: Request; res: Response };
    if (!req.trackers || req.trackers.user !== undefined) return true;
    if (req.spentAddress) void this.limits.refund(req.spentAddress);
    res.requestsLeft = Infinity;
    req.trackers = trackersOf(req.user as Credential);
    return super.canActivate(context);
  }

  /** A rejected credential is a failed attempt. */
  rejected(req: Request): void {
    if (req.trackers && req.trackers.user === undefined) void this.limits.failed('address', req);
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
    const spending = {
      name,
      key: isShared ? shared : `${controller.name}.${handler.name}:${shared}`,
      limit: limit / requestCostOf(handler),
      ttl,
    };
    await this.limits.spend(res, spending);
    if (name === 'address') req.spentAddress = spending;
    return true;
  }

  protected override generateKey(_context: ExecutionContext, tracker: string, name: string): string {
    return `${name}:${tracker}`;
  }
}
