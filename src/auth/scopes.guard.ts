import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { failure } from '../http/failure';
import { accessOf } from './access';
import type { Credential } from './credential';
import { insufficientScope } from './refusals';
import { covers } from './scopes';

/** Closed by default: a handler that does not say who may enter lets nobody in. */
@Injectable()
export class ScopesGuard extends AuthGuard('bearer') {
  override async canActivate(context: ExecutionContext): Promise<boolean> {
    const access = accessOf(context.getHandler());
    if (access === 'public') return true;
    if (!access) throw failure(404, 'invalid api endpoint');
    await super.canActivate(context);
    if (access === 'any credential') return true;
    const credential = context.switchToHttp().getRequest<Request>().user as Credential;
    if (!covers(credential.scopes, access)) throw insufficientScope(credential, access);
    return true;
  }
}
