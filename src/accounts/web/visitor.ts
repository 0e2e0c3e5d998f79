import { createHmac, timingSafeEqual } from 'node:crypto';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { SignedInUser } from '../sign-in/sessions.service';

declare module 'express-serve-static-core' {
  interface Request {
    visitor?: Visitor;
  }
}

/** A browser, and who is signed in with it. */
export class Visitor {
  constructor(
    /** What its cookie holds. */
    readonly token: string,
    readonly user: SignedInUser | undefined,
    private readonly keep: () => void = () => undefined,
  ) {}

  /** Every form carries this, which no other site can know. A browser that is new here gets its cookie with its first form. */
  get formToken(): string {
    this.keep();
    return createHmac('sha256', this.token).update('form').digest('base64url');
  }

  owns(formToken: string | undefined): boolean {
    const [own, given] = [Buffer.from(this.formToken), Buffer.from(formToken ?? '')];
    return own.length === given.length && timingSafeEqual(own, given);
  }
}

export const CurrentVisitor = createParamDecorator(
  (_: unknown, context: ExecutionContext) => context.switchToHttp().getRequest<Request>().visitor,
);

/** On a handler that is `@SignedIn()`. */
export const CurrentUser = createParamDecorator(
  (_: unknown, context: ExecutionContext) => context.switchToHttp().getRequest<Request>().visitor!.user,
);
