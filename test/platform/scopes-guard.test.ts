import type { ExecutionContext } from '@nestjs/common';
import { Public } from '../../src/auth/access';
import { ScopesGuard } from '../../src/auth/scopes.guard';
import type { BearerStrategy } from '../../src/auth/bearer.strategy';

/** A request with a good credential for this handler. */
const requestFor = (handler: () => void) =>
  ({
    getHandler: () => handler,
    switchToHttp: () => ({
      getRequest: () => ({ headers: { authorization: 'Bearer good' }, params: {} }),
    }),
  }) as unknown as ExecutionContext;

const credentials = { remembered: () => ({ type: 'key', scopes: ['profile'] }) };
const guard = () => new ScopesGuard(credentials as unknown as BearerStrategy);

test('a handler that does not say who may enter lets nobody in, whatever they bring', () => {
  const closed = expect.objectContaining({ status: 404, errors: ['invalid api endpoint'] }) as Error;
  expect(() => guard().canActivate(requestFor(() => undefined))).toThrow(closed);
});

test('what a handler says is read once', () => {
  const handler = () => undefined;
  Public()({}, 'handler', { value: handler });
  const read = jest.spyOn(Reflect, 'getMetadata');
  const one = guard();
  for (let i = 0; i < 3; i++) expect(one.canActivate(requestFor(handler))).toBe(true);
  expect(read).toHaveBeenCalledTimes(1);
  read.mockRestore();
});
