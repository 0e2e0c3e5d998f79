import fc, { type Arbitrary } from 'fast-check';
import type { Json } from '../../test/support/world/json';
import type { Operation, Parameter, Schema } from './operations';
import {
  userEmails,
  BUILDS,
  gameDetails,
  tenantDownloadKeys,
  spareGames,
  spareKeys,
  type Tenant,
  USERS,
} from '../../test/support/world/world';

/** Marks hostile texts, so that an echo of one is recognized. */
export const ECHO = 'zQ7xEcho';

const words = (text: string) => text.split(' ');

const NEAR_INTEGERS: Json[] = [
  ...words('0 2147483648 9007199254740991 9007199254740992 9007199254740993 9223372036854775807'),
  ...words('9223372036854775808 18446744073709551616 00000000000000000001 -1 -0 +5 1.0 1.5 1e3 0x10'),
  ...words('٣ １２ 1_000 1,000 NaN Infinity null true 501 1e30'),
  ...['', ' ', ' 12', '12 ', -1, 1.5, 1e30, true, null, [1], {}, [], 9007199254740993, 500.0],
];

const NEAR_BOOLEANS: Json[] = [
  ...words('TRUE Yes oFF 2 y null'),
  ...['', ' true', 1, 0, 2, null, [true], {}],
];

const NEAR_LISTS: Json[] = [
  ...words(
    '[] [1,1] [1 1,2 [01] [1.0] [1e2] [-1] ["1"] [1,] [,1] [[1]] {} null [null] [9223372036854775808]',
  ),
  ...['', '[ ]', '[1\u00a0,2]', ' [1 , 2]\n', '[9007199254740993,9007199254740992]'],
  ...[[], [1, 1], [1.5], [-1], ['1'], [null], [[1]], {}, null, '1', 1],
];

const NEAR_TIMESTAMPS: Json[] = [
  ...words('2024-02-03 2024-02-03T04:05:06 2024-02-30T00:00:00Z 1706933106 now infinity -infinity'),
  ...words('2024-02-03T24:00:00Z 2024-02-03T04:60:00Z 0999-01-01T00:00:00Z 2024-02-03t04:05:06Z'),
  ...words('2024-02-03T04:05:06+0200 ２０２４-02-03T04:05:06Z'),
  ...['', '2024-02-03 04:05:06Z', '2024-02-03T04:05:06 02:00', 0, null, []],
];

const HOSTILE_TEXTS = [
  ...[
    '\0',
    'a\0b',
    '\ud800',
    'x\udfffy',
    '\u202e',
    '\ufeff',
    '\ufffd',
    '\n',
    '\t',
    '\u2028',
    '\u0085',
    ' ',
    '  ',
    '',
  ],
  ...[
    "' OR 1=1 --",
    '"; DROP TABLE users; --',
    '\r\nX-Injected: 1',
    '[object Object]',
    '"><img src=x onerror=alert(1)>',
  ],
  ...words("' $1 %s%n \\ \\x00 ${7*7} {{7*7}} $$ <script>alert(1)</script> javascript:alert(1)"),
  ...words('</textarea><svg/onload=1> ../../etc/passwd __proto__ constructor toString hasOwnProperty'),
  ...words('١٢٣ NaN undefined null %00 % + & = # ; ? / // .. . ﬀ İ ß K'),
  ...['😀'.repeat(61), 'e\u0301'.repeat(40), 'a'.repeat(61), 'a'.repeat(60)],
];

