import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SECRET_NAMES, SETTING_NAMES } from '../../src/platform/config/settings';

const PAGES = ['SECURITY.md', 'docs/explanation/security.md', 'docs/explanation/security-asvs.md'];

const read = (file: string) => readFileSync(file, 'utf8');
const found = (page: string, pattern: RegExp) => [...read(page).matchAll(pattern)].map(([, ...rest]) => rest);

/** The anchor of a heading on platforms that render Markdown. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

const hasAnchor = (page: string, name: string) =>
  found(page, /^#+ (.+)$/gm).some(([heading]) => anchor(heading!) === name);

describe.each(PAGES)('%s', (page) => {
  test('names existing files and folders', () => {
    const paths = found(page, /`((?:src|test|docs|deploy|migrations|scripts)\/[\w./-]*)`/g);
    expect(paths.filter(([path]) => !existsSync(path!))).toEqual([]);
  });

  test('names existing settings', () => {
    const known = new Set([...SETTING_NAMES, ...SECRET_NAMES.map((name) => `${name}_FILE`)]);
    const settings = found(page, /`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g);
    expect(settings.filter(([name]) => !known.has(name!))).toEqual([]);
  });

  test('names existing scripts', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = found(page, /npm run (?:--silent )?([\w:-]+)/g);
    expect(named.filter(([name]) => !(name! in scripts))).toEqual([]);
  });

  test('links to existing pages and headings', () => {
    const links = found(page, /\]\((?!https:)([^)#]*)(?:#([^)]+))?\)/g);
    const wrong = links.filter(([to, name]) => {
      const target = to ? join(dirname(page), to) : page;
      return !existsSync(target) || (name !== undefined && !hasAnchor(target, name));
    });
    expect(wrong).toEqual([]);
  });

  test('quotes existing sections of other pages', () => {
    const quoted = found(page, /`(docs\/[\w-]+\.md)`, “([^”]+)”/g);
    expect(quoted.filter(([file, section]) => !read(file!).includes(section!))).toEqual([]);
  });
});

test('the ASVS page assesses each of the 253 requirements of levels 1 and 2 once and counts them', () => {
  const page = read('docs/explanation/security-asvs.md');
  const [summary = '', ...sections] = page.split(/^## /m);
  const states = ['not met', 'documented', 'met', 'not applicable'];
  const assessed = sections.map((section) =>
    [...section.matchAll(/^\| (V\d[^|]*)/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/V(\d+\.\d+)\.([\d–, ]*\d)/g)].flatMap(([, group, numbers]) =>
        numbers!.split(', ').flatMap((range) => {
          const [first = 0, last = first] = range.split('–').map(Number);
          return Array.from({ length: last - first + 1 }, (_, i) => `${group!}.${first + i}`);
        }),
      ),
    ),
  );
  expect(new Set(assessed.flat()).size).toBe(253);
  expect(assessed.flat()).toHaveLength(253);
  const counts = states.map((state) =>
    Number(new RegExp(`^\\| ${state} +\\| (\\d+)`, 'm').exec(summary)?.[1]),
  );
  expect(counts).toEqual(assessed.map(({ length }) => length));
});

test('only webhooks, file storage, the identity provider and the trace exporter send HTTP requests', () => {
  const sources = (readdirSync('src', { recursive: true }) as string[]).filter((file) =>
    file.endsWith('.ts'),
  );
  const matching = (pattern: RegExp) => sources.filter((file) => pattern.test(read(join('src', file))));
  expect(
    matching(
      /(?<!\.)\bfetch\([^)]|\bglobalThis\.fetch\b|\bhttps?\.(?:get|request)\(|\bnode:http2|'(?:undici|axios|got|node-fetch)'|import\('node:http|\b(?:get|request)\b[^}]*} from 'node:http/,
    ),
  ).toEqual([
    join('auth', 'identities', 'identity-provider.ts'),
    join('operator', 'webhooks', 'send.ts'),
    join('uploads', 'storage', 's3-storage.ts'),
  ]);
  expect(matching(/import\('openid-client'\)|^import (?!type).* from 'openid-client'/m)).toEqual([
    join('auth', 'identities', 'identity-provider.ts'),
  ]);
  expect(matching(/exporter-trace-otlp-http/)).toEqual([
    join('platform', 'operations', 'tracing.service.ts'),
  ]);
});
