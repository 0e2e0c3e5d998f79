import fc, { type Arbitrary } from 'fast-check';
import type { Field } from './ask';
import { messageOf } from './ask';
import { headerOf } from './client';
import { excerpt, Finding } from './oracles';
import type { Target } from './target';
import { ECHO, rawValue } from './values';

/** A request for an account page by somebody who is not signed in, or whose session is nobody's. */
export interface PageAsk {
  operation: string;
  path: Record<string, string>;
  fields: Field[];
  cookie: boolean;
  headers: [string, string][];
}

const PAGES: [string, ...string[]][] = [
  ['GET /login', 'return_to'],
  ['POST /login', 'username', 'password', 'return_to', 'form_token'],
  ['POST /logout', 'form_token'],
  ['GET /user/oauth', 'client_id', 'redirect_uri', 'response_type', 'scope', 'state', 'code_challenge'],
  ['POST /user/oauth', 'client_id', 'redirect_uri', 'decision', 'form_token'],
  ['GET /user/oauth/device', 'code'],
  ['POST /user/oauth/device', 'code', 'decision', 'form_token'],
  ['GET /user/oauth/result'],
  ['GET /user/settings'],
  ['GET /user/settings/api-keys'],
  ['POST /user/settings/api-keys', 'label', 'reach', 'expires', 'expires_on', 'form_token'],
  ['GET /user/settings/api-keys/{id}'],
  ['POST /user/settings/api-keys/{id}', 'label', 'form_token'],
  ['GET /user/settings/api-keys/{id}/revoke'],
  ['POST /user/settings/api-keys/{id}/revoke', 'form_token'],
  ['GET /user/settings/authorized-apps/{id}/revoke'],
  ['GET /user/settings/collections', 'page'],
  ['POST /user/settings/collections/{id}/on-profile', 'on', 'form_token'],
  ['GET /user/settings/data'],
  ['POST /user/settings/data', 'password', 'form_token'],
  ['GET /user/settings/oauth-apps/{id}'],
  ['POST /user/settings/oauth-apps/{id}', 'name', 'redirect_uris', 'form_token'],
  ['GET /docs'],
  ['POST /docs/key', 'form_token'],
  ['GET /assets/{id}'],
];

const text = fc.oneof(
  fc.constantFrom(
    ...[
      `<script>${ECHO}</script>`,
      `"><img src=x onerror=${ECHO}>`,
      '//evil.example',
      '/\\evil.example',
      'javascript:1',
    ],
    ...[
      'https://application.fuzz.example/callback',
      'fuzz-application-0',
      'code',
      'token',
      'profile:me',
      'x'.repeat(9000),
    ],
    ...[
      '\0',
      '\ud800',
      '',
      ' ',
      '1',
      '999999999999999999999',
      '../..',
      '%0d%0aX-Injected: 1',
      '\r\nX-Injected: 1',
      'S256',
    ],
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
);

export const pageAsks: Arbitrary<PageAsk> = fc.oneof(
  ...PAGES.map(([operation, ...names]) =>
    fc.record({
      operation: fc.constant(operation),
      path: operation.includes('{id}') ? fc.record({ id: text }) : fc.constant({}),
      fields: fc
        .tuple(...names.map((name) => fc.option(fieldOf(name, operation), { nil: undefined, freq: 4 })))
        .map((all) => all.filter((one) => one !== undefined)),
      cookie: fc.boolean(),
      headers: fc.oneof(
        fc.constant<[string, string][]>([]),
        fc.constantFrom<[string, string][]>(
          [['Origin', 'https://evil.example']],
          [['Sec-Fetch-Site', 'cross-site']],
        ),
      ),
    }),
  ),
);

function fieldOf(name: string, operation: string): Arbitrary<Field> {
  const place = operation.startsWith('GET') ? ('query' as const) : ('body' as const);
  return fc.oneof(
    {
      arbitrary: fc.record({
        name: fc.constantFrom(name, name, name, `${name}[]`),
        value: text,
        place: fc.constant(place),
      }),
      weight: 9,
    },
    {
      arbitrary: fc.record({
        name: fc.constant(name),
        value: rawValue,
        place: fc.constant(place),
        raw: fc.constant(true),
      }),
      weight: 1,
    },
  );
}

const COOKIE = `gamewharf_session=${'A'.repeat(43)}`;

export async function runPage(target: Target, { cookie, ...page }: PageAsk): Promise<void> {
  const headers: [string, string][] = [['Accept', 'text/html'], ...page.headers];
  if (cookie) headers.push(['Cookie', COOKIE]);
  const ask = { ...page, headers, credential: '', scheme: '', encoding: 'form' as const };
  const template = page.operation.split(' ')[1]!;
  const { answer } = await target.send(messageOf(ask, ''), { page: template });
  const fail = (what: string): never => {
    throw new Finding('page', `${page.operation} ${what}`, excerpt(answer));
  };
  if (![200, 303, 304, 400, 403, 404, 405, 413, 414, 415, 429, 431].includes(answer.status))
    fail(`answers ${answer.status}`);
  if (/<script>|<img src=x|onerror=\w+>/.test(answer.body)) fail('shows markup that it was sent');
  const location = headerOf(answer, 'location');
  if (location !== undefined && !/^\/(?![/\\])/.test(location)) fail(`leads to ${location.slice(0, 60)}`);
}
