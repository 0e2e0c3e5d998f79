import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { failure } from '../http/failure';
import { type Access, accessOf } from './access';
import type { BearerOptions } from './bearer.strategy';
import type { Credential } from './credential';
import { presentedBy } from './presented';
import { apiKeyRequired, insufficientScope } from './refusals';
import { covers } from './scopes';
import { VerifiedCredentials } from './verified-credentials';

/** Closed by default: a handler that does not say who may enter lets nobody in. */
@Injectable()
export class ScopesGuard extends AuthGuard('bearer') {
  // Read once: metadata costs more than all the rest.
  private readonly accesses = new Map<object, Access | undefined>();

  constructor(private readonly credentials: VerifiedCredentials) {
    super();
  }

  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const access = this.accessTo(context.getHandler());
    // Sessions are the page guard's business: accounts/web/page.guard.ts.
    if (access === 'public' || access === 'signed in') return true;
    if (!access) throw failure(404, 'invalid api endpoint');
    const req = context.switchToHttp().getRequest<Request>();
    const presented = presentedBy(req);
    // A credential that is remembered is admitted without a turn through passport, which costs more than the rest of this.
    const known = presented && this.credentials.remembered(presented);
    if (!known) return this.verify(context, access);
    req.user = known;
    return admit(known, access);
  }

  override getAuthenticateOptions(context: ExecutionContext): BearerOptions {
    const presented = presentedBy(context.switchToHttp().getRequest());
    return { presented, credentials: this.credentials };
  }

  private async verify(context: ExecutionContext, access: Access): Promise<boolean> {
    const req = context.switchToHttp().getRequest<Request>();
    // The library sets it under a computed name, which would turn a request that has no such property yet into a hash table.
    req.user = undefined;
    await super.canActivate(context);
    return admit(req.user as unknown as Credential, access);
  }

  private accessTo(handler: object): Access | undefined {
    let access = this.accesses.get(handler);
    if (access === undefined) this.accesses.set(handler, (access = accessOf(handler)));
    return access;
  }
}

function admit(credential: Credential, access: Access): true {
  if (access === 'any credential') return true;
  if (access === 'any api key') {
    if (credential.type !== 'key') throw apiKeyRequired();
    return true;
  }
  if (!covers(credential.scopes, access)) throw insufficientScope(credential, access);
  return true;
}
