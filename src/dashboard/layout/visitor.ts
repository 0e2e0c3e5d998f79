import { createHmac, timingSafeEqual } from 'node:crypto';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { decryptWithToken, encryptWithToken } from '../../auth/accounts/encryption';
import type { SignedInUser } from '../../auth/sign-in/sessions.service';

export class Visitor {
  constructor(
    private readonly request_id: string,
    readonly token: string,
    readonly user: SignedInUser | undefined,
    private readonly setCookie: () => void = () => undefined,
  ) {}

  get by() {
    return { request_id: this.request_id, user_id: this.user?.id };
  }

  /** Sets the cookie of a new browser. */
  remember(): void {
    this.setCookie();
  }

  /** The CSRF token of each form. A new browser gets its cookie with its first form. */
  get formToken(): string {
    this.remember();
    return this.createSignature('form');
  }

  isOwnFormToken(formToken: string | undefined): boolean {
    return this.hasSigned('form', formToken);
  }

  /**
   * Signs a text. A form that sends the signature back proves that its page showed the text in this session.
   */
  createSignature(text: string): string {
    return createHmac('sha256', this.token).update(text).digest('base64url');
  }

  /** Encrypts a part of a URL, so that only this session can read it. */
  encrypt(value: object): string {
    return encryptWithToken(this.token, value).toString('base64url');
  }

  /** Returns undefined for a text of another session. */
  decrypt<Value>(text: string): Value | undefined {
    return decryptWithToken<Value>(this.token, Buffer.from(text, 'base64url'));
  }

  hasSigned(text: string, signature: string | undefined): boolean {
    const [own, sent] = [Buffer.from(this.createSignature(text)), Buffer.from(signature ?? '')];
    return own.length === sent.length && timingSafeEqual(own, sent);
  }
}

/** The visitor of a handler that is `@SignedIn()`. */
export interface SignedInVisitor extends Visitor {
  readonly user: SignedInUser;
  readonly by: { request_id: string; user_id: number };
}

export const isSignedIn = (visitor: Visitor): visitor is SignedInVisitor => visitor.user !== undefined;

/** Undefined before PageGuard, and outside of pages. */
export const readVisitor = ({ visitor }: Request): Visitor | undefined =>
  visitor instanceof Visitor ? visitor : undefined;

export const CurrentVisitor = createParamDecorator((_: unknown, context: ExecutionContext) =>
  readVisitor(context.switchToHttp().getRequest<Request>()),
);
