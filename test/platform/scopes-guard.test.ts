import type { ExecutionContext } from '@nestjs/common';
import { ScopesGuard } from '../../src/auth/guards/scopes.guard';

test('rejects a handler that declares no access', async () => {
  const context = {
    getHandler: () => () => undefined,
    getClass: () => class {},
  } as unknown as ExecutionContext;
  await expect(
    new ScopesGuard({ defaultStrategy: 'bearer' }, undefined as never).canActivate(context),
  ).rejects.toMatchObject({
    status: 404,
    errors: ['invalid api endpoint'],
  });
});