/** HTML that has broken sanitizers. */
export const HOSTILE_HTML = [
  '<p>fine <b>and bold</b></p>',
  '<a href="https://example.com/" onclick="x()">link</a>',
  '<a href="java&#10;script:alert(1)">x</a>',
  '<a href="data:text/html,<script>1</script>">x</a>',
  '<img src=x onerror=alert(1)>',
  '<img src="https://example.com/a.png" srcset="http://x/ 1x" alt="&quot;onload=">',
  '<svg><style><img src=x onerror=alert(1)></style></svg>',
  '<math><mtext><table><mglyph><style><img src=x onerror=1>',
  '<noscript><p title="</noscript><img src=x onerror=1>">',
  '<form><math><mtext></form><form><mglyph><svg><mtext><style><path id="</style><img onerror=1 src>">',
  '<scr<script>ipt>alert(1)</scr</script>ipt>',
  '<!--><img src=x onerror=1>-->',
  '<![CDATA[<script>1</script>]]>',
  '<p style="background:url(javascript:1)" class=x id=y>p</p>',
  '<ul><li>1<li>2</ul><ol start=3 reversed><li></ol>',
  '<b><i>mis</b>nested</i>',
  'a < b & c > d &amp; &lt;script&gt; &#60;script&#62;',
  '&amp;lt;script&amp;gt;',
  '<iframe src=//x></iframe><object data=x></object><base href=//x>',
  '<a href="//evil.example">x</a><a href="/x">y</a><a href=" https://x.example ">z</a>',
  '<p>'.repeat(60) + 'deep' + '</p>'.repeat(60),
  '<b>'.repeat(600),
  `${'<'.repeat(300)}`,
  '<textarea><script>1</script></textarea><option><script>',
  '<style>@import "x"</style><link rel=stylesheet href=x><meta http-equiv=refresh content=0>',
];

// No row has one of these; other values may be rows of other tenants.
const integers = fc.integer({ min: 1, max: 900 });

const text = (schema: Schema): Arbitrary<Json> =>
  schema.description?.startsWith('HTML')
    ? fc.oneof(
        fc.constantFrom(...HOSTILE_HTML),
        fc
          .array(fc.constantFrom(...HOSTILE_HTML, 'text', '\n', '<', '>', '"', '&'), { maxLength: 4 })
          .map((parts) => parts.join('')),
        fc.string({ unit: 'grapheme-ascii', maxLength: 40 }),
      )
    : fc.string({ unit: 'grapheme', minLength: Math.max(1, schema.minLength ?? 1), maxLength: 20 });

/** A value that fits the schema and, if possible, identifies an existing object. */
function goodValue({ name, schema }: Parameter, operation: Operation, tenant: Tenant): Arbitrary<Json> {
  const known = KNOWN[name]?.(tenant, operation);
  if (known)
    return fc.oneof(
      { arbitrary: fc.constantFrom(...known), weight: 9 },
      { arbitrary: bySchema(schema), weight: 1 },
    );
  return bySchema(schema);
}

function bySchema(schema: Schema): Arbitrary<Json> {
  if (schema.enum) return fc.constantFrom(...(schema.enum as Json[]));
  switch (schema.type) {
    case 'integer':
      return fc.oneof(
        fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 900 }),
        integers.map(String),
      );
    case 'boolean':
      return fc.constantFrom<Json>('true', 'false', '1', '0', 'on', 'off', 'YES', 'no', true, false);
    case 'array':
      return fc
        .uniqueArray(integers, { maxLength: 8 })
        .chain((ids) => fc.constantFrom<Json>(ids, JSON.stringify(ids)));
    default:
      return schema.format === 'date-time'
        ? fc.constantFrom<Json>('2024-02-03T04:05:02Z', '1999-12-28T23:59:59-09:30')
        : text(schema);
  }
}

// The first game is the most likely, because it has buyers of every type.
const games = (tenant: Tenant): Json[] =>
  [1, 1, 1, 1, ...tenant.games.map(({ id }) => id - tenant.base)].flatMap((n): Json[] => [
    tenant.base + n,
    String(tenant.base + n),
  ]);

const changesGames = ({ method, path }: Operation) =>
  method === 'POST' && /^\/games\/\{game_id\}(\/delete)?$/.test(path);

