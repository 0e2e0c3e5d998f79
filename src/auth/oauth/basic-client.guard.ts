import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { invalidBasicClient } from './oauth-errors';

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/** Accepts the client ID of a public client as the user of HTTP Basic, with an empty password. */
@Injectable()
export class BasicClientGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const req = context.switchToHttp().getRequest<Request>();
    const { authorization = '' } = req.headers;
    if (!/^basic\b/i.test(authorization)) return true;
    const client_id = parseClientId(authorization);
    if (client_id === undefined)
      throw invalidBasicClient('send the client_id as the username of HTTP Basic, with an empty password');
    req.parametersInHeaders = { client_id };
    return true;
  }
}

/** The username is form-encoded (RFC 6749, section 2.3.1). */
function parseClientId(authorization: string): string | undefined {
  const [, encoded = ''] = BASIC.exec(authorization) ?? [];
  const [, user] = /^([^:]+):$/.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? [];
  try {
    return user && decodeURIComponent(user.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
