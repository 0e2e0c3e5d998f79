import { readFileSync } from 'node:fs';

test('names and files in “Where things are” of the architecture page exist', () => {
  const section = readFileSync('docs/contributing/architecture.md', 'utf8')
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
