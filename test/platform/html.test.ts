import fc from 'fast-check';
import { fitsHtmlLimit, sanitizeHtml } from '../../src/collections/html';
import { ATTACKS } from '../support/html-attacks';

const ALLOWED = new Set(
  `p br hr h1 h2 h3 h4 h5 h6 blockquote pre code b strong i em u s del ins sub sup small mark ul ol li a img`.split(
    ' ',
  ),
);
const ATTRIBUTES: Record<string, RegExp> = {
  'a href': /^(https?:\/\/|mailto:)/i,
  'a title': /^/,
  'a rel': /^nofollow noopener noreferrer ugc$/,
  'img src': /^https:\/\//i,
  'img alt': /^/,
  'img title': /^/,
  'img width': /^/,
  'img height': /^/,
  'ol start': /^/,
  'ol reversed': /^/,
};

/** Parses the result with a minimal grammar in which nothing can hide, and lists what isn't allowed. */
function disallowedMarkup(html: string): string[] {
  const found: string[] = [];
  const rest = html.replace(
    /<\/?([a-z][a-z0-9]*)((?: [a-z-]+(?:="[^"<>]*")?)*)(?: \/)?>/g,
    (_, tag: string, attributes: string) => {
      if (!ALLOWED.has(tag)) found.push(tag);
      for (const [, name, value = ''] of attributes.matchAll(/ ([a-z-]+)(?:="([^"]*)")?/g))
        if (!ATTRIBUTES[`${tag} ${name}`]?.test(value)) found.push(`${tag} ${name}=${value}`);
      if (tag === 'a' && attributes !== '' && !attributes.includes(' rel="')) found.push('a without rel');
      return '';
    },
  );
  if (/[<>]/.test(rest)) found.push(`text ${rest}`);
  return found;
}

test.each([
  ['words alone', 'words alone'],
  ['a & b < c', 'a &amp; b &lt; c'],
  ['<b>bold</b> and <script>alert(1)</script>', '<b>bold</b> and'],
  ['<B>bold', '<b>bold</b>'],
  [
    '<a href="https://a.example/?x=1&y=2">a</a>',
    '<a href="https://a.example/?x=1&amp;y=2" rel="nofollow noopener noreferrer ugc">a</a>',
  ],
  [
    '<a href="https://a.example" rel="opener" target="_blank" onclick="x()">a</a>',
    '<a href="https://a.example" rel="nofollow noopener noreferrer ugc">a</a>',
  ],
  ['<a href="/relative">a</a>', 'a'],
  ['<a href="//other.example">a</a>', 'a'],
  ['<a href="javascript:alert(1)">a</a>', 'a'],
  ['<a href="java&#10;script:alert(1)">a</a>', 'a'],
  ['<a href=" &#1; javascript:alert(1)">a</a>', 'a'],
  ['<a href="data:text/html,<script>alert(1)</script>">a</a>', 'a'],
  [
    '<a href="mailto:a@b.example">a</a>',
    '<a href="mailto:a@b.example" rel="nofollow noopener noreferrer ugc">a</a>',
  ],
  [
    '<img src="https://i.example/a.png" alt="A" onerror="x()">',
    '<img src="https://i.example/a.png" alt="A" />',
  ],
  ['<img src="http://i.example/a.png">x', 'x'],
  ['<img src="data:image/svg+xml,<svg onload=alert(1)>">x', 'x'],
  ['<p style="position:fixed" class="x" id="y">p</p>', '<p>p</p>'],
  ['<ul><li>one<li>two</ul>', '<ul><li>one</li><li>two</li></ul>'],
  ['<h1>x</h1><iframe src="https://x.example">y</iframe>', '<h1>x</h1>'],
  ['<unknown>kept words</unknown>', 'kept words'],
])('%s', (html, clean) => {
  expect(sanitizeHtml(html)).toBe(clean);
});

test.each([
  '',
  '   ',
  '<script>alert(1)</script>',
  '<!-- x -->',
  '<style>p{}</style>',
  '<svg><p>x</p></svg>',
])('removes all of %p', (html) => {
  expect(sanitizeHtml(html)).toBeNull();
});

test.each(ATTACKS)('keeps only allowed markup of %s', (html) => {
  const clean = sanitizeHtml(html);
  expect(disallowedMarkup(clean ?? '')).toEqual([]);
  expect(clean === null ? null : sanitizeHtml(clean)).toBe(clean);
});

test("control: the test's parser reports disallowed markup", () => {
  expect(disallowedMarkup('<b>x</b><script>y</script>')).toEqual(['script', 'script']);
  expect(disallowedMarkup('<img src="http://x" />')).toEqual(['img src=http://x']);
  expect(disallowedMarkup('<b onclick="x">')).toEqual(['b onclick=x']);
});

test('is idempotent for any mixture of markup', () => {
  const scrap = fc.constantFrom(
    ...ATTACKS.flatMap((attack) => attack.match(/<[^>]*>?|[^<]+/g)!),
    ...[
      '<a href="https://x.example">',
      '</a>',
      '<b>',
      '</b>',
      '<p>',
      '<li>',
      '&',
      '&amp;',
      '&#60;',
      '&#x3c;script&#62;',
      ' ',
      '<',
      '>',
      '"',
      '\n',
      '😀',
    ],
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(scrap, fc.string({ maxLength: 6 })), { maxLength: 20 }), (scraps) => {
      const clean = sanitizeHtml(scraps.join(''));
      expect(disallowedMarkup(clean ?? '')).toEqual([]);
      if (clean !== null) expect(sanitizeHtml(clean)).toBe(clean);
    }),
    { numRuns: 2000 },
  );
});

test('keeps the text of markup nested too deep', () => {
  expect(sanitizeHtml(`${'<b>'.repeat(1000)}deep &amp; <i>low</i>`)).toBe('deep &amp; low');
});

test('limits code points', () => {
  expect(fitsHtmlLimit('😀'.repeat(20_000))).toBe(true);
  expect(fitsHtmlLimit('😀'.repeat(20_001))).toBe(false);
  expect(fitsHtmlLimit(null)).toBe(true);
});
