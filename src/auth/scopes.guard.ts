import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { Settings } from '../config/settings';
import { failure } from '../http/failure';
import { type Access, accessOf } from './access';
import type { BearerOptions } from './bearer.strategy';
import type { Credential } from './credential';
import { type Presented, type PresentedBy, presentedByOf } from './presented';
import { apiKeyRequired, insufficientScope } from './refusals';
import { covers } from './scopes';
import { VerifiedCredentials } from './verified-credentials';

interface Entry {
  access: Access | undefined;
  presentedBy: PresentedBy;
}

/** Closed by default: a handler that does not say who may enter lets nobody in. */
@Injectable()
export class ScopesGuard extends AuthGuard('bearer') {
  private readonly entries = new Map<object, Map<object, Entry>>();

  constructor(
    private readonly credentials: VerifiedCredentials,
    private readonly settings: Settings,
  ) {
    super();
  }

  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const { access, presentedBy } = this.entryOf(context);
    if (access === 'public') return true;
    if (!access) throw failure(404, 'invalid api endpoint');
    const req = context.switchToHttp().getRequest<Request>();
    const presented = presentedBy(req, this.settings);
    // A credential that is remembered is admitted without a turn through passport, which costs more than the rest of this.
    const known = presented && this.credentials.remembered(presented);
    if (!known) return this.verify(context, access);
    req.user = known;
    return admit(known, access);
  }

  override getAuthenticateOptions(context: ExecutionContext): BearerOptions & { session: false } {
    const { presentedBy } = this.entryOf(context);
    const presented: Presented | undefined = presentedBy(context.switchToHttp().getRequest(), this.settings);
    return { session: false, presented, credentials: this.credentials };
  }

  private async verify(context: ExecutionContext, access: Access): Promise<boolean> {
    await super.canActivate(context);
    return admit(context.switchToHttp().getRequest<Request>().user as Credential, access);
  }

  // Read once: metadata costs as much as all the rest.
  private entryOf(context: ExecutionContext): Entry {
    const [controller, handler] = [context.getClass(), context.getHandler()];
    let handlers = this.entries.get(controller);
    if (!handlers) this.entries.set(controller, (handlers = new Map()));
    let entry = handlers.get(handler);
    if (!entry) {
      entry = { access: accessOf(handler), presentedBy: presentedByOf(handler, controller) };
      handlers.set(handler, entry);
    }
    return entry;
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
