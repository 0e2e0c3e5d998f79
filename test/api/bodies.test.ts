import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { type Actor } from '../support/actor';
import { baseUrl, useStore } from '../support/app';
import { type HttpResponse, failure, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore();

let owner: Actor;
beforeAll(async () => {
  owner = await make.user();
});

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

async function post(body: string | Buffer, headers: Record<string, string>): Promise<HttpResponse> {
  const response = await send('POST', '/collections', { headers: { ...owner.headers, ...headers }, body });
  return { status: response.status, body: response.body };
}
afterEach(() => sql('DELETE FROM collections'));
const madeSoFar = () => sql('SELECT title FROM collections');

const notAnObject = failure(400, 'the body must be a JSON object');
const tooMany = failure(413, 'too many parameters');
const tooLarge = failure(413, 'request too large');
const badCharset = failure(415, 'unsupported charset');
const badType = failure(415, 'unsupported media type');
const title = 'title=Sent';
const BOMB = gzipSync(Buffer.alloc(64 * 1024 * 1024, 'title=x&'));

test.each<[string, string | Buffer, Record<string, string>, HttpResponse]>([
  ['null', 'null', { 'content-type': JSON_TYPE }, notAnObject],
  ['a JSON text', '"title"', { 'content-type': JSON_TYPE }, notAnObject],
  ['a JSON array', '[]', { 'content-type': JSON_TYPE }, notAnObject],
  ['broken JSON', '{"title":"secret', { 'content-type': JSON_TYPE }, notAnObject],
  [
    'JSON 5,000 deep',
    `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`,
    { 'content-type': JSON_TYPE },
    notAnObject,
  ],
  ['arrays 100,000 deep', '['.repeat(100_000), { 'content-type': JSON_TYPE }, notAnObject],
  [
    '1,001 members',
    JSON.stringify(Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`a${i}`, i]))),
    { 'content-type': JSON_TYPE },
    tooMany,
  ],
  ['one name 1,001 times', `{${'"a":1,'.repeat(1000)}"a":1}`, { 'content-type': JSON_TYPE }, tooMany],
  [
    '10,001 values in an unknown member',
    JSON.stringify({ a: new Array(10_000).fill(1) }),
    { 'content-type': JSON_TYPE },
    tooMany,
  ],
  [
    'a list of 20,000 ids',
    JSON.stringify({ game_ids: new Array(20_000).fill(1) }),
    { 'content-type': JSON_TYPE },
    tooMany,
  ],
  [
    '2,001 numbers that JavaScript rounds',
    `{"a":[${new Array(2001).fill('9'.repeat(18)).join(',')}]}`,
    { 'content-type': JSON_TYPE },
    tooMany,
  ],
  [
    '1,002 parts without names',
    '--x\r\ncontent-disposition: form-data\r\n\r\n1\r\n'.repeat(1002) + '--x--\r\n',
    { 'content-type': 'multipart/form-data; boundary=x' },
    tooMany,
  ],
  [
    'a file',
    '--x\r\ncontent-disposition: form-data; name="a"; filename="b"\r\n\r\n1\r\n--x--\r\n',
    { 'content-type': 'multipart/form-data; boundary=x' },
    failure(400, 'files are not accepted'),
  ],
  [
    '1,001 fields',
    Array.from({ length: 1001 }, (_, i) => `a${i}=1`).join('&'),
    { 'content-type': FORM },
    tooMany,
  ],
  [
    'a field after 1,001 empty ones',
    `title=Sent${'&'.repeat(1001)}private=true`,
    { 'content-type': FORM },
    tooMany,
  ],
  ['a form over the limit', `title=${'x'.repeat(600_000)}`, { 'content-type': FORM }, tooLarge],
  ['a gzip bomb', BOMB, { 'content-type': FORM, 'content-encoding': 'gzip' }, tooLarge],
  ['an unknown encoding', title, { 'content-type': FORM, 'content-encoding': 'compress' }, badType],
  [
    'an encoding named like a property',
    title,
    { 'content-type': FORM, 'content-encoding': 'constructor' },
    badType,
  ],
  ['an unknown charset', title, { 'content-type': `${FORM}; charset=latin1` }, badCharset],
  ['utf-16', Buffer.from(title, 'utf16le'), { 'content-type': `${FORM}; charset=utf-16` }, badCharset],
  ['another media type', title, { 'content-type': 'text/xml' }, badType],
])('rejects %s without a change or an echo', async (_name, body, headers, response) => {
  expect(await post(body, headers)).toEqual(response);
  expect(await madeSoFar()).toEqual([]);
});

test('rejects a gzip bomb without decompressing it', async () => {
  const before = process.memoryUsage().rss;
  await Promise.all(
    Array.from({ length: 10 }, () => post(BOMB, { 'content-type': FORM, 'content-encoding': 'gzip' })),
  );
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
});

test.each([
  ['in one chunk', 'title=Sent'],
  ['too long for the parameter', `title=${'x'.repeat(61)}`],
])('responds after the client closes its half of the connection: %s', async (_how, body) => {
  const { hostname, port } = new URL(baseUrl());
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.end(
    `POST /collections HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${owner.key}\r\nContent-Type: ${FORM}\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  );
  const [response] = (await once(socket, 'data')) as [Buffer];
  const isMade = body === 'title=Sent';
  expect(response.toString()).toMatch(isMade ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 400 /);
  expect(await madeSoFar()).toEqual(isMade ? [{ title: 'Sent' }] : []);
});

test.each(['gzip', 'deflate', 'br'] as const)('decodes a body in %s', async (encoding) => {
  const encode = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }[encoding];
  const headers = { 'content-type': FORM, 'content-encoding': encoding };
  expect((await post(encode(title), headers)).status).toBe(200);
  expect(await madeSoFar()).toEqual([{ title: 'Sent' }]);
  expect(await post(title, headers)).toEqual(failure(400, 'malformed request'));
  expect((await owner.get('/profile')).status).toBe(200);
});
