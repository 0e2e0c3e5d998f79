import type { Ask } from '../../test/support/world/message';
import { findBearer, covers, buildCredential } from './credentials';
import type { Operation } from './operations';
import type { Tenant } from '../../test/support/world/world';

/**
 * The error that the credential of a request must get, according to the description, or undefined if it is accepted.
 */
export function expectedRejection(ask: Ask, operation: Operation, tenant: Tenant): Rejection | undefined {
  if (!operation.secured) return undefined;
  const { KEY: key } = ask.path;
  const inPath = key !== undefined && key !== 'key' && key !== 'jwt';
  const name = inPath
    ? CREDENTIALS.find((one) => buildCredential(tenant, one, new Map()) === key)
    : ask.credential;
  const bearer = name === undefined ? undefined : findBearer(tenant, name);
  if (!bearer) {
    if (!inPath && (name === 'none' || name === 'empty')) return [401, 'authentication required'];
    if (inPath) return [401, 'invalid key'];
    const token = key === undefined ? name!.startsWith('jwt:') : key === 'jwt';
    return [401, token ? 'invalid token' : 'invalid key'];
  }
  if (key !== undefined && !inPath && key !== (bearer.type === 'jwt' ? 'jwt' : 'key'))
    return [401, key === 'jwt' ? 'invalid token' : 'invalid key'];
  if (operation.path === '/credentials/subkey' && bearer.type === 'jwt')
    return [403, 'an api key is required'];
  const { scope } = operation;
  if (scope !== undefined && !covers(bearer.scopes, scope))
    return [403, `${bearer.type === 'jwt' ? 'token' : 'api key'} does not permit \`${scope}\``];
  return undefined;
}

export type Rejection = [status: number, text: string];

const CREDENTIALS = ['profile:me', 'profile', 'game:view', 'game:view:purchases', 'collection']
  .map((scope) => `a:${scope}`)
  .concat('a', 'b', 'c');
