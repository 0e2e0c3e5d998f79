import { once } from 'node:events';
import { createServer, type IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { createDefaultHeaders, OutgoingResponse } from '../../src/platform/output/response';

const WRITTEN_FOR = 'Node 20.20, 22.23 and 24.21';
const WHAT_TO_DO = `src/platform/output/response.ts uses a private part of Node as in ${WRITTEN_FOR}:
_storeHeader(firstLine, headers), which writes a head. This is Node ${process.version}. Read lib/_http_outgoing.js of this
version and change OutgoingResponse in the same way. If the method no longer exists, remove it from OutgoingResponse and let
its constructor and setters call setHeader: slower, and correct on any version.`;

type Work<HttpResponse> = (res: HttpResponse) => Promise<void> | void;

/** The bytes sent for one request, without the date. */
async function sentBy<HttpResponse extends ServerResponse>(
  Response: new (req: IncomingMessage) => HttpResponse,
  work: Work<HttpResponse>,
  method = 'GET',
): Promise<string> {
  let worked: Promise<void> | undefined;
  const server = createServer(
    { ServerResponse: Response as unknown as typeof ServerResponse },
    (_req, res) => {
      worked = Promise.resolve(work(res as HttpResponse));
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let text = '';
  socket.on('data', (data) => (text += data.toString()));
  socket.write(`${method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  await once(socket, 'close');
  await worked;
  server.close();
  return text.replace(/Date: .*\r\n/, '');
}

const sentBody = async (work: Work<OutgoingResponse>) =>
  (await sentBy(OutgoingResponse, work)).split('\r\n\r\n')[1];

describe(`writes headers like ${WRITTEN_FOR}`, () => {
  const responses: [string, Work<ServerResponse>, string?][] = [
    ['a text', (res) => void res.setHeader('Content-Type', 'text/plain').end('héllo')],
    ['a text in Latin-1', (res) => void res.setHeader('Content-Type', 'text/plain').end('héllo', 'latin1')],
    ['bytes', (res) => void res.setHeader('Content-Type', 'a/b').end(Buffer.from('hello'))],
    ['an explicit length', (res) => void res.setHeader('Content-Length', 5).end('hello')],
    ['nothing', (res) => void res.setHeader('X-A', 'b').end()],
    ['nothing with 204', (res) => void Object.assign(res.setHeader('X-A', 'b'), { statusCode: 204 }).end()],
    ['nothing with 304', (res) => void Object.assign(res.setHeader('ETag', 'b'), { statusCode: 304 }).end()],
    ['a HEAD', (res) => void res.setHeader('Content-Length', 5).end(), 'HEAD'],
    ['a HEAD with a body', (res) => void res.setHeader('X-A', 'b').end('hello'), 'HEAD'],
    ['several values', (res) => void res.setHeader('Set-Cookie', ['a=1', 'b=2']).end('hello')],
    ['writeHead', (res) => void res.setHeader('X-A', 'b').writeHead(201, { 'X-C': 'd' }).end('hello')],
    ['pieces', (res) => void (res.setHeader('X-A', 'b').write('one, '), res.end('two'))],
    ['an empty chunk', (res) => void (res.setHeader('X-A', 'b').write(''), res.end())],
  ];
  const fixed = createDefaultHeaders({ 'X-Fixed': 'always', 'X-A': 'unless it is given' });

  test.each(responses)('%s', async (...[, work, method]) => {
    const byNode = await sentBy(ServerResponse, work, method);
    const ours = await sentBy(OutgoingResponse, work, method);
    const withFixed = await sentBy(
      OutgoingResponse,
      (res) => {
        res.defaultHeaders = fixed;
        res.setRequestId('id');
        res.setRateLimit(3, 2, 1);
        return work(res);
      },
      method,
    );
    const [firstLine, rest] = [/^.*\r\n/.exec(byNode)![0], byNode.replace(/^.*\r\n/, '')];
    const limits = 'X-RateLimit-Limit: 3\r\nX-RateLimit-Remaining: 2\r\nX-RateLimit-Reset: 1\r\n';
    const unlessGiven = byNode.includes('X-A: b') ? '' : 'X-A: unless it is given\r\n';
    const head = `${firstLine}X-Request-Id: id\r\n${limits}X-Fixed: always\r\n${unlessGiven}`;
    try {
      expect({ ours, withFixed }).toEqual({ ours: byNode, withFixed: head + rest });
    } catch (error) {
      throw new Error(WHAT_TO_DO, { cause: error });
    }
  });
});

describe('rejects line breaks in values', () => {
  const ATTACK = 'a\r\nSet-Cookie: b=c';

  test.each<[string, (res: OutgoingResponse) => void]>([
    ['a request ID', (res) => res.setRequestId(ATTACK)],
    ['a rate limit', (res) => res.setRateLimit(ATTACK as never, 2, 1)],
    ['a line feed alone', (res) => res.setRequestId('a\nb')],
    ['a NUL', (res) => res.setRequestId('a\0b')],
  ])('%s', async (_what, work) => {
    let rejected: unknown;
    const text = await sentBy(OutgoingResponse, (res) => {
      try {
        work(res);
      } catch (error) {
        rejected = error;
      }
      res.setHeader('X-A', 'b').end('one');
    });
    expect(rejected).toMatchObject({ code: 'ERR_INVALID_CHAR' });
    expect(text).not.toMatch(/Set-Cookie|X-Request-Id/);
  });

  test.each([
    ['X-A', ATTACK],
    [`X-A: b\r\nSet-Cookie`, 'c'],
  ])('a fixed header: %j', (name, value) => {
    expect(() => createDefaultHeaders({ [name]: value })).toThrow();
  });
});

describe('a response ended with endSoon', () => {
  test('is sent at the end of the tick, and counts as ended before that', async () => {
    const seen: unknown[] = [];
    const body = await sentBody(async (res) => {
      const socket = res.socket!;
      res.setHeader('Content-Length', 3).sendAtEndOfTick('one');
      seen.push(socket.bytesWritten, res.headersSent, res.writableEnded);
      await nextTick();
      seen.push(socket.bytesWritten > 0, res.headersSent, res.writableEnded);
    });
    expect(body).toBe('one');
    expect(seen).toEqual([0, true, true, true, true, true]);
  });

  test('contains nothing that is written later, before and after it is sent', async () => {
    const text = await sentBy(OutgoingResponse, async (res) => {
      res.setHeader('Content-Length', 3).sendAtEndOfTick('one');
      for (let tick = 0; tick < 2; tick++) {
        expect(res.write('two')).toBe(true);
        res.end('three');
        await nextTick();
      }
    });
    expect(text).toBe('HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\none');
  });

  test('accepts no further headers', async () => {
    let thrown: unknown;
    const text = await sentBy(OutgoingResponse, (res) => {
      res.setHeader('Content-Length', 3).sendAtEndOfTick('one');
      try {
        res.setHeader('X-Late', 'a');
      } catch (error) {
        thrown = error;
      }
    });
    expect(thrown).toMatchObject({ code: 'ERR_HTTP_HEADERS_SENT' });
    expect(text).toMatch(/^HTTP\/1.1 200 OK\r\nContent-Length: 3\r\n/);
  });
});
