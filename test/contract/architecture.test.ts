import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

// Each group may import from the groups before it, and each folder from itself.
const ORDER = [
  ['platform'],
  ['auth'],
  ['users'],
  ['games'],
  ['purchases', 'collections', 'wharf'],
  ['uploads'],
  ['profile', 'credentials'],
  ['legacy'],
  ['operator'],
  ['dashboard'],
  ['dev'],
  ['commands'],
];

// Imports against the order that are still to be removed. This list only gets shorter.
const PENDING = [
  'auth/access.ts -> operator/tokens/operator-rights',
  'auth/auth.module.ts -> operator/tokens/operator-events',
  'auth/auth.module.ts -> operator/tokens/operator-token.entity',
  'auth/auth.module.ts -> operator/tokens/operator-tokens.service',
  'auth/oauth/applications.service.ts -> users/lock-user',
  'auth/oauth/oauth-application.entity.ts -> users/user.entity',
  'auth/oauth/oauth-grant.entity.ts -> users/user.entity',
  'auth/sign-in/session.entity.ts -> users/user.entity',
  'auth/sign-in/sessions.service.ts -> users/user.entity',
  'games/visibility.ts -> purchases/key-owners',
  'platform/idempotency/idempotency.service.ts -> auth/credential',
  'platform/rate-limits/handler-limits.ts -> auth/access',
  'platform/lifecycle/health.controller.ts -> auth/access',
  'platform/observability/metrics.controller.ts -> auth/access',
  'platform/rate-limits/rate-limit.guard.ts -> auth/credential',
  'platform/rate-limits/rate-limit.guard.ts -> auth/bearer.strategy',
  'platform/rate-limits/rate-limits.service.ts -> auth/credential',
  'platform/openapi/reference.controller.ts -> auth/access',
  'operator/people/people.module.ts -> dashboard/dashboard.module',
  'operator/people/people.module.ts -> dashboard/settings/data.controller',
];

const src = resolve('src');
const files = (readdirSync(src, { recursive: true }) as string[]).filter(
  (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
);
const rank = new Map(ORDER.flatMap((group, i) => group.map((folder) => [folder, i] as const)));

const importsOf = (file: string): string[] =>
  [...readFileSync(join(src, file), 'utf8').matchAll(/(?:from|import|require)\s*\(?\s*'(\.[^']+)'/g)].map(
    ([, to]) => relative(src, resolve(src, dirname(file), to!)),
  );

const top = (path: string) => path.split(sep)[0]!;

function allowed(from: string, to: string): boolean {
  if (from === to) return true;
  const [a, b] = [rank.get(from), rank.get(to)];
  return a !== undefined && b !== undefined && b < a;
}

test.each(files.filter((file) => file.includes(sep)))('%s imports only from its left', (file) => {
  const wrong = importsOf(file).filter(
    (to) => to.includes(sep) && !allowed(top(file), top(to)) && !PENDING.includes(`${file} -> ${to}`),
  );
  expect(wrong).toEqual([]);
});

test('every folder has its place', () => {
  const folders = new Set(files.filter((file) => file.includes(sep)).map(top));
  expect([...folders].filter((folder) => !rank.has(folder))).toEqual([]);
});

test('the page about the architecture has the folders in their order', () => {
  const page = readFileSync(join('docs', 'explanation', 'architecture.md'), 'utf8');
  const lines = [...page.matchAll(/^src\/((?:\w+\/(?:, )?)+) /gm)].map(([, folders]) => folders!);
  expect(lines.map((folders) => folders.match(/\w+/g))).toEqual(ORDER);
});

// The embedded server hands its own environment on to PostgreSQL's programs; it takes no setting from there.
test('nobody but the composition root reads the environment', () => {
  const candidates = files.filter((file) => !file.startsWith(join('dev', 'embedded')));
  const readers = candidates.filter((file) => /process\.env\b/.test(readFileSync(join(src, file), 'utf8')));
  expect(readers.toSorted()).toEqual([
    join('platform', 'config', 'environment.ts'),
    join('platform', 'database', 'data-source.cli.ts'),
  ]);
});

test('legacy owns no SQL, and nothing needs forwardRef', () => {
  const text = (file: string) => readFileSync(join(src, file), 'utf8');
  expect(
    files.filter((file) => top(file) === 'legacy' && /\b(SELECT|INSERT|UPDATE|DELETE)\b/.test(text(file))),
  ).toEqual([]);
  expect(files.filter((file) => text(file).includes('forwardRef'))).toEqual([]);
});

test('migrations import nothing from the service', () => {
  const files = readdirSync('migrations', { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const wrong = files.filter((file) => /from '\.\./.test(readFileSync(join('migrations', file), 'utf8')));
  expect(wrong).toEqual([]);
});

test('what hangs on a request or an answer is declared in one place', () => {
  const declaring = files.filter((file) => /^declare module/m.test(readFileSync(join(src, file), 'utf8')));
  expect(declaring).toEqual([join('platform', 'http', 'request.ts')]);
});
