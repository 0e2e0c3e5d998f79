import { connect } from 'node:net';
import fc, { type Arbitrary } from 'fast-check';
import { type Answer, headerOf, takeAnswer } from './client';
import { check, excerpt, Finding } from './oracles';
import type { Target } from './target';
import { UNKNOWN_KEY } from './world';

/** Bytes on a socket of their own, changed in places; `parts`: sent in so many pieces; `ends`: the sender hangs up behind them. */
export interface Raw {
  text: string;
  changes: { at: number; what: 'insert' | 'delete' | 'flip' | 'repeat'; text: string }[];
  parts: number;
  ends: 'half' | 'reset';
}

const HOST = 'Host: 127.0.0.1';
const AUTHORIZATION = `Authorization: Bearer ${UNKNOWN_KEY}`;
const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, HOST, ...headers, '', ''].join('\r\n');
const post = (headers: string[], body: string) =>
  ['POST /collections HTTP/1.1', HOST, AUTHORIZATION, ...headers, '', body].join('\r\n');

/** Requests that no client makes, and the status of the first answer where nothing is changed; another one where it may depend on how the bytes arrive. */
const CATALOGUE: [text: string, status?: number, inParts?: number][] = [
  [get('/health/live'), 200],
  [get('/profile'), 401],
  [get('/health/live') + get('/profile') + get('/nowhere'), 200],
  [post(['Content-Length: 7', 'Transfer-Encoding: chunked'], '0\r\n\r\nGET'), 400],
  [post(['Transfer-Encoding: chunked', 'Content-Length: 5'], '0\r\n\r\n'), 400],
  [post(['Transfer-Encoding: xchunked'], '0\r\n\r\n')],
  [post(['Transfer-Encoding: chunked, identity'], '0\r\n\r\n')],
  [post(['Transfer-Encoding:\x0bchunked'], '0\r\n\r\n')],
  [post(['Content-Length: 5', 'Content-Length: 6'], 'title='), 400],
  [post(['Content-Length: +5'], 'title'), 400],
  [post(['Content-Length: 0x5'], 'title'), 400],
  [post(['Content-Length: -1'], 'title'), 400],
  [post(['Content-Length: 99999999999999999999'], 'title'), 400],
  [post(['Content-Length : 5'], 'title'), 400],
  [post(['Transfer-Encoding: chunked'], 'zz\r\nabc\r\n0\r\n\r\n')],
  [post(['Transfer-Encoding: chunked'], 'ffffffffffffffff1\r\nabc')],
  [post(['Transfer-Encoding: chunked'], '3;ext="\n"\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n')],
  [post(['Transfer-Encoding: chunked'], '3\nabc\n0\n\n')],
  [post(['Expect: 100-continue', 'Content-Length: 3'], 'a=b'), 401],
  [post(['Expect: the unexpected', 'Content-Length: 3'], 'a=b'), 401],
  [post(['Content-Length: 1000'], 'short')],
  [get('/', 'Host: other.example'), 400],
  ['GET / HTTP/1.1\r\n\r\n', 400],
  ['GET / HTTP/1.0\r\n\r\n', 200],
  ['GET / HTTP/2.0\r\n\r\n'],
  ['GET / HTTP/9.9\r\nHost: a\r\n\r\n', 400],
  ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['GET /\r\n\r\n'],
  ['GET  /  HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['get / HTTP/1.1\r\nHost: a\r\n\r\n', 405],
  ['\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n', 200],
  ['GET / HTTP/1.1\nHost: a\n\n'],
  ['GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n folded\r\n\r\n'],
  ['GET / HTTP/1.1\r\n Host: a\r\n\r\n', 400],
  ['GET / HTTP/1.1\r\nHost: a\r\nX\0Y: a\r\n\r\n', 400],
  ['GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n', 400],
  ['GET / HTTP/1.1\r\nHost: a\r\n: nameless\r\n\r\n', 400],
  ['GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n', 400],
  ['GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['GET /%00%ff%2e%2e%2f HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['GET http://[::1/x HTTP/1.1\r\nHost: a\r\n\r\n', 404],
  [`GET http://[::1/api/1/${UNKNOWN_KEY}/me HTTP/1.1\r\nHost: a\r\n\r\n`, 401],
  ['GET //evil.example/%2e%2e HTTP/1.1\r\nHost: a\r\n\r\n', 404],
  ['GET * HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['GET /profile?%=%&&==?#x HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
  ['TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 405],
  ['BREW / HTTP/1.1\r\nHost: a\r\n\r\n', 405],
  ['GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'],
  ['GET / HTTP/1.1\r\nHost: a\r\nConnection: close, keep-alive, X\r\n\r\n', 200],
  [get(`/${'x'.repeat(17_000)}`), 431],
  [get('/', `X: ${'x'.repeat(17_000)}`), 431],
  [get('/', ...Array.from({ length: 120 }, (_, i) => `X-${i}: 1`)), 431],
  [get(`/api/1/${UNKNOWN_KEY}/me`), 401],
  [get(`/api/1/${UNKNOWN_KEY}%/me`)],
  [get('/profile', `Authorization: ${UNKNOWN_KEY}\x01`), 401, 400],
  [get('/profile', AUTHORIZATION, AUTHORIZATION)],
  ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 405],
  ['GET', undefined],
  ['', undefined],
];

const unchanged: Raw['changes'] = [];

export const raws: Arbitrary<Raw> = fc.record({
  text: fc.constantFrom(...CATALOGUE.map(([text]) => text)),
  changes: fc.oneof(
    { arbitrary: fc.constant(unchanged), weight: 1 },
    {
      arbitrary: fc.array(
        fc.record({
          at: fc.nat({ max: 20_000 }),
          what: fc.constantFrom('insert' as const, 'delete' as const, 'flip' as const, 'repeat' as const),
          text: fc.oneof(
            fc.constantFrom(
              '\r\n',
              '\n',
              '\r',
              '\0',
              ' ',
              '\t',
              ':',
              '\r\n\r\n',
              'Content-Length: 3\r\n',
              '\x7f',
              '\xff',
              ';',
              '0\r\n\r\n',
            ),
            fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 6 }),
          ),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      weight: 4,
    },
  ),
  parts: fc.integer({ min: 1, max: 3 }),
  ends: fc.constantFrom('half', 'half', 'half', 'half', 'reset'),
});

function bytesOf({ text: unchanged, changes }: Raw): Buffer {
  let text = unchanged;
  for (const { at, what, text: more } of changes) {
    const i = at % (text.length + 1);
    const [before, after] = [text.slice(0, i), text.slice(i)];
    if (what === 'insert') text = before + more + after;
    else if (what === 'delete') text = before + after.slice(more.length);
    else if (what === 'repeat') text = before + after.slice(0, 40) + after;
    else text = before + String.fromCharCode(((after.charCodeAt(0) || 0) ^ 0x20) & 0xff) + after.slice(1);
  }
  return Buffer.from(text, 'latin1');
}

const LONGEST = 12_000;
const PATIENCE = 7_000;

/** All answers until the server hangs up, as it must once we have. */
function exchange(target: Target, bytes: Buffer, { parts, ends }: Raw, patience: number): Promise<Answer[]> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    const size = Math.max(1, Math.ceil(bytes.length / parts));
    let ending: NodeJS.Timeout | undefined;
    const socket = connect({ port: target.port, host: '127.0.0.1', allowHalfOpen: true }, () => {
      for (let at = 0; at < bytes.length; at += size) socket.write(bytes.subarray(at, at + size));
      ending =
        ends === 'half'
          ? setTimeout(() => socket.end(), patience)
          : setTimeout(() => socket.resetAndDestroy(), 5);
    });
    const timer = setTimeout(() => {
      socket.destroy();
      reject(
        new Finding(
          'hang',
          'a connection stays open after its sender has hung up',
          JSON.stringify(bytes.toString('latin1').slice(0, 300)),
        ),
      );
    }, LONGEST);
    socket.on('data', (chunk) => {
      received.push(chunk);
      if (ends === 'half' && takeAnswer(Buffer.concat(received))) socket.end();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(ending);
      clearTimeout(timer);
      const answers: Answer[] = [];
      for (let rest = Buffer.concat(received); rest.length > 0;) {
        const taken = takeAnswer(rest, { closed: true });
        if (!taken) break;
        answers.push(taken.answer);
        rest = taken.rest as Buffer<ArrayBuffer>;
      }
      resolve(answers);
    });
    socket.on('end', () => socket.destroy());
  });
}

export async function runRaw(target: Target, raw: Raw): Promise<void> {
  const bytes = bytesOf(raw);
  target.sentOtherwise++;
  // A server need not answer who has hung up: what must be answered is waited for.
  const mustAnswer = raw.changes.length === 0 && raw.ends === 'half';
  const [, status, inParts] = (mustAnswer && CATALOGUE.find(([text]) => text === raw.text)) || [];
  const answers = await exchange(target, bytes, raw, status === undefined ? 0 : PATIENCE);
  for (const answer of answers) {
    target.coverage.count('raw sockets', answer.status);
    if (answer.status === 503) {
      target.turnedAway.add(headerOf(answer, 'x-request-id')!);
      return;
    }
    // Of a page or an answer to HEAD the body is as it may be.
    check(target.contract, { method: 'RAW', path: 'raw', page: 'a raw socket' }, answer);
    if (answer.status >= 400 && !/^\{"errors":\[".*"\]\}$/.test(answer.body))
      throw new Finding(
        'envelope',
        `a raw socket is answered ${answer.status} without an envelope`,
        excerpt(answer),
      );
  }
  const other = raw.parts > 1 ? (inParts ?? status) : status;
  if (status !== undefined && ![status, other].includes(answers[0]?.status))
    throw new Finding(
      'verdict',
      `a raw socket is answered ${answers[0]?.status} instead of ${status}`,
      JSON.stringify(bytes.toString('latin1').slice(0, 300)),
    );
}
