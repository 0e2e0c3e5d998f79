// The pages of metrics, audit events and limits, from the build in dist.
import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);
const of = (path) => load(`../../dist/src/${path}.js`);

export const WRITTEN = '<!-- Written by `npm run docs:reference`: change the code it comes from. -->';
const cell = (text) => String(text).replaceAll('|', '\\|');
export const table = (...rows) =>
  [rows[0], rows[0].map(() => '---'), ...rows.slice(1)]
    .map((row) => `| ${row.map(cell).join(' | ')} |`)
    .join('\n');
export const code = (text) => (text === '' ? '' : `\`${text}\``);

const number = (value) => value.toLocaleString('en-US');

/** Each label with its values, where they are known before the first request. */
function labelsOf(series, labels) {
  return labels
    .map((label) => {
      const values = [...new Set(series.map((one) => one.labels[label]))];
      return values.length ? `${code(label)} (${values.map(code).join(', ')})` : code(label);
    })
    .join(', ');
}

export async function metricsPage() {
  const { Settings } = of('platform/config/settings');
  const { Measurements } = of('platform/observability/measurements');
  const { RequestDurations } = of('platform/observability/request-log');
  const { createLogger } = of('platform/observability/logger');
  const settings = Object.assign(new Settings(), { API_KEY_PEPPER: 'nothing is hashed with it' });
  // Its parts register what they measure when they are made; nothing is started.
  const app = await of('create-app').createApp(settings, createLogger('silent'));
  const measured = new RequestDurations();
  measured.observe({}, { statusCode: 200 }, 1);
  const durations = measured.get();
  const labels = Object.keys(durations.values[0].labels).filter((label) => label !== 'le');
  const { registry } = app.get(Measurements);
  const metrics = await registry.getMetricsAsJSON();
  const families = metrics.map(({ name, type, help, values }) => [
    code(name),
    type,
    labelsOf(values, registry.getSingleMetric(name).labelNames),
    help,
  ]);
  families.push([code(durations.name), durations.type, labelsOf([], labels), durations.help]);
  families.sort(([a], [b]) => (a < b ? -1 : 1));
  return `# Metrics

${WRITTEN}

What a process says at \`/metrics\`. [Observability](observability.md) has the port, what the labels mean and what to do about them.

${table(['metric', 'type', 'labels', 'what it says'], ...families)}

Labels without values take theirs from what happens: a \`route\` is the template of a route, a \`currency\` one of the store. All metrics that begin with
\`process_\` and \`nodejs_\` are those of prom-client: memory, processor, event loop delay, garbage collection.
`;
}

export function eventsPage() {
  const { EVENTS } = of('auth/audit');
  return `# Audit events

${WRITTEN}

Each event is a line of the log with \`"audit":true\`. It is a row of \`audit_events\` as well, which \`gamewharf audit list\` shows, unless it is in the log alone.
[Observability](observability.md#audit-events) says what the rows hold and for how long.

${table(['event', 'when'], ...Object.entries(EVENTS).map(([event, when]) => [code(event), when]))}
`;
}

const kib = (value) => (value % 1024 ** 2 ? `${value / 1024} KiB` : `${value / 1024 ** 2} MiB`);
const seconds = (ms) => `${ms / 1000} s`;
const rate = ({ count, period_ms }) => `${number(count)} in ${period_ms / 1000} s`;

