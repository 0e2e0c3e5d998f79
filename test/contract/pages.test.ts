import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const pages = [
  'README.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

const linkedFrom = (page: string) =>
  [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:)([^)#]+\.md)/g)].map(([, to]) =>
    normalize(join(dirname(page), to!)),
  );

test('every page can be reached from the README', () => {
  const reached = new Set(['README.md']);
  for (const page of reached) for (const to of linkedFrom(page)) if (pages.includes(to)) reached.add(to);
  expect(pages.filter((page) => !reached.has(page))).toEqual([]);
});
