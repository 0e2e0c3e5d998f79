// The tables of the generated reference pages, from the build in dist.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { getMetadataArgsStorage } from 'typeorm';

const load = createRequire(import.meta.url);
const of = (path) => load(`../../dist/src/${path}.js`);

const GENERATED_END = '<!-- end of the written part -->';
export const WRITTEN = '<!-- Written by `npm run docs:reference`: change the code it comes from. -->';
const cell = (text) => String(text).replaceAll('|', '\\|');
export const table = (...rows) =>
  [rows[0], rows[0].map(() => '---'), ...rows.slice(1)]
    .map((row) => `| ${row.map(cell).join(' | ')} |`)
    .join('\n');
export const code = (text) => (text === '' ? '' : `\`${text}\``);

const number = (value) => value.toLocaleString('en-US');

/** Each label with its values, if they are known before the first request. */
function formatLabels(series, labels) {
  return labels
    .map((label) => {
      const values = [...new Set(series.map((one) => one.labels[label]))];
      return values.length ? `${code(label)} (${values.map(code).join(', ')})` : code(label);
    })
    .join(', ');
}

const kib = (value) => (value % 1024 ** 2 ? `${value / 1024} KiB` : `${value / 1024 ** 2} MiB`);
const seconds = (ms) => `${ms / 1000} s`;
const rate = ({ count, period_ms }) => `${number(count)} in ${period_ms / 1000} s`;

const COUNTED_RATES = {
  user: 'requests with any credential of a user; three times `credential`',
  credential: 'requests with an API key; a JWT counts for the API key that created it',
  address: 'requests without a valid credential, and requests for unknown paths, by IP address',
  misses:
    'lookups without a result: of download keys and purchases, by user; of links and pages of download keys, by IP address',
  'sign-in': 'sign-in attempts on the account pages, by IP address',
};

/** The page with new tables in its marked places. */
const fillPlaces = (page, tables) =>
  Object.entries(tables).reduce((text, [name, rows]) => {
    const place = new RegExp(`(<!-- ${name}: npm run docs:reference -->)[^]*?(<!-- end -->)`);
    if (!place.test(text)) throw new Error(`a page has no place for the table “${name}”`);
    return text.replace(place, (_, start, end) => `${start}\n\n${rows}\n\n${end}`);
  }, page);

