/**
 * The load generator, a separate process: raw sockets, prebuilt requests, and only the status and length of responses
 * are parsed. On two cores this leaves more CPU time to the servers than a general HTTP client does.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

export interface Order {
  port: number;
  /** A JSON file with the requests as bytes. */
  file: string;
  connections: number;
  seconds: number;
  /** The position in the file at which to start, as a share of its length. */
  from: number;
  /** Duration of unmeasured requests before it, on the same connections. */
  leadIn?: number;
  /** Requests per second. Without it, each connection sends the next request after a response. */
  rate?: number;
}

export interface Outcome {
  responses: number;
  /** Responses other than 2xx and redirects, by status; lost connections as 0. */
  failures: Record<string, number>;
  bytes: number;
  seconds: number;
  p50: number;
  p99: number;
  cpu: number;
}

/** Messages of the generator: the lead-in is over, then the result. */
export type Told = 'begun' | Outcome;

const HEAD_END = Buffer.from('\r\n\r\n');
const LENGTH = /\r\ncontent-length: (\d+)/i;
const files = new Map<string, Buffer[]>();

function readRequests(file: string): Buffer[] {
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

/**
 * Starts requests at a fixed rate. A request that waits for a free connection is late, which counts as part
 * of its time.
 */
class Pace {
  private readonly free: ((due: number) => void)[] = [];
  private readonly start = performance.now();
  private begun = 0;
  private readonly timer = setInterval(() => this.begin(), 1);

  constructor(private readonly rate: number) {}

  wait(send: (due: number) => void): void {
    this.free.push(send);
    this.begin();
  }

  stop(): void {
    clearInterval(this.timer);
    for (const send of this.free.splice(0)) send(performance.now());
  }

  private begin(): void {
    const due = ((performance.now() - this.start) / 1000) * this.rate;
    while (this.begun < due && this.free.length > 0)
      this.free.shift()!(this.start + (this.begun++ / this.rate) * 1000);
  }
}

const tell = (told: Told) => process.send!(told);

async function run({ port, file, connections, seconds, from, leadIn = 0, rate }: Order): Promise<Outcome> {
  const requests = readRequests(file);
  const indexAt = (share: number) => Math.floor(requests.length * share) % requests.length;
  let next = indexAt(from + 0.5);
  let responses = 0;
  let bytes = 0;
  let running = true;
  const latencies = new Float64Array(2_000_000);
  const failures: Record<string, number> = {};
  const fail = (status: number) => void (failures[status] = (failures[status] ?? 0) + 1);
  const pace = rate === undefined ? undefined : new Pace(rate);

  const drive = () =>
    new Promise<void>((resolve) => {
      let socket: Socket;
      let sent = 0;
      // Remaining bytes of a response; -1: its head is incomplete.
      let missing = -1;
      let head: Buffer | undefined;

      const ask = () => (running && pace ? pace.wait(send) : send(performance.now()));
      const send = (due: number) => {
        if (!running) {
          socket.destroy();
          return resolve();
        }
        const request = requests[next]!;
        next = next + 1 === requests.length ? 0 : next + 1;
        sent = due;
        socket.write(request);
      };
      const onResponse = () => {
        if (running) latencies[responses++ % latencies.length] = performance.now() - sent;
        ask();
      };
      const read = (size: number, buffer: Uint8Array): boolean => {
        bytes += size;
        if (missing >= 0) {
          missing -= size;
          if (missing === 0) {
            missing = -1;
            onResponse();
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
        if (text[9] !== '2' && text[9] !== '3') fail(Number(text.slice(9, 12)));
        missing = end + 4 + Number(LENGTH.exec(text)?.[1] ?? 0) - chunk.length;
        if (missing === 0) {
          missing = -1;
          onResponse();
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
  const wait = (seconds: number) => new Promise((done) => setTimeout(done, seconds * 1000));
  if (leadIn > 0) await wait(leadIn);
  next = indexAt(from);
  responses = 0;
  bytes = 0;
  tell('begun');
  const [start, before] = [performance.now(), process.cpuUsage()];
  await wait(seconds);
  running = false;
  pace?.stop();
  const took = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(before);
  await Promise.race([all, wait(3)]);
  const sorted = latencies.slice(0, Math.min(responses, latencies.length)).sort();
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { responses, failures, bytes, seconds: took, p50: at(0.5), p99: at(0.99), cpu: user + system };
}

if (process.send) {
  process.on('message', (order: Order) => void run(order).then(tell));
  process.once('disconnect', () => process.exit());
}
