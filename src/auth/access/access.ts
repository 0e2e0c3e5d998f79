import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ApiSecurity } from '@nestjs/swagger';
import { ACCESS_METADATA, Public } from '../../platform/server/public';
import type { Scope } from './scopes';

// The platform declares Public, because its own routes can't import this file.
export { Public };

/** `operator`: any operator token; `operator:PERMISSION`: one with this permission. */
export type OperatorAccess = 'operator' | `operator:${string}`;
/** Several scopes: any one of them. */
export type Access =
  'public' | 'any credential' | 'any API key' | 'signed in' | Scope | readonly Scope[] | OperatorAccess;

/** The access that a handler or its controller declares; undefined: none, so the handler can't be called. */
export const readAccess = (handler: object, controller: object): Access | undefined =>
  (Reflect.getMetadata(ACCESS_METADATA, handler) ?? Reflect.getMetadata(ACCESS_METADATA, controller)) as
    Access | undefined;

const bearer = (access: Access, ...scopes: Scope[]) =>
  applyDecorators(
    SetMetadata(ACCESS_METADATA, access),
    ...(scopes.length === 0
      ? [ApiSecurity('bearer')]
      : scopes.map((scope) => ApiSecurity('bearer', [scope]))),
  );

export const AnyCredential = () => bearer('any credential');

/** Accepts an API key with any scopes, but not a JWT, which can't issue another JWT. */
export const AnyApiKey = () => bearer('any API key');

/** The credential must have one of these scopes, or a scope above one of them. Errors name the first. */
export const Scopes = (scope: Scope, ...others: Scope[]) =>
  bearer(others.length === 0 ? scope : [scope, ...others], scope, ...others);

/** Marks controllers of pages, whose guard loads the session. */
export const PAGES = 'gamewharf:pages';

/** A page that needs a session and ignores credentials. Only on controllers of pages and their handlers. */
export const SignedIn = () => SetMetadata(ACCESS_METADATA, 'signed in' satisfies Access);

/** Whether a route needs an API key or a JWT. PageGuard checks sessions, OperatorGuard operator tokens. */
export const requiresCredential = (
  access: Access,
): access is 'any credential' | 'any API key' | Scope | readonly Scope[] =>
  access !== 'public' && access !== 'signed in' && !isForOperators(access);

export const isForOperators = (access: Access): access is OperatorAccess =>
  typeof access === 'string' && (access === 'operator' || access.startsWith('operator:'));
