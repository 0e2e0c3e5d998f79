import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { unsafeMarkup } from '../../tools/fuzz/model/safe-html';
import type { Operation } from '../../tools/fuzz/operations';
import { check, checkDescribed, Finding, leakIn } from '../../tools/fuzz/oracles';
import { ECHO } from '../../tools/fuzz/values';
import { problemIn, type ReceivedMessage } from '../../tools/fuzz/webhook';
import { CANARY } from '../support/world/world';
import { Contract } from '../support/contract';
import { Client, type HttpResponse } from '../support/floods/client';
import { until } from '../support/time';

const contract = new Contract({
  openapi: '3.1.0',
  info: { title: 'a thing', version: '1' },
  components: {
    schemas: { Errors: { type: 'object', properties: { errors: { type: 'array' } }, required: ['errors'] } },
  },
  paths: {
    '/thing': {
      get: {
        responses: {
          200: {
            description: '',
            content: { 'application/json': { schema: { type: 'object', required: ['id'] } } },
          },
        },
      },
    },
  },
});

const HEADERS: [string, string][] = [
  ['content-type', 'application/json'],
  ...['x-request-id', 'x-content-type-options', 'cache-control', 'content-security-policy'].map(
    (name): [string, string] => [name, 'x'],
  ),
];

const response = (changes: Partial<HttpResponse> = {}): HttpResponse => ({
  status: 200,
  headers: HEADERS,
  body: '{"id":1}',
  ...changes,
});

const operation: Operation = {
  name: 'GET /thing',
  method: 'GET',
  path: '/thing',
  parameters: [],
  exactlyOneOf: [],
  type: 'application/json',
  statuses: new Set([200, 401]),
  secured: false,
  scope: undefined,
};

const tried = (changes: Partial<HttpResponse>) => () =>
  check(contract, { method: 'GET', path: '/thing', operation }, response(changes));

test('accepts a correct response', () => {
  expect(tried({})()).toEqual({ id: 1 });
});

test.each<[string, Partial<HttpResponse>]>([
  ['status', { status: 500, body: '{"errors":["internal server error"]}' }],
  ['status', { status: 503 }],
  ['schema', { body: '{"name":"x"}' }],
  ['schema', { status: 401, body: '{"errors":["invalid key"]}' }],
  ['schema', { status: 405, body: '{"errors":["method not allowed"]}' }],
  ['envelope', { body: '<p>' }],
  [
    'envelope',
    { headers: HEADERS.map(([name, value]) => [name, name === 'content-type' ? 'text/html' : value]) },
  ],
  ['secret', { body: `{"id":"${CANARY}"}` }],
  ['secret', { body: `{"id":"gw_${'a'.repeat(38)}"}` }],
  ['secret', { headers: [...HEADERS, ['x', `eyJ${'a'.repeat(20)}.${'b'.repeat(20)}.${'c'.repeat(20)}`]] }],
  ['secret', { body: '{"id":"$argon2id$v=19"}' }],
  ['echo', { status: 400, body: `{"errors":["not ${ECHO}"]}` }],
  ['headers', { headers: HEADERS.slice(0, 2) }],
  ['body', { status: 304 }],
])('reports %s', (oracle, changes) => {
  expect(tried(changes)).toThrow(Finding);
  expect(tried(changes)).toThrow(new RegExp(`^${oracle}: `));
});

test('reports an undocumented status', () => {
  expect(() => checkDescribed(operation, response(), false)).not.toThrow();
  expect(() => checkDescribed(operation, response({ status: 402 }), false)).toThrow(/does not list 402/);
});

test('accepts a credential in the response that creates it', () => {
  expect(leakIn(`gw_${'a'.repeat(38)}`, { made: true })).toBeUndefined();
  expect(leakIn(CANARY, { made: true })).toBe('a planted secret');
});

test.each([
  '<script>x</script>',
  '<p onclick="x">',
  '<a href="javascript:1" rel="nofollow noopener noreferrer ugc">',
  '<a href="https://x.example">without rel</a>',
  '<img src="http://x.example">',
  '<svg>',
  '<!-- -->',
])('reports %s as dangerous', (html) => {
  expect(unsafeMarkup(html)).toBeDefined();
});

test('accepts allowed markup', () => {
  expect(
    unsafeMarkup('<p>a &lt; b <a href="https://x.example" rel="nofollow noopener noreferrer ugc">x</a></p>'),
  ).toBeUndefined();
});

describe('webhook messages of a sale', () => {
  const sale = { id: 7, game_ids: [1], amount: 499, reference: 'order-7' };
  const message = (changes: Partial<ReceivedMessage> = {}, data: object = {}): ReceivedMessage => ({
    id: 'msg_1',
    type: 'purchase.completed',
    data: { ...sale, status: 'complete', ...data },
    genuine: true,
    ...changes,
  });
  const refund = message({ id: 'msg_2', type: 'purchase.refunded' }, { status: 'refunded' });

  test.each<[string, ReceivedMessage[], refunded: boolean, erased: boolean]>([
    ['once', [message()], false, false],
    ['twice', [message(), message()], false, false],
    ['in another order', [refund, message()], true, false],
    ['after an erasure', [message({}, { reference: null })], false, true],
  ])('are accepted %s', (_how, messages, refunded, erased) => {
    expect(problemIn(messages, sale, refunded, erased)).toBeUndefined();
  });

  test.each<[string, ReceivedMessage[], refunded: boolean]>([
    ['nothing', [], false],
    ['no refund', [message()], true],
    ['a refund that did not happen', [message(), refund], false],
    ['one event with two IDs', [message(), message({ id: 'msg_3' })], false],
    ['another amount', [message({}, { amount: 1 })], false],
    ['another reference', [message({}, { reference: 'order-8' })], false],
    ['no reference', [message({}, { reference: null })], false],
    ['another status', [message({}, { status: 'refunded' })], false],
    ['a wrong signature', [message(), message({ genuine: false })], false],
  ])('are rejected with %s', (_what, messages, refunded) => {
    expect(problemIn(messages, sale, refunded, false)).toBeDefined();
  });
});

describe('the strict client reports bytes that belong to no response', () => {
  const response = 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n';

  test.each([
    ['behind the response', ['{}[]'], '"[]"'],
    ['later', ['{}', 'late'], '"late"'],
    ['none', ['{}'], undefined],
  ])('%s', async (_what, [first, later], expected) => {
    let served: Socket | undefined;
    const server = createServer((socket) => {
      served = socket.once('data', () => socket.write(response + first!));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 1);
    expect(await client.exchange(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toMatchObject({ status: 503 });
    if (later !== undefined) served!.write(later);
    await until(() => later === undefined || client.surplus !== undefined);
    expect(client.surplus).toBe(expected);
    if (expected !== undefined)
      await expect(client.exchange(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).rejects.toThrow(expected);
    client.end();
    server.close();
  });
});