/** The page about limits with regenerated tables, and the text between them. */
export function limitsPage(page) {
  const { Settings } = of('platform/config/settings');
  const { MAX_IN_FLIGHT, MAX_CONNECTIONS } = new Settings();
  const [admission, front] = ['admission', 'request-gate'].map((name) => of(`platform/server/${name}`));
  const { MAX_BODY_BYTES, MAX_FORM_BYTES, MAX_FIELDS } = of('platform/input/body');
  const { MAX_SMALL_RECORDS, MAX_SMALL_BYTES } = of('operator/import/import-size');
  const { QUEUES, SMALL_IMPORT_WAIT_MS, MAX_BUFFERED_BYTES } = of('operator/import/import-limits');
  const lists = of('platform/output/list-streams');
  const concurrency = of('platform/limits/concurrency-limit');
  const files = of('uploads/file-responses');
  const parts = of('uploads/sessions/upload-sessions.controller');
  const { MAX_HTML_CHARACTERS, SHORT_HTML_CHARACTERS } = of('collections/html');
  const { LONG_HTML_REQUESTS } = of('collections/long-html.interceptor');
  const deliveries = of('operator/webhooks/webhook-deliveries.service');
  const webhooks = of('operator/webhooks/webhooks.service');
  const { MESSAGES_NOW } = of('operator/webhooks/user-webhooks.service');
  const limits = (...rows) => table(['limit', 'value', 'beyond the limit'], ...rows);
  const rates = Object.entries(of('platform/config/rate-limits').parseRateLimits('')).map(([name, one]) => [
    code(name),
    rate(one),
    COUNTED_RATES[name],
  ]);
  const places = {
    'rate limits': table(['limit', 'default', 'counts'], ...rates),
    'concurrency limits': table(
      ['limit', 'value', 'counts'],
      [
        code('requests'),
        `${number(MAX_IN_FLIGHT)}, set by \`MAX_IN_FLIGHT\``,
        'running and waiting requests; not while their body arrives',
      ],
      [
        code('uploads'),
        kib(admission.MAX_UPLOAD_BYTES),
        'bytes of request bodies that are arriving, by `Content-Length`, at least 16 KiB each',
      ],
      [
        code('health'),
        number(admission.MAX_HEALTH),
        'requests for `/health/live` and `/health/ready`, which never wait for other requests',
      ],
      [code('connections'), `${number(MAX_CONNECTIONS)}, set by \`MAX_CONNECTIONS\``, 'open connections'],
    ),
    'concurrency limits of a client': table(
      ['limit', 'value'],
      ['requests in flight on one connection', number(front.MAX_PIPELINED)],
      ['running requests of one IP address, while others send requests', number(concurrency.PER_CLIENT)],
      ['wait before a request starts', seconds(admission.WAIT_TIMEOUT_MS)],
      ['files that one IP address downloads from a local folder at a time', number(files.FILES_EACH)],
      ['files that all clients download from a local folder at a time', 'a quarter of `MAX_CONNECTIONS`'],
      ['wait before a download starts', seconds(concurrency.MAX_WAIT_MS)],
      ['parts of files that one IP address uploads at a time', number(parts.PARTS_EACH)],
      [
        'parts of files that all clients upload at a time',
        `${number(parts.MAX_PARTS)}, at most a sixteenth of \`MAX_CONNECTIONS\``,
      ],
      [
        `running requests with HTML of more than ${number(SHORT_HTML_CHARACTERS)} characters`,
        `${LONG_HTML_REQUESTS.each} of one IP address, ${LONG_HTML_REQUESTS.running} of all`,
      ],
      [
        'minimum read rate of a long response',
        `${kib(admission.MIN_READ_BYTES)} in ${seconds(admission.READ_TIMEOUT_MS)}`,
      ],
    ),
  };
  return `# Limits

<!-- Written by \`npm run docs:reference\` up to its end mark: change the code it comes from. -->

[Errors](errors.md) describes the responses. \`/openapi.json\` lists the limits of each parameter.

## Requests

${limits(
  ['body', kib(MAX_BODY_BYTES), '413'],
  ['HTML form', kib(MAX_FORM_BYTES), '413'],
  ['fields in a body', number(MAX_FIELDS), '413'],
  ['values in a JSON body', number(of('platform/input/json').MAX_VALUES), '413'],
  ['JSON numbers that exceed double precision', number(of('platform/input/json').MAX_ROUNDED), '413'],
  ['nesting levels in a JSON body', number(of('platform/input/json').MAX_DEPTH), '400'],
  ['IDs in a list', number(of('platform/input/readers').MAX_IDS), '400'],
  ['URL', kib(of('platform/server/express.adapter').MAX_HEADER_BYTES), '414'],
  ['total size of the headers', kib(of('platform/server/express.adapter').MAX_HEADER_BYTES), '431'],
  ['headers', number(front.MAX_HEADERS), '431'],
  ['time to receive a body', seconds(admission.BODY_TIMEOUT_MS), '408'],
  ['time to respond', seconds(admission.RESPONSE_TIMEOUT_MS), '503'],
  ['time without reading a response', seconds(admission.READ_TIMEOUT_MS), 'the connection is closed'],
)}

## Texts and lists

${limits(
  [
    'title of a collection',
    `${of('collections/collection.dto').MAX_COLLECTION_TITLE_CHARACTERS} characters`,
    '400',
  ],
  ['description or blurb after sanitization', `${number(MAX_HTML_CHARACTERS)} characters`, '400'],
  ['collections per user', number(of('collections/collections.service').MAX_COLLECTIONS), '400'],
  ['games per user, except imported ones', number(of('games/editing/game-edits.service').MAX_GAMES), '400'],
  ['API keys per user', number(of('auth/keys/api-keys.service').MAX_API_KEYS), 'error on the page'],
  ['download keys created in one request', number(of('purchases/keys/download-key.dto').MAX_NEW_KEYS), '400'],
  [
    'unclaimed download keys per game',
    number(of('purchases/keys/created-keys.service').MAX_UNCLAIMED),
    '400',
  ],
  ['apps per user', number(of('auth/oauth/applications.service').MAX_APPLICATIONS), 'error on the page'],
  [
    'redirect URIs per app',
    number(of('dashboard/settings/application-draft').MAX_REDIRECT_URIS),
    'error on the page',
  ],
  [
    'stored responses for `Idempotency-Key`, plus 300 bytes each',
    `${of('idempotency/idempotency.service').MAX_STORED_BYTES / 2 ** 20} MiB per user in 24 hours`,
    '429',
  ],
  ['operator tokens', number(of('operator/tokens/operator-tokens.service').MAX_LIVE), 'error of the command'],
  [
    'sales in the Figures page’s counts of refunds, sources and keys',
    `the newest ${number(of('purchases/sales/recent-sales').MAX_RECENT)} of a period`,
    'not counted; the page shows a note',
  ],
  [
    'concurrent long lists',
    `${lists.LONG_LISTS.each} per IP address, ${lists.LONG_LISTS.running} per process`,
    'waits, then 503',
  ],
)}

## Imports

${limits(
  ['length of a line', kib(of('operator/import/import-records').MAX_LINE_BYTES), '400'],
  ['games in a bundle', number(of('operator/import/record-types/purchase').MAX_BUNDLE), '400'],
  [
    'problems listed in a response',
    number(of('operator/import/problems').MAX_LISTED_PROBLEMS),
    'only counted',
  ],
  ['records in a small import', number(MAX_SMALL_RECORDS), 'runs as a large import'],
  ['size of a small import', kib(MAX_SMALL_BYTES), 'runs as a large import'],
  ...Object.entries(QUEUES).map(([queue, { running, accepted }]) => [
    `${queue} imports over HTTP`,
    `${running} per process, and ${number(accepted - running)} waiting`,
    '503',
  ]),
  ['wait of a small import', seconds(SMALL_IMPORT_WAIT_MS), '503'],
  ['buffered import data', `${kib(MAX_BUFFERED_BYTES)} per process`, '503'],
)}

## Webhooks

[Receive webhooks](../guides/webhooks.md) describes the messages.

${limits(
  ['webhooks of the store', number(webhooks.MAX_WEBHOOKS), 'error of the command'],
  ['webhooks of a user', number(webhooks.MAX_USER_WEBHOOKS), 'error of the form'],
  [
    'deliveries shown for a webhook of a user',
    number(of('operator/webhooks/webhook-attempts.service').MAX_KEPT_ATTEMPTS),
    'the oldest is deleted',
  ],
  ['concurrent messages to one webhook', `${deliveries.MAX_AT_ONCE} per process`, 'waits'],
  [
    'concurrent messages to the webhooks of one user',
    `${deliveries.MAX_TO_USERS * deliveries.SHARE_OF_USER} per process, ${deliveries.MAX_TO_USERS} of all users`,
    'waits',
  ],
  [
    'concurrent messages of **Send test** and **Send again**',
    `1 per user, ${MESSAGES_NOW.each} per IP address, ${MESSAGES_NOW.running} per process`,
    'waits, then 503',
  ],
  ['time to respond', seconds(of('operator/webhooks/send').DELIVERY_TIMEOUT_MS), 'sent again'],
  ['retry period of a message', `${deliveries.MAX_AGE_SECONDS / 86_400} days`, 'given up'],
  ['pending messages per webhook', number(deliveries.MAX_PENDING), 'the oldest is dropped'],
)}

${fillPlaces(page.slice(page.indexOf(GENERATED_END)), places)}`;
}

