import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { OutgoingAnswer } from '../src/http/outgoing-answer';

let server: Server;

/** What the work makes of an answer, and the body that arrives. */
async function answered(work: (res: OutgoingAnswer) => Promise<void> | void): Promise<string> {
  let worked: Promise<void> | undefined;
  server = createServer({ ServerResponse: OutgoingAnswer }, (_req, res) => {
    res.setHeader('Content-Type', 'text/plain');
    worked = Promise.resolve(work(res as OutgoingAnswer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const body = await new Promise<string>((resolve, reject) => {
    get({ port, host: '127.0.0.1', agent: false }, (res) => {
      let text = '';
      res.setEncoding('utf8');
      res.on('data', (part: string) => (text += part));
      res.on('end', () => resolve(text));
    }).on('error', reject);
  });
  await worked;
  return body;
}

afterEach(() => void server.close());

test('leaves at the end of the turn, and has been sent for everybody else', async () => {
  const seen: unknown[] = [];
  const body = await answered(async (res) => {
    const socket = res.socket!;
    res.end('one');
    seen.push(socket.bytesWritten, res.headersSent, res.writableEnded);
    await nextTurn();
    seen.push(socket.bytesWritten > 0, res.headersSent, res.writableEnded);
  });
  expect(body).toBe('one');
  expect(seen).toEqual([0, true, true, true, true, true]);
});

test('the first end counts', async () => {
  expect(await answered((res) => void res.end('one').end('two'))).toBe('one');
});

test('leaves at once where it is told to, and once only', async () => {
  let written = 0;
  const body = await answered((res) => {
    const socket = res.socket!;
    res.end('one');
    res.leave();
    written = socket.bytesWritten;
  });
  expect(body).toBe('one');
  expect(written).toBeGreaterThan(0);
});

test('what was begun to be written is ended at once', async () => {
  expect(
    await answered((res) => {
      res.write('one, ');
      res.end('two');
      expect(res.last).toBeUndefined();
    }),
  ).toBe('one, two');
});
