import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { apiError } from '../../platform/errors/api-error';
import { readAccess, requiresCredential } from '../access/access';
import { covers, type Credential } from '../access/credential';
import { apiKeyRequired, insufficientScope } from '../access/errors';

/** Checks the scope that the handler declares. Rejects requests to a handler without a declaration. */
@Injectable()
export class ScopesGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const access = readAccess(context.getHandler(), context.getClass());
    if (!access) throw apiError(404, 'invalid api endpoint');
    // PageGuard checks sessions, and OperatorGuard checks operator tokens.
    if (!requiresCredential(access) || access === 'any credential') return true;
    const credential = context.switchToHttp().getRequest<Request>().user as Credential;
    if (access === 'any API key') {
      if (credential.type !== 'key') throw apiKeyRequired();
      return true;
    }
    const scopes = [access].flat();
    if (!scopes.some((scope) => covers(credential.scopes, scope)))
      throw insufficientScope(credential, scopes[0]!);
    return true;
  }
}
