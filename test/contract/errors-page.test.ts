import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const page = readFileSync('docs/reference/errors.md', 'utf8');

/** The errors in these folders are for people, or described in docs/reference/oauth.md. */
const PAGES = /^(dashboard|dev[/\\]mock|auth[/\\]oauth)[/\\]/;

/** An error with its status, and a text without or with inserted values. */
const ERROR =
  /\b(?:[aA]piError\((\d{3}), |(badRequest|forbidden|invalid|insufficient)\()\[?(?:'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`)/g;
const STATUSES: Record<string, string> = {
  badRequest: '400',
  forbidden: '403',
  invalid: '401',
  insufficient: '403',
};

/** Forms of text that share one row on the page. */
const PATTERNS = [/ must be /, / does not permit /];

function errorsIn(file: string): { status: string; text: string }[] {
  return [...readFileSync(join('src', file), 'utf8').matchAll(ERROR)].map(
    ([, status, name, single, double, template]) => ({
      status: status ?? STATUSES[name!]!,
      text: (single ?? double ?? template)!.replace(/^\$\{HEADER\}/, 'Idempotency-Key'),
    }),
  );
}

const errors = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !PAGES.test(file))
  .flatMap(errorsIn)
  .filter(({ text }) => !text.includes('${') && !PATTERNS.some((one) => one.test(text)));

test('the page of errors lists every text of the API with its status', () => {
  expect(errors.length).toBeGreaterThan(40);
  const rows = page.split('\n').map((row) => row.split('|').slice(1, 3));
  const missing = errors.filter(
    ({ status, text }) => !rows.some(([of, texts]) => of?.includes(status) && texts!.includes(`\`${text}\``)),
  );
  expect(missing).toEqual([]);
});
