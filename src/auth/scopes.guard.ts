import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { failure } from '../http/failure';
import { type Access, accessOf, isForOperators, type OperatorAccess } from './access';
import { BearerStrategy } from './bearer.strategy';
import type { Credential } from './credential';
import { authorizationOf, type Presented, presentedBy } from './presented';
import {
  apiKeyRequired,
  authenticationRequired,
  insufficientRight,
  insufficientScope,
  invalidToken,
} from './refusals';
import { covers } from './scopes';
import { VerifiedCredentials } from './verified-credentials';

/** Lets BearerStrategy verify the credential, and then checks what the handler's @Scopes asks for. Closed by default. */
@Injectable()
export class ScopesGuard implements CanActivate {
  // Cached: reading metadata costs more than the rest of the guard.
  private readonly accesses = new Map<object, Access | undefined>();

  constructor(
    private readonly credentials: VerifiedCredentials,
    private readonly strategy: BearerStrategy,
  ) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const access = this.accessTo(context.getHandler());
    // PageGuard checks the sessions of people.
    if (access === 'public' || access === 'signed in') return true;
    if (!access) throw failure(404, 'invalid api endpoint');
    const http = context.switchToHttp();
    const req = http.getRequest<Request>();
    if (isForOperators(access)) return admitOperator(req, http.getResponse(), access);
    const presented = presentedBy(req);
    if (!presented) throw authenticationRequired();
    const remembered = this.credentials.remembered(presented, req);
    if (!remembered) return this.verify(req, presented, access);
    req.user = remembered;
    return admit(remembered, access);
  }

  // Not through AuthGuard('bearer'): passport has one strategy for a process, of the application created last.
  private async verify(req: Request, presented: Presented, access: Access): Promise<boolean> {
    const credential = await this.strategy.validate(presented, req);
    req.user = credential;
    return admit(credential, access);
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

/** `OperatorRoutes` has looked for the token. */
function admitOperator(req: Request, res: Response, access: OperatorAccess): true {
  const [, right] = access.split(':');
  const { operator } = req;
  if (operator && (right === undefined || operator.rights.includes(right))) return true;
  // Without waiting for the rest of the body, which may be an import.
  if (!req.complete) req.exchange.connection.closeAfter(res);
  if (operator) throw insufficientRight(right!);
  throw authorizationOf(req) === '' ? authenticationRequired() : invalidToken();
}
