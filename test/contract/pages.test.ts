import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { demoRecords } from '../../src/dev/demo/demo';

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

test.each(pages)('the examples of %s use users and games of the demo store or of the page itself', (page) => {
  const text = readFileSync(page, 'utf8');
  const ofPage = [...text.matchAll(/^ *(\{"type":"(?:user|game)",.*\})$/gm)].map(
    ([, line]) => JSON.parse(line!) as Record<string, unknown>,
  );
  const known = new Set<unknown>();
  for (const { type, id, username, slug } of [...demoRecords({}), ...ofPage] as Record<string, unknown>[])
    if (type === 'user') known.add(username);
    else if (type === 'game') known.add(`game ${String(id)}`).add(slug);
  for (const [, name] of text.matchAll(/users create ([a-z][\w-]*)/g)) known.add(name);
  for (const [, title] of text.matchAll(/games create .*--title "([^"]+)"/g))
    known.add(title!.toLowerCase().replaceAll(' ', '-'));
  const named = [
    ...[...text.matchAll(/(?<!runuser )--user ([a-z][\w-]*)/g)].map(([, user]) => user!),
    ...[...text.matchAll(/(?:--game |game_id=)(\d+)/g)].map(([, id]) => `game ${id!}`),
    ...[...text.matchAll(/(?:--game |target=)([a-z][\w-]*)\/([\w-]+)/g)].flatMap(([, user, game]) => [
      user!,
      game!,
    ]),
  ];
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test('the generated reference pages are up to date', () => {
  const run = (...words: string[]) => execFileSync(process.execPath, words, { stdio: 'pipe' });
  run('tools/scripts/compile.mjs');
  run('tools/scripts/docs-reference.mjs', '--check');
});
