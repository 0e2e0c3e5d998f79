/**
 * The load generator, a process of its own: raw sockets, requests made beforehand, and of the answers only the status and
 * the length are read. On two cores that leaves the servers more of the machine than a general HTTP client does.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

export interface Order {
  port: number;
  /** JSON: the requests as they are sent. */
  file: string;
  connections: number;
  seconds: number;
  /** Where in the file to begin, as a share of it. */
  from: number;
}

export interface Outcome {
  answers: number;
  /** Answers that were not 200, by status; and lost connections as 0. */
  failures: Record<string, number>;
  bytes: number;
  seconds: number;
  p50: number;
  p99: number;
  cpu: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const LENGTH = /\r\ncontent-length: (\d+)/i;
const files = new Map<string, Buffer[]>();

function requestsOf(file: string): Buffer[] {
  let requests = files.get(file);
  if (!requests) {
    requests = (JSON.parse(readFileSync(file, 'utf8')) as string[]).map((text) =>
      Buffer.from(text, 'latin1'),
    );
    files.clear();
    files.set(file, requests);
  }
  return requests;
}

function run({ port, file, connections, seconds, from }: Order): Promise<Outcome> {
  const requests = requestsOf(file);
  let next = Math.floor(requests.length * from) % requests.length;
  let answers = 0;
  let bytes = 0;
  let running = true;
  const latencies = new Float64Array(2_000_000);
  const failures: Record<string, number> = {};
  const fail = (status: number) => void (failures[status] = (failures[status] ?? 0) + 1);
  const before = process.cpuUsage();
  const start = performance.now();

  const drive = () =>
    new Promise<void>((resolve) => {
      let socket: Socket;
      let sent = 0;
      // What is still to come of an answer; -1: its head is not complete.
      let missing = -1;
      let head: Buffer | undefined;

      const ask = () => {
        if (!running) {
          socket.destroy();
          return resolve();
        }
        const request = requests[next]!;
        next = next + 1 === requests.length ? 0 : next + 1;
        sent = performance.now();
        socket.write(request);
      };
      const answered = () => {
        if (running) latencies[answers++ % latencies.length] = performance.now() - sent;
        ask();
      };
      const read = (size: number, buffer: Uint8Array): boolean => {
        bytes += size;
        if (missing >= 0) {
          missing -= size;
          if (missing === 0) {
            missing = -1;
            answered();
          }
          return true;
        }
        let chunk = Buffer.from(buffer.buffer, buffer.byteOffset, size);
        if (head) chunk = Buffer.concat([head, chunk]);
        const end = chunk.indexOf(HEAD_END);
        if (end < 0) {
          head = Buffer.from(chunk);
          return true;
        }
        head = undefined;
        const text = chunk.toString('latin1', 0, end);
        if (text.charCodeAt(9) !== 0x32) fail(Number(text.slice(9, 12)));
        missing = end + 4 + Number(LENGTH.exec(text)?.[1] ?? 0) - chunk.length;
        if (missing === 0) {
          missing = -1;
          answered();
        }
        return true;
      };

      const open = () => {
        socket = connect({
          port,
          host: '127.0.0.1',
          noDelay: true,
          onread: { buffer: Buffer.alloc(64 * 1024), callback: read },
        });
        socket.on('connect', ask);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          if (!running) return resolve();
          fail(0);
          missing = -1;
          head = undefined;
          setTimeout(open, 10);
        });
      };
      open();
    });

  const all = Promise.all(Array.from({ length: connections }, drive));
  return new Promise((resolve) => {
    setTimeout(() => {
      running = false;
      const took = (performance.now() - start) / 1000;
      const { user, system } = process.cpuUsage(before);
      void Promise.race([all, new Promise((done) => setTimeout(done, 3000))]).then(() => {
        const sorted = latencies.slice(0, Math.min(answers, latencies.length)).sort();
        const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
        resolve({ answers, failures, bytes, seconds: took, p50: at(0.5), p99: at(0.99), cpu: user + system });
      });
    }, seconds * 1000);
  });
}

if (process.send)
  process.on('message', (order: Order) => void run(order).then((outcome) => process.send!(outcome)));
