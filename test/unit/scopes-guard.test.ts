import type { ExecutionContext } from '@nestjs/common';
import { ScopesGuard } from '../../src/auth/scopes.guard';
import type { VerifiedCredentials } from '../../src/auth/verified-credentials';

test('a handler that does not say who may enter lets nobody in, whatever they bring', () => {
  const good = { remembered: () => ({ type: 'key', scopes: ['profile'] }) };
  const guard = new ScopesGuard(good as unknown as VerifiedCredentials);
  const request = { headers: { authorization: 'Bearer good' }, params: {} };
  const silent = {
    getHandler: () => () => undefined,
    switchToHttp: () => ({ getRequest: () => request }),
  } as unknown as ExecutionContext;
  const closed = expect.objectContaining({ status: 404, errors: ['invalid api endpoint'] }) as Error;
  expect(() => guard.canActivate(silent)).toThrow(closed);
});
