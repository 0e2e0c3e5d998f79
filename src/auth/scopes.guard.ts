import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { apiError } from '../platform/http/api-error';
import { type Access, accessOf, isForOperators, type OperatorAccess } from './access';
import { BearerStrategy } from './bearer.strategy';
import { authorizationOf, covers, type Credential, type Presented, presentedBy } from './credential';
import {
  apiKeyRequired,
  authenticationRequired,
  insufficientRight,
  insufficientScope,
  invalidToken,
} from './errors';

type Check = (http: ReturnType<ExecutionContext['switchToHttp']>) => boolean | Promise<boolean>;

/** Lets BearerStrategy verify the credential, and then checks what the handler's @Scopes asks for. Closed by default. */
@Injectable()
export class ScopesGuard implements CanActivate {
  // Cached: reading metadata costs more than the rest of the guard.
  private readonly checks = new Map<object, Check>();

  constructor(private readonly strategy: BearerStrategy) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const handler = context.getHandler();
    let check = this.checks.get(handler);
    if (!check) this.checks.set(handler, (check = this.checkOf(accessOf(handler))));
    return check(context.switchToHttp());
  }

  private checkOf(access: Access | undefined): Check {
    // PageGuard checks the sessions of people.
    if (access === 'public' || access === 'signed in') return () => true;
    if (!access)
      return () => {
        throw apiError(404, 'invalid api endpoint');
      };
    if (isForOperators(access)) return (http) => admitOperator(http.getRequest(), http.getResponse(), access);
    return (http) => this.admitCredential(http.getRequest(), access);
  }

  private admitCredential(req: Request, access: Access): boolean | Promise<boolean> {
    const presented = presentedBy(req);
    if (!presented) throw authenticationRequired();
    const remembered = this.strategy.remembered(presented, req);
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

/** operator-routes.ts has looked for the token. */
function admitOperator(req: Request, res: Response, access: OperatorAccess): true {
  const [, right] = access.split(':');
  const { operator } = req;
  if (operator && (right === undefined || operator.rights.includes(right))) return true;
  // Without waiting for the rest of the body, which may be an import.
  if (!req.complete) req.exchange.connection.closeAfter(res);
  if (operator) throw insufficientRight(right!);
  throw authorizationOf(req) === '' ? authenticationRequired() : invalidToken();
}
