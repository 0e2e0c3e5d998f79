import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { failure } from '../http/failure';
import { type Access, accessOf } from './access';
import { type BearerOptions, BearerStrategy } from './bearer.strategy';
import type { Credential } from './credential';
import { type Presented, presentedBy } from './presented';
import { apiKeyRequired, insufficientScope } from './refusals';
import { covers } from './scopes';
import { VerifiedCredentials } from './verified-credentials';

/** Closed by default: a handler that does not say who may enter lets nobody in. */
@Injectable()
export class ScopesGuard implements CanActivate {
  // Read once: metadata costs more than all the rest.
  private readonly accesses = new Map<object, Access | undefined>();

  constructor(
    private readonly credentials: VerifiedCredentials,
    private readonly strategy: BearerStrategy,
  ) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const access = this.accessTo(context.getHandler());
    // Sessions are the page guard's business: accounts/web/page.guard.ts.
    if (access === 'public' || access === 'signed in') return true;
    if (!access) throw failure(404, 'invalid api endpoint');
    const req = context.switchToHttp().getRequest<Request>();
    const presented = presentedBy(req);
    // A credential that is remembered is admitted without asking the strategy.
    const known = presented && this.credentials.remembered(presented);
    if (!known) return this.verify(req, presented, access);
    req.user = known;
    return admit(known, access);
  }

  // As passport runs a strategy, but without its middleware: docs/decisions/fast-requests.md.
  private async verify(req: Request, presented: Presented | undefined, access: Access): Promise<boolean> {
    req.user = await new Promise<Credential>((success, error) => {
      const strategy = Object.assign(Object.create(this.strategy) as BearerStrategy, { success, error });
      strategy.authenticate(req, { presented } satisfies BearerOptions);
    });
    return admit(req.user as Credential, access);
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
