import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

const PAGE = join('docs', 'contributing', 'architecture.md');

// The groups of folders, one per line of the page. Each may import from those before it, and each folder from itself. A
// folder inside another has the position of the longest path listed there.
const ORDER = [...readFileSync(PAGE, 'utf8').matchAll(/^src\/((?:[\w/]+\/(?:, )?)+) /gm)].map(([, folders]) =>
  folders!.match(/\w+(\/\w+)*/g)!,
);

// The ranks of the folders inside these. The files beside them are free, except for cycles.
const INSIDE: Record<string, string[][]> = {
  platform: [
    ['formats', 'errors'],
    ['config'],
    ['observability'],
    ['limits'],
    ['database'],
    ['input'],
    ['output'],
    ['server'],
    ['openapi'],
    ['operations'],
  ],
  auth: [['accounts', 'access'], ['keys'], ['jwt'], ['guards'], ['sign-in', 'oauth', 'identities']],
};

// Imports, the demo and the operator's changes to people concern records of all types, events are stored for
// webhooks, and a push creates a build with its upload. Every other folder writes only to its own tables.
const WRITE_EVERY_TABLE = ['operator/import', 'operator/people', 'events', 'dev/demo', 'push'];

const src = resolve('src');
const files = (readdirSync(src, { recursive: true }) as string[]).filter(
  (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
);
const rank = new Map(ORDER.flatMap((group, i) => group.map((folder) => [folder, i] as const)));

/** The imported files, without `.ts`. */
const readImports = (path: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(/(?:from|import|require)\s*\(?\s*'(\.[^']+)'/g)].map(([, to]) =>
    join(dirname(path), to!),
  );

const top = (path: string) => path.split(sep)[0]!;

/** The listed folder that contains a file. */
function position(path: string): string {
  const folders = path.split(sep).slice(0, -1);
  while (folders.length > 1 && !rank.has(folders.join('/'))) folders.pop();
  return folders.join('/');
}

function allowed(file: string, imported: string): boolean {
  const [from, to] = [position(file), position(imported)];
  // A module lists the parts of its folder.
  if (from === to || (file.endsWith('.module.ts') && to.startsWith(`${from}/`))) return true;
  const [a, b] = [rank.get(from), rank.get(to)];
  return a !== undefined && b !== undefined && b < a;
}

// A folder without a position is reported once, below, and not for each of its imports.
test.each(files.filter((file) => rank.has(position(file))))(
  '%s imports only from folders before it',
  (file) => {
    const wrong = readImports(join(src, file))
      .map((to) => relative(src, to))
      .filter((to) => to.includes(sep) && !allowed(file, to));
    expect(wrong).toEqual([]);
  },
);

/** The folders inside a folder, and which of them import which. */
function foldersIn(folder: string): Map<string, string[]> {
  const inside = files.filter((file) => file.startsWith(`${folder}/`)).map((file) => relative(folder, file));
  const graph = new Map<string, string[]>();
  for (const file of inside.filter((file) => file.includes(sep))) {
    const imported = readImports(join(src, folder, file))
      .map((to) => relative(join(src, folder), to))
      .filter((to) => to.includes(sep) && !to.startsWith('..') && top(to) !== top(file));
    graph.set(top(file), [...(graph.get(top(file)) ?? []), ...imported.map(top)]);
  }
  for (const to of [...graph.values()].flat()) if (!graph.has(to)) graph.set(to, []);
  return graph;
}

test.each(Object.entries(INSIDE))('the folders in %s import only from those before them', (folder, order) => {
  const position = new Map(order.flatMap((group, i) => group.map((name) => [name, i] as const)));
  const graph = foldersIn(folder);
  expect([...graph.keys()].filter((name) => !position.has(name))).toEqual([]);
  const wrong = [...graph].flatMap(([from, imported]) =>
    imported
      .filter((to) => !(position.get(to)! < position.get(from)!))
      .map((to) => `${folder}/${from} imports ${folder}/${to}`),
  );
  expect([...new Set(wrong)]).toEqual([]);
});

test('no folders inside another import each other', () => {
  const parents = [...new Set(files.map(dirname))].filter((folder) => folder !== '.');
  const cycles = parents.flatMap((folder) =>
    findCycles(foldersIn(folder)).map((cycle) => `${folder}: ${cycle.join(', ')}`),
  );
  expect(cycles).toEqual([]);
  expect(foldersIn('platform').size).toBeGreaterThan(5);
});

/** The files that import each other, directly or not, as one list per cycle. */
function findCycles(graph: Map<string, string[]>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (file: string) => {
    order.set(file, order.size);
    lowest.set(file, order.get(file)!);
    stack.push(file);
    for (const next of graph.get(file)!) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(next)!));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const cycle = stack.splice(stack.indexOf(file));
    if (cycle.length > 1) cycles.push(cycle.toSorted());
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return cycles;
}

