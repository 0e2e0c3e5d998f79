import { type CanActivate, type ExecutionContext, Injectable, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer, HttpAdapterHost } from '@nestjs/core';
import type { Request, Response, NextFunction } from 'express';
import { type Credential, limitedAs, type LimitedAs, type Presented } from '../../auth/credential';
import { BearerStrategy } from '../../auth/bearer.strategy';
import { ApiError } from '../http/api-error';
import { RequestGate, isPreflight } from '../http/request-gate';
import type { Observer } from '../http/request';
import { handlersOf, type Named } from '../http/routes';
import { type HandlerLimits, handlerLimits } from './handler-limits';
import { type Limit, RateLimitsService } from './rate-limits.service';

/** Before the credential is verified: counts a cached one for its own limits, and all else for its address. */
@Injectable()
export class RateLimitGuard implements CanActivate, OnModuleInit {
  private readonly handlers = new Map<object, HandlerLimits | null>();

  constructor(
    private readonly limits: RateLimitsService,
    private readonly credentials: BearerStrategy,
    private readonly modules: ModulesContainer,
    gate: RequestGate,
  ) {
    if (limits.limits) gate.observers.push(this.answered);
  }

  /** Reads all decorators at the start, so that a wrong one fails there and not in a request. */
  onModuleInit(): void {
    for (const { controller, handler } of handlersOf(this.modules)) this.limitsOf(handler, controller);
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const handler = this.limitsOf(context.getHandler(), context.getClass());
    if (!handler) return true;
    const http = context.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    // A shop's checkout sends as many as it sells. What is too much for the service is 503.
    if (req.operator) return true;
    const presented = handler.open ? undefined : presentedTo(req);
    const known = presented && this.credentials.limitedAs(presented);
    if (known) return passed(this.spendAs(known, handler, req, res));
    // Guesses are limited before they cost a query.
    if (handler.open || presented) handler.guesses?.check(req, res);
    if (handler.open && handler.misses) req.is_lookup = true;
    return passed(this.limits.spend(res, handler.ofStrangers, req.exchange.client));
  }

  /** Called when the credential is verified. */
  verified(context: ExecutionContext, credential: Credential): boolean | Promise<boolean> {
    const handler = this.limitsOf(context.getHandler(), context.getClass());
    if (!handler) return true;
    const http = context.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    void this.limits.add(handler.ofStrangers, req.exchange.client, -1);
    return passed(this.spendAs(limitedAs(credential), handler, req, res));
  }

  /** Gives a lookup that found something its miss back; counts a failed guess without a valid credential. */
  private readonly answered: Observer = (req, res) => {
    const missed = res.found_nothing === true || res.statusCode === 404;
    if (req.misses) {
      if (!missed) void this.limits.add([req.misses as Limit], req.limited_as!, -1);
    } else if (req.limited_as === undefined) {
      const refused =
        res.statusCode === 401 && req.presented !== undefined && !(req.presented instanceof ApiError);
      if (refused || (missed && req.is_lookup)) this.limits.guesses?.address.failed(req as Request);
    }
  };

  private spendAs(
    known: LimitedAs,
    handler: HandlerLimits,
    req: Request,
    res: Response,
  ): void | Promise<void> {
    req.limited_as = known;
    const spent = this.limits.spend(res, handler.ofCredentials, known);
    if (!handler.misses) return spent;
    const looks = () => {
      req.is_lookup = true;
      req.misses = handler.misses;
    };
    return spent instanceof Promise ? spent.then(looks) : looks();
  }

  private limitsOf(handler: Named, controller: Named): HandlerLimits | null {
    let found = this.handlers.get(handler);
    if (found === undefined)
      this.handlers.set(handler, (found = handlerLimits(this.limits, handler, controller)));
    return found;
  }
}

/** The credential of the request; undefined: none, or one that contradicts the path. */
const presentedTo = ({ presented }: Request): Presented | undefined =>
  presented instanceof ApiError ? undefined : presented;

const passed = (spent: void | Promise<void>): boolean | Promise<boolean> =>
  spent instanceof Promise ? spent.then(() => true) : true;

/** Runs after ScopesGuard: counts a request whose credential was not cached before. */
@Injectable()
export class CredentialLimitGuard implements CanActivate {
  constructor(private readonly rateLimit: RateLimitGuard) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const { user, limited_as } = context.switchToHttp().getRequest<Request>();
    if (user === undefined || limited_as !== undefined) return true;
    return this.rateLimit.verified(context, user as Credential);
  }
}

/** Counts requests that match no route, and so pass no guard, for their address. */
@Injectable()
export class UnroutedLimit implements OnModuleInit {
  constructor(
    private readonly host: HttpAdapterHost,
    private readonly limits: RateLimitsService,
  ) {}

  /** Runs after all routes are registered and before the 404 handler is. */
  onModuleInit(): void {
    if (!this.limits.limits) return;
    this.host.httpAdapter?.use(async (req: Request, res: Response, next: NextFunction) => {
      // A preflight does not count: the request after it does.
      if (!isPreflight(req)) await this.limits.spendAddress(req, res);
      next();
    });
  }
}
