import type { ExecutionContext } from '@nestjs/common';
import { BearerGuard } from '../../src/auth/guards/bearer.guard';
import { ScopesGuard } from '../../src/auth/guards/scopes.guard';

test('rejects a handler that declares no access', async () => {
  const context = {
    getHandler: () => () => undefined,
    getClass: () => class {},
  } as unknown as ExecutionContext;
  await expect(
    new BearerGuard(
      { defaultStrategy: 'bearer' },
      undefined as never,
      undefined as never,
      undefined as never,
    ).canActivate(context),
  ).rejects.toMatchObject({
    status: 404,
    errors: ['invalid api endpoint'],
  });
  expect(() => new ScopesGuard().canActivate(context)).toThrow('invalid api endpoint');
});
