import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

// Each group may import from the groups before it, and each folder from itself.
const ORDER = [
  ['config', 'formats'],
  ['database'],
  ['http'],
  ['caching'],
  ['auth'],
  ['operations', 'idempotency'],
  ['users'],
  ['games'],
  ['purchases', 'collections', 'wharf'],
  ['profile', 'credentials'],
  ['legacy'],
  ['accounts'],
  ['people'],
  ['webhooks'],
  ['selling'],
  ['importing'],
  ['process'],
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
  const wrong = importsOf(file).filter((to) => to.includes(sep) && !allowed(top(file), top(to)));
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
  const candidates = files.filter((file) => !file.startsWith(join('database', 'embedded')));
  const readers = candidates.filter((file) => /process\.env\b/.test(readFileSync(join(src, file), 'utf8')));
  expect(readers.toSorted()).toEqual([
    join('config', 'environment.ts'),
    join('database', 'data-source.cli.ts'),
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
  expect(declaring).toEqual([join('http', 'request.ts')]);
});
