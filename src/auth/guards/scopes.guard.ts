import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard, AuthModuleOptions } from '@nestjs/passport';
import type { Request } from 'express';
import { ApiError, apiError } from '../../platform/errors/api-error';
import { type Access, accessOf, isForOperators } from '../access/access';
import { covers, type Credential } from '../access/credential';
import { RateLimitGuard } from './rate-limit.guard';
import { apiKeyRequired, authenticationRequired, insufficientScope } from '../access/errors';

/** Lets Passport verify the credential, then checks the scope that the handler declares. Closed by default. */
@Injectable()
export class ScopesGuard extends AuthGuard() {
  constructor(
    options: AuthModuleOptions,
    private readonly limits: RateLimitGuard,
  ) {
    super(options);
  }

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    const access = accessOf(context.getHandler(), context.getClass());
    if (!access) throw apiError(404, 'invalid api endpoint');
    if (access === 'public') return true;
    // A message of a microservice has no credential.
    if (context.getType() !== 'http') throw authenticationRequired();
    // PageGuard checks sessions, and OperatorGuard checks operator tokens.
    if (access === 'signed in' || isForOperators(access)) return true;
    const req = context.switchToHttp().getRequest<Request>();
    if (req.presented instanceof ApiError) throw req.presented;
    await super.canActivate(context);
    await this.limits.verified(context);
    checkScope(req.user as Credential, access);
    return true;
  }

  /** Without query and body, because passport-http-bearer also accepts tokens there, where they end up in logs. */
  override getRequest(context: ExecutionContext): Request {
    const req = context.switchToHttp().getRequest<Request>();
    const { headers, presented, exchange } = req;
    // A copy, because V8 drops the shape of an object that becomes a prototype.
    return { headers, presented, exchange } as Request;
  }

  override handleRequest<User>(
    error: unknown,
    user: User | false,
    _: unknown,
    context: ExecutionContext,
  ): User {
    const req = context.switchToHttp().getRequest<Request>();
    if (error instanceof ApiError && error.statusCode === 401) this.limits.rejected(req);
    if (error) throw error;
    if (!user) throw authenticationRequired();
    req.user = user;
    return user;
  }
}

function checkScope(credential: Credential, access: Access): void {
  if (access === 'any credential') return;
  if (access === 'any api key') {
    if (credential.type !== 'key') throw apiKeyRequired();
    return;
  }
  const scopes = [access].flat();
  if (!scopes.some((scope) => covers(credential.scopes, scope)))
    throw insufficientScope(credential, scopes[0]!);
}
