import path from 'node:path';

/** Tests of rules that a change of these files can break, although nothing in their names says so. */
const ALSO = [
  [/^migrations\/|\.entity\.ts$/, ['test/platform/migrations.test.ts', 'test/platform/upgrade.test.ts']],
  [/\.(controller|dto)\.ts$/, ['test/api/authorization.test.ts', 'test/api/openapi.test.ts']],
];

/**
 * The tests to run after a change of some files. Every test starts the whole service, so the import graph would select
 * all of them. A source file selects the tests that import it, and those named after it or its folder:
 * src/collections/*.ts selects test/api/collections*.test.ts. `tests`: the text of each test by its path.
 */
export function selectTests(changed, tests) {
  const sources = changed.filter((name) => /^(src|migrations)\//.test(name));
  const words = new Set(
    sources
      .flatMap((name) => [...name.split('/').slice(1, -1), path.basename(name).split('.')[0]])
      .filter((word) => word.length > 2)
      .map((word) => word.replace(/s$/, '')),
  );
  const isNamedAfter = (test) => {
    const name = path.basename(test, '.test.ts');
    return [...words].some(
      (word) => name === word || name.startsWith(`${word}-`) || name.startsWith(`${word}s`),
    );
  };
  const also = ALSO.filter(([pattern]) => sources.some((name) => pattern.test(name))).flatMap(
    ([, names]) => names,
  );
  const imports = (text) => sources.some((name) => text.includes(`../${name.replace(/\.ts$/, '')}'`));
  return [...tests.keys()].filter(
    (test) => changed.includes(test) || also.includes(test) || isNamedAfter(test) || imports(tests.get(test)),
  );
}
