import { createHmac, timingSafeEqual } from 'node:crypto';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { SignedInUser } from '../sign-in/sessions.service';

/** A browser and its signed-in user. */
export class Visitor {
  constructor(
    private readonly request_id: string,
    /** The value of its cookie. */
    readonly token: string,
    readonly user: SignedInUser | undefined,
    private readonly keep: () => void = () => undefined,
  ) {}

  /** Who did something, for an audit event. */
  get by() {
    return { request_id: this.request_id, user_id: this.user?.id };
  }

  /** The CSRF token of each form. A new browser gets its cookie with its first form. */
  get formToken(): string {
    this.keep();
    return this.proofOf('form');
  }

  owns(formToken: string | undefined): boolean {
    return this.hasProofOf('form', formToken);
  }

  /** A form returns it as proof that its page showed this text in this session. */
  proofOf(text: string): string {
    return createHmac('sha256', this.token).update(text).digest('base64url');
  }

  hasProofOf(text: string, proof: string | undefined): boolean {
    const [own, given] = [Buffer.from(this.proofOf(text)), Buffer.from(proof ?? '')];
    return own.length === given.length && timingSafeEqual(own, given);
  }
}

/** The visitor of a handler that is `@SignedIn()`. */
export interface SignedInVisitor extends Visitor {
  readonly user: SignedInUser;
  readonly by: { request_id: string; user_id: number };
}

export const isSignedIn = (visitor: Visitor): visitor is SignedInVisitor => visitor.user !== undefined;

/** Undefined before PageGuard, and outside of pages. */
export const visitorOf = ({ visitor }: Request): Visitor | undefined =>
  visitor instanceof Visitor ? visitor : undefined;

export const CurrentVisitor = createParamDecorator((_: unknown, context: ExecutionContext) =>
  visitorOf(context.switchToHttp().getRequest<Request>()),
);
