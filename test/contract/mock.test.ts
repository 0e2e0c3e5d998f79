import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { ModulesContainer } from '@nestjs/core';
import { listRoutes } from '../../src/auth/access/routes';
import { MockModule } from '../../src/dev/mock/mock.module';
import { openApp, theApp, useStore } from '../support/app';

useStore();

const mockRoutes = (app: typeof theApp extends () => infer App ? App : never) =>
  listRoutes(app.get(ModulesContainer)).filter(({ path }) => /^\/mock(\/|$)/.test(path));

test('the service has no routes or modules of the mock', async () => {
  expect(mockRoutes(theApp())).toEqual([]);
  expect([...theApp().get(ModulesContainer).values()].map(({ name }) => name)).not.toContain(MockModule.name);
  expect((await fetch(`${await theApp().getUrl()}/mock/reset`, { method: 'POST' })).status).toBe(404);
  // With the module, the same check finds its routes.
  expect(mockRoutes(await openApp({}, { imports: [MockModule] })).length).toBeGreaterThan(8);
});

test('only the command loads the mock', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const users = files.filter(
    (file) =>
      !file.startsWith(join('dev', 'mock') + sep) &&
      /dev\/mock\/|'\.\/mock\/|\bMockModule\b/.test(readFileSync(join('src', file), 'utf8')),
  );
  expect(users).toEqual([join('commands', 'mock.command.ts')]);
});