/** Values that identify objects in the tenant's store. */
const KNOWN: Record<string, (tenant: Tenant, operation: Operation) => Json[]> = {
  game_id: (tenant, operation) =>
    changesGames(operation) ? spareGames(tenant).map(({ id }) => id) : games(tenant),
  user_id: (tenant) => USERS.flatMap((n): Json[] => [tenant.user(n), String(tenant.user(n))]),
  collection_id: (tenant) => [1, 2].map((n) => String(tenant.base + n)),
  upload_id: (tenant) => [1, 2].map((n) => String(tenant.base + n)),
  build_id: (tenant) => [1, 2].map((n) => String(tenant.base + n)),
  file_type: () => ['archive'],
  sub_type: () => ['default'],
  email: (tenant) => [
    ...USERS.flatMap((n) => userEmails(tenant, n).map(({ email }) => email)),
    tenant.email(1).toUpperCase(),
    'nobody@mail.fuzz.example',
    'bob@elsewhere.example',
  ],
  download_key: (tenant) => tenantDownloadKeys(tenant).map(({ key }) => key),
  // Requests that revoke a key get one that no lookup expects.
  download_key_id: (tenant, { path }) =>
    path.endsWith('/revoke') ? spareKeys(tenant).map(({ id }) => id) : [tenant.base + 1],
  count: () => [1, '2', 3],
  key: (tenant) => spareKeys(tenant).map(({ key }) => key),
  channel: () => ['windows', 'linux-universal'],
  channel_name: () => BUILDS.map(({ channel_name }) => channel_name),
  target: (tenant) =>
    tenant.games.map(
      (game) => `${tenant.username(game.owner - tenant.base)}/${gameDetails(game, tenant).slug}`,
    ),
  scope: () => ['profile:me', 'profile:me ', 'profile', 'profile:me profile:me', 'collection:view'],
  client_id: (tenant) => [tenant.clientId],
  grant_type: () => ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  code_challenge: () => ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'],
  code_challenge_method: () => ['S256'],
  page: () => [1, '1', 2, '3', 1000, '9007199254740991'],
  per_page: () => [1, '1', 2, 100, '500'],
  since: () => [
    '2024-02-03T04:05:03Z',
    '2024-02-03T06:05:04+02:00',
    '2024-02-03T04:05:01.5Z',
    '1000-01-01T00:00:00Z',
  ],
};

const nearMisses = ({ type, format }: Schema) =>
  format === 'date-time' ? NEAR_TIMESTAMPS : NEAR[String(type)];
const NEAR: Record<string, Json[]> = { integer: NEAR_INTEGERS, boolean: NEAR_BOOLEANS, array: NEAR_LISTS };

const hostile: Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(...HOSTILE_TEXTS),
  fc.string({ unit: 'binary', maxLength: 30 }).map((noise) => `${ECHO}${noise}`),
  fc.constantFrom<Json>(null, true, 0, -1, 1.5, [], {}, [[]], { a: 1 }, ECHO.repeat(50)),
);

/** Mostly valid values, some that are just outside the limits, and some hostile ones. */
export const arbitraryValue = (parameter: Parameter, operation: Operation, tenant: Tenant): Arbitrary<Json> =>
  fc.oneof(
    { arbitrary: goodValue(parameter, operation, tenant), weight: 20 },
    { arbitrary: fc.constantFrom(...(nearMisses(parameter.schema) ?? HOSTILE_TEXTS)), weight: 2 },
    { arbitrary: hostile, weight: 1 },
  );

/** Text that is already percent-encoded, correctly or not. */
export const rawValue = fc.constantFrom(
  ...words('%ff % %E0%A4%A %00 %c0%80 %ed%a0%80 a+b %2B + %u0041 %zz 1%20 %31 %F0%9F%98%80'),
);

export const pathValue = (parameter: Parameter, operation: Operation, tenant: Tenant): Arbitrary<string> =>
  fc.oneof(
    { arbitrary: goodValue(parameter, operation, tenant).map(String), weight: 14 },
    {
      arbitrary: fc.constantFrom(...NEAR_INTEGERS.filter((one): one is string => typeof one === 'string')),
      weight: 1,
    },
    {
      arbitrary: hostile.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))),
      weight: 1,
    },
  );
