import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { APP_GUARD } from '@nestjs/core';
import { AppModule } from '../../src/app.module';

const page = readFileSync('docs/explanation/requests.md', 'utf8');
const sources = (readdirSync('src', { recursive: true }) as string[])
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ path: join('src', file), text: readFileSync(join('src', file), 'utf8') }));

const sectionOf = (heading: string) => page.split(/^##+ /m).find((one) => one.startsWith(`${heading}\n`))!;
const firstCells = (heading: string) =>
  [...sectionOf(heading).matchAll(/^\| `([^`]+)`/gm)].map(([, cell]) => cell!);
const having = (pattern: RegExp) => sources.filter(({ text }) => pattern.test(text)).map(({ path }) => path);

test('the page has the global guards in their order, and names every other one', () => {
  const providers = Reflect.getMetadata('providers', AppModule) as {
    provide: unknown;
    useClass?: { name: string };
    useExisting?: { name: string };
  }[];
  const guards = providers.filter(({ provide }) => provide === APP_GUARD);
  expect(firstCells('The guards')).toEqual(
    guards.map(({ useClass, useExisting }) => (useClass ?? useExisting)!.name),
  );
  const unnamed = having(/implements CanActivate/).filter(
    (path) => !sectionOf('The guards').includes(`\`${path}\``),
  );
  expect(unnamed).toEqual([]);
});

test('what the page about the architecture says where things are is there', () => {
  const section = readFileSync('docs/explanation/architecture.md', 'utf8')
    .split(/^## /m)
    .find((one) => one.startsWith('Where things are\n'))!;
  const inCode = (cell: string) => [...cell.matchAll(/`(\w[\w./-]*)/g)].map(([, name]) => name!);
  const rows = [...section.matchAll(/^\| (?!question|-)[^|]+ \| ([^|]+) \| ([^|]+) \|$/gm)];
  expect(rows.length).toBeGreaterThan(8);
  const missing = rows.flatMap(([, names, files]) => {
    const text = inCode(files!)
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    return inCode(names!).filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
  });
  expect(missing).toEqual([]);
});

test('the page has every place where an error becomes an answer', () => {
  const places = having(/\b(?:answerError|sendFailure|envelope)\(|implements ExceptionFilter/);
  expect(firstCells('Where an error becomes an answer').toSorted()).toEqual(
    places.filter((path) => path !== join('src', 'platform', 'http', 'answer.ts')).toSorted(),
  );
});