async function metricRows() {
  const { Settings } = of('platform/config/settings');
  const { MetricsRegistry } = of('platform/observability/metrics-registry');
  const { createLogger } = of('platform/observability/logger');
  const settings = Object.assign(new Settings(), { API_KEY_PEPPER: 'nothing is hashed with it' });
  // Providers register their metrics in their constructors, so nothing has to start.
  const app = await of('app').createApp(settings, createLogger('silent'));
  const { registry } = app.get(MetricsRegistry);
  const metrics = await registry.getMetricsAsJSON();
  return metrics
    .map(({ name, type, help, values }) => [
      code(name),
      type,
      formatLabels(values, registry.getSingleMetric(name).labelNames),
      help,
    ])
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** The page about observability with regenerated tables of metrics and audit events. */
export async function observabilityPage(page) {
  const { AUDIT_EVENTS } = of('audit/audit');
  const events = Object.entries(AUDIT_EVENTS).map(([event, when]) => [code(event), when]);
  return fillPlaces(page, {
    metrics: table(['metric', 'type', 'labels', 'description'], ...(await metricRows())),
    'audit events': table(['event', 'description'], ...events),
  });
}

const DEFAULTS = { '\\N': '', t: 'true', f: 'false', '{}': '[]' };

const formatDefault = ({ valueType, now, default: fallback }) => {
  if (now) return 'now';
  const [first] = [fallback].flat();
  return valueType.allows === 'list of entries' ? '[]' : (DEFAULTS[first] ?? first);
};

/** The rule of a field without what all fields have in common, which the page says once. */
const shortened = (allows) =>
  allows
    .replace(/^text of at most ([\d,]+) characters, which must be (?:an? )?(.+)/, '$2, at most $1 characters')
    .replace(/^text of at most ([\d,]+) characters, which must consist of (.+)/, '$2; at most $1 characters')
    .replace(
      /^text of at most ([\d,]+) characters, which must not contain (.+)/,
      'at most $1 characters, no $2',
    )
    .replace(/^text of /, '')
    .replace(/^whole number from (\d+) to 9007199254740991/, 'whole number, $1 or more')
    .replace(/^ID from 1 to 9007199254740991/, 'ID')
    .replace(/^list of `profile`, .*/, 'list of [scopes](scopes.md)');

function fieldsTable(fields) {
  const rows = fields.map((field) => [
    code(field.name),
    field.required ? 'required' : code(formatDefault(field)),
    shortened(field.valueType.allows),
    field.meaning,
  ]);
  return table(['field', 'default', 'value', 'meaning'], ...rows);
}

/** The page of import records with regenerated tables of fields. */
export function importRecordsPage(page) {
  const { recordTypes } = of('operator/import/record-types');
  const { ENTRY_FIELDS } = of('operator/import/record-types/collection');
  const types = [...recordTypes(Buffer.alloc(0)), { name: 'entry', fields: ENTRY_FIELDS }];
  return fillPlaces(
    page,
    Object.fromEntries(types.map(({ name, fields }) => [`fields of ${name}`, fieldsTable(fields)])),
  );
}

/** The page about personal data with regenerated tables, from the entities of the build. */
export function privacyPage(page) {
  const entities = readdirSync('src', { recursive: true })
    .filter((file) => file.endsWith('.entity.ts'))
    .flatMap((file) => Object.values(of(file.replace(/\.ts$/, ''))));
  const { storedColumns } = of('platform/database/personal-data');
  const rows = getMetadataArgsStorage()
    .tables.filter(({ target }) => entities.includes(target))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, target }) => storedColumns(target).map((row) => ({ table: name, ...row })));
  const cells = ({ table: name, columns, why, for_how_long }) => [
    `${code(name)}: ${columns.map(code).join(', ')}`,
    why,
    for_how_long,
  ];
  const heads = ['table: columns', 'why', 'for how long'];
  const about = rows.filter(({ after_erasure }) => after_erasure !== undefined);
  const others = rows.filter(({ after_erasure }) => after_erasure === undefined);
  const tables = {
    'stored about people': table(
      [...heads, 'after an erasure'],
      ...about.map((row) => [...cells(row), row.after_erasure]),
    ),
    'not about people': table(heads, ...others.map(cells)),
  };
  return fillPlaces(page, tables);
}
