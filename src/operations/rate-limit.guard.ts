import { type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import {
  InjectThrottlerOptions,
  InjectThrottlerStorage,
  ThrottlerGuard,
  type ThrottlerModuleOptions,
} from '@nestjs/throttler';
import type { Request, Response } from 'express';
import { accessOf } from '../auth/access';
import { type Credential, limitedAs } from '../auth/credential';
import { type Presented, presentedBy } from '../auth/presented';
import { VerifiedCredentials } from '../auth/verified-credentials';
import { clientNetwork } from '../http/client-address';
import { FrontDoor } from '../http/front-door';
import { isUnlimited } from '../http/unlimited';
import { countsMisses, isSignIn } from './limits';
import { RateLimitsService } from './rate-limits.service';

declare module 'node:http' {
  interface IncomingMessage {
    /** Under which name its credential is counted; absent before that is known. */
    limited_as?: string;
  }
}

/** What a handler's decorators say, read once. */
interface Plan {
  unlimited: boolean;
  signIn: boolean;
  open: boolean;
  misses: boolean;
}

// JWTs that were good before, whether they still are or not; keys are remembered by those that verify them.
const TOKENS_REMEMBERED = 10_000;

/**
 * Before the credential is verified: one that is known is counted under its own name. Anything else costs its address, so
 * that guessing ends before it has cost a query; CredentialLimitGuard gives that back where the credential was good.
 */
@Injectable()
export class RateLimitGuard extends ThrottlerGuard {
  private readonly plans = new WeakMap<object, Plan>();
  private youngTokens = new Map<string, string>();
  private oldTokens = new Map<string, string>();

  constructor(
    @InjectThrottlerOptions() options: ThrottlerModuleOptions,
    @InjectThrottlerStorage() readonly limits: RateLimitsService,
    reflector: Reflector,
    frontDoor: FrontDoor,
    private readonly credentials: VerifiedCredentials,
  ) {
    super(options, limits, reflector);
    frontDoor.observers.push(({ is_lookup, limited_as }, { statusCode, found_nothing }) => {
      if (is_lookup && (found_nothing || statusCode === 404)) limits.note('misses', limited_as!);
    });
  }

  // The library's own reads every decorator anew and waits for five promises a limit.
  // @ts-expect-error It is declared to answer a promise always; Nest takes a boolean too.
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (!this.limits.limits) return true;
    const plan = this.planOf(context);
    if (plan.unlimited) return true;
    const http = context.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    if (plan.signIn) return passed(this.limits.spend(res, 'sign-in', clientNetwork(req)));
    const known = plan.open ? undefined : this.recall(presentedTo(req));
    if (known === undefined) return passed(this.limits.spend(res, 'address', clientNetwork(req)));
    return passed(this.spendAs(known, req, res, plan));
  }

  /** Once the credential is verified. */
  verified(context: ExecutionContext, credential: Credential): boolean | Promise<boolean> {
    if (!this.limits.limits) return true;
    const plan = this.planOf(context);
    const http = context.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const name = limitedAs(credential);
    if (credential.type === 'jwt') this.rememberToken(presentedBy(req)!.text, name);
    this.limits.note('address', clientNetwork(req), -1);
    return passed(this.spendAs(name, req, res, plan));
  }

  private spendAs(name: string, req: Request, res: Response, plan: Plan): void | Promise<void> {
    req.limited_as = name;
    const spent = this.limits.spend(res, 'credential', name);
    if (!plan.misses) return spent;
    req.is_lookup = true;
    const asked = this.limits.ask(res, 'misses', name);
    return spent || asked ? Promise.all([spent, asked]).then(() => undefined) : undefined;
  }

  private planOf(context: ExecutionContext): Plan {
    const handler = context.getHandler();
    let plan = this.plans.get(handler);
    if (!plan) {
      plan = {
        unlimited: isUnlimited(handler, context.getClass()),
        signIn: isSignIn(handler),
        open: accessOf(handler) === 'public',
        misses: countsMisses(handler),
      };
      this.plans.set(handler, plan);
    }
    return plan;
  }

  private recall(presented: Presented | undefined): string | undefined {
    if (!presented) return undefined;
    const { type, text } = presented;
    if (type === 'key') return this.credentials.keyLimitedAs(text);
    const name = this.youngTokens.get(text);
    if (name !== undefined) return name;
    const older = this.oldTokens.get(text);
    if (older !== undefined) this.rememberToken(text, older);
    return older;
  }

  private rememberToken(text: string, name: string): void {
    this.youngTokens.set(text, name);
    if (this.youngTokens.size < TOKENS_REMEMBERED) return;
    this.oldTokens = this.youngTokens;
    this.youngTokens = new Map();
  }
}

/** The credential that the request is verified by; undefined: none, or one that contradicts its path. */
function presentedTo(req: Request): Presented | undefined {
  try {
    return presentedBy(req);
  } catch {
    return undefined;
  }
}

const passed = (spent: void | Promise<void>): boolean | Promise<boolean> =>
  spent instanceof Promise ? spent.then(() => true) : true;