export function limitsPage() {
  const { Settings } = of('platform/config/settings');
  const { MAX_IN_FLIGHT, MAX_CONNECTIONS } = new Settings();
  const [flight, front] = ['in-flight', 'request-gate'].map((name) => of(`platform/http/${name}`));
  const { MAX_BODY, MAX_FORM, MAX_FIELDS } = of('platform/http/body');
  const { MAX_RECORDS, MAX_BYTES, MAX_LINE } = of('operator/import/small-import');
  const waiting = of('operator/import/small-imports.service');
  const room = of('operator/import/import-limits');
  const lists = of('platform/http/long-lists');
  const concurrency = of('platform/http/concurrency-limit');
  const { MAX_HTML_CHARACTERS } = of('collections/html');
  const deliveries = of('operator/webhooks/webhook-deliveries.service');
  const limits = (...rows) => table(['limit', 'value', 'what is beyond it'], ...rows);
  const rates = Object.entries(of('platform/config/rate-limits').rateLimitsOf(''));
  return `# Limits

${WRITTEN}

What one caller may send, hold and ask for. The service reads these values from its code, and so does this page. [The API's rules](api-design.md)
say how it refuses, and the [document of the API](../guides/clients.md) has the limits of each parameter.

## A request

${limits(
  ['body', kib(MAX_BODY), '413'],
  ['form of a page', kib(MAX_FORM), '413'],
  ['fields of a body', number(MAX_FIELDS), '413'],
  ['values of a JSON body', number(of('platform/http/json').MAX_VALUES), '413'],
  ['levels of a JSON body', number(of('platform/http/json').MAX_DEPTH), '400'],
  ['ids in a list', number(of('platform/http/readers').MAX_IDS), '400'],
  ['bytes of all headers', kib(of('platform/http/express.adapter').MAX_HEADER_BYTES), '431'],
  ['headers', number(front.MAX_HEADERS), '431'],
  ['time for a body to arrive', seconds(flight.BODY_TIMEOUT), '408'],
  ['time for an answer', seconds(flight.ANSWER_TIMEOUT), '503'],
  ['time to read an answer', seconds(flight.READ_TIMEOUT), 'the connection is closed'],
)}

## Texts and lists

${limits(
  ['title of a collection', `${of('collections/collection.dto').MAX_TITLE} characters`, '400'],
  ['description or blurb, sanitised', `${number(MAX_HTML_CHARACTERS)} characters`, '400'],
  ['collections of a user', number(of('collections/collections.service').MAX_COLLECTIONS), '400'],
  ['API keys of a user', number(of('dashboard/settings/keys.service').MAX_KEYS), 'the page says so'],
  [
    'applications of a user',
    number(of('auth/oauth/applications.service').MAX_APPLICATIONS),
    'the page says so',
  ],
  [
    'redirect addresses of an application',
    number(of('dashboard/settings/application-draft').MAX_ADDRESSES),
    'the page says so',
  ],
  [
    'answers kept for an `Idempotency-Key`',
    `${of('platform/idempotency/answer-room').MAX_STORED / 2 ** 20} MiB of a user in 24 hours, in each process`,
    '429',
  ],
  ['operator tokens', number(of('operator/tokens/operator-tokens.service').MAX_LIVE), 'the command says so'],
  [
    'keys with purchases whose claims the page of sales counts',
    `the newest ${number(of('dashboard/sales/sales-report.service').MAX_KEYS)} of a game`,
    'is left out; the page says so',
  ],
  [
    'long lists at once',
    `${lists.LONG_LISTS.each} of an IP address, ${lists.LONG_LISTS.running} of a process`,
    'waits, then 503',
  ],
)}

## Imports

${limits(
  ['a line', kib(of('operator/import/import-records').MAX_LINE), '400'],
  ['games of a bundle', number(of('operator/import/record-types/purchase').MAX_BUNDLE), '400'],
  ['problems in an answer', number(of('operator/import/problems').MAX_LISTED), 'are counted'],
  ['records of a small import', number(MAX_RECORDS), 'is a large import'],
  ['bytes of a small import', kib(MAX_BYTES), 'is a large import'],
  ['a line of a small import', kib(MAX_LINE), 'is a large import, unless all of it is as short'],
  ['small imports that wait', `${number(waiting.MAX_WAITING)}, ${kib(waiting.MAX_WAITING_BYTES)}`, '503'],
  ['time that a small import waits', seconds(waiting.MAX_WAIT_MS), '503'],
  ['large imports over HTTP', `1 of a process; ${room.MAX_LARGE - 1} more wait`, '503'],
  ['bytes read of imports that may be small', `${kib(room.MAX_HELD_BYTES)} of a process`, '503'],
)}

## Webhooks

[Receive a webhook](../guides/webhooks.md) says what a message is.

${limits(
  ['webhooks', number(of('operator/webhooks/webhooks.service').MAX_WEBHOOKS), 'the command says so'],
  ['messages to one webhook at a time', `${deliveries.MAX_AT_ONCE} of a process`, 'waits'],
  ['time for an answer', seconds(of('operator/webhooks/send').TIMEOUT), 'is sent again'],
  ['time in which a message is sent again', `${deliveries.MAX_AGE / 86_400} days`, 'is given up'],
  ['messages that wait for one webhook', number(deliveries.MAX_WAITING), 'drops the oldest'],
)}

## Requests in a time

[Rate limits](rate-limits.md) says what each counts. What is beyond it is 429. \`RATE_LIMIT\` changes them.

${table(['limit', 'default'], ...rates.map(([name, one]) => [code(name), rate(one)]))}

## Concurrency

[Overload](rate-limits.md#overload) says what each counts. Requests beyond them get 503.

${table(
  ['limit', 'value'],
  [code('requests'), `${number(MAX_IN_FLIGHT)}, set by \`MAX_IN_FLIGHT\``],
  [code('uploads'), kib(flight.MAX_UPLOAD_BYTES)],
  [code('health'), number(flight.MAX_HEALTH)],
  [code('connections'), `${number(MAX_CONNECTIONS)}, set by \`MAX_CONNECTIONS\``],
  ['requests in flight on one connection', number(front.MAX_PIPELINED)],
  ['running requests of one IP address, while others send requests', number(concurrency.PER_CLIENT)],
  ['time for which a request may wait to begin', seconds(flight.WAIT_TIMEOUT)],
  [
    'rate at which a client reads a long response',
    `${kib(flight.MIN_READ_BYTES)} in ${seconds(flight.READ_TIMEOUT)}`,
  ],
)}
`;
}

const DEFAULTS = { '\\N': '', t: 'true', f: 'false', '{}': '[]', '{}\t{}': '[]' };

const defaultOf = ({ kind, now, default: fallback }) => {
  if (now) return 'now';
  return kind.allows === 'list of entries' ? '[]' : (DEFAULTS[fallback] ?? fallback);
};

function fieldsTable(fields) {
  const rows = fields.map((field) => [
    code(field.name),
    field.required ? 'required' : code(defaultOf(field)),
    field.kind.allows,
    field.meaning,
  ]);
  return table(['field', 'default', 'value', 'meaning'], ...rows);
}

/** The page of the import, with the table of each record's fields written anew. */
export function importingPage(page) {
  const { recordTypes } = of('operator/import/record-types');
  const { ENTRY_FIELDS } = of('operator/import/record-types/collection');
  const types = [...recordTypes(Buffer.alloc(0)), { name: 'entry', fields: ENTRY_FIELDS }];
  let text = page;
  for (const { name, fields } of types) {
    const place = new RegExp(`(<!-- fields of ${name}: npm run docs:reference -->)[^]*?(<!-- end -->)`);
    if (!place.test(text))
      throw new Error(`docs/reference/importing.md has no place for the fields of ${name}`);
    text = text.replace(place, (_, start, end) => `${start}\n\n${fieldsTable(fields)}\n\n${end}`);
  }
  return text;
}
