import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { selectTests } from '../../tools/scripts/select-tests.mjs';

const tests = new Map(
  ['api', 'dashboard', 'operator', 'platform'].flatMap((folder) =>
    readdirSync(`test/${folder}`)
      .filter((name) => name.endsWith('.test.ts'))
      .map((name): [string, string] => [
        `test/${folder}/${name}`,
        readFileSync(`test/${folder}/${name}`, 'utf8'),
      ]),
  ),
);

test.each([
  ['src/collections/collections.service.ts', ['api/collections', 'api/collections-idempotency']],
  ['src/collections/collections.controller.ts', ['api/authorization', 'api/openapi']],
  ['migrations/20990101000000-wishlists.ts', ['platform/migrations', 'platform/upgrade']],
  ['src/games/game.entity.ts', ['platform/migrations']],
  ['src/auth/access/scopes.ts', ['platform/scopes', 'platform/oauth-scopes', 'api/credentials']],
  ['test/api/uploads.test.ts', ['api/uploads']],
])('`npm run check:quick` selects the tests of %s', (file, expected) => {
  const selected = selectTests([file], tests);
  expect(selected).toEqual(expect.arrayContaining(expected.map((name) => `test/${name}.test.ts`)));
  expect(selected.length).toBeLessThan(tests.size / 4);
});

test('a change of a page selects no tests', () => {
  expect(selectTests(['docs/reference/errors.md'], tests)).toEqual([]);
});

test('control: the examples exist', () => {
  expect(existsSync('src/auth/access/scopes.ts') && tests.size > 50).toBe(true);
});