/** The `.ts` files of a folder, with their imports of each other. */
function buildImportGraph(folder: string, names: string[]): Map<string, string[]> {
  const paths = names.map((name) => join(folder, name));
  const known = new Set(paths);
  return new Map(
    paths.map((path) => [
      path,
      readImports(path)
        .map((to) => `${to}.ts`)
        .filter((to) => known.has(to)),
    ]),
  );
}

test.each(['src', 'tools'])('no files in %s import each other, including type-only imports', (folder) => {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.split(sep).includes('node_modules'),
  );
  const graph = buildImportGraph(folder, names);
  expect([...graph.values()].flat().length).toBeGreaterThan(20);
  expect(findCycles(graph)).toEqual([]);
});

test('control: finds files that import each other', () => {
  const graph = new Map(Object.entries({ a: ['b'], b: ['c'], c: ['a'], d: ['a'] }));
  expect(findCycles(graph)).toEqual([['a', 'b', 'c']]);
});

test('the SQL of a folder writes only to its own tables', () => {
  const text = (file: string) => readFileSync(join(src, file), 'utf8');
  const owners = new Map(
    files.flatMap((file) => {
      const [, table] = /@Entity\('(\w+)'/.exec(text(file)) ?? [];
      return table ? [[table, top(file)] as const] : [];
    }),
  );
  const written = files
    .filter((file) => !WRITE_EVERY_TABLE.some((folder) => file.startsWith(`${folder}/`)))
    .flatMap((file) =>
      [...text(file).matchAll(/\b(?:INSERT INTO|DELETE FROM|UPDATE|TRUNCATE)\s+(\w+)/g)]
        .map(([, table]) => table!)
        .filter((table) => owners.has(table) && owners.get(table) !== top(file))
        .map((table) => `${file}: ${table}`),
    );
  expect(owners.size).toBeGreaterThan(25);
  expect(written).toEqual([]);
});

test('only config and the database are global modules', () => {
  const global = files.filter((file) =>
    /^@Global\(\)|global: true/m.test(readFileSync(join(src, file), 'utf8')),
  );
  expect(global.map(dirname).toSorted()).toEqual([join('platform', 'config'), join('platform', 'database')]);
});

test('no two classes share a name', () => {
  const names = files.flatMap((file) =>
    [...readFileSync(join(src, file), 'utf8').matchAll(/^export (?:abstract )?class (\w+)/gm)].map(
      ([, name]) => name!,
    ),
  );
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

test('every folder has a position', () => {
  const folders = new Set(files.filter((file) => file.includes(sep)).map(position));
  const missing = [...folders].filter((folder) => !rank.has(folder));
  const advice = missing.map(
    (folder) => `Add ${folder} to the folders in ${PAGE}, before folders that import it.`,
  );
  expect(advice).toEqual([]);
  expect(ORDER.flat().filter((folder) => !folders.has(folder))).toEqual([]);
});

// The embedded server passes its environment to PostgreSQL's programs; it reads no settings from it.
test('only the composition root reads the environment', () => {
  const candidates = files.filter((file) => !file.startsWith(join('dev', 'embedded')));
  const readers = candidates.filter((file) => /process\.env\b/.test(readFileSync(join(src, file), 'utf8')));
  expect(readers.toSorted()).toEqual([
    join('platform', 'config', 'environment.ts'),
    join('platform', 'database', 'data-source.cli.ts'),
  ]);
});

// The statements are in the service of the folder that owns the table.
test('pages, commands and the legacy API contain no SQL', () => {
  const SQL =
    /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|LOCK TABLE)\s|InjectRepository|EntityManager|createQueryBuilder|platform\/database\/(statement|database)'/;
  const usesSql = (file: string) => SQL.test(readFileSync(join(src, file), 'utf8'));
  const withoutSql = files.filter((file) => ['dashboard', 'commands', 'legacy'].includes(top(file)));
  // The runner connects.
  expect(withoutSql.filter(usesSql)).toEqual([join('commands', 'command-runner.ts')]);
  expect(files.filter(usesSql).length).toBeGreaterThan(50);
});

test('nothing needs forwardRef', () => {
  const text = (file: string) => readFileSync(join(src, file), 'utf8');
  expect(files.filter((file) => text(file).includes('forwardRef'))).toEqual([]);
});

test('timestamps of entities are text', () => {
  const text = (file: string) => readFileSync(join(src, file), 'utf8');
  expect(files.filter((file) => file.endsWith('.entity.ts') && text(file).includes("'timestamptz'"))).toEqual(
    [],
  );
});

test('migrations import nothing from the service', () => {
  const files = readdirSync('migrations', { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const wrong = files.filter((file) => /from '\.\./.test(readFileSync(join('migrations', file), 'utf8')));
  expect(wrong).toEqual([]);
});

test('properties added to requests and responses are declared in one place', () => {
  const declaring = files.filter((file) => /^declare module/m.test(readFileSync(join(src, file), 'utf8')));
  expect(declaring).toEqual([join('platform', 'server', 'request.ts')]);
});
