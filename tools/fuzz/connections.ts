import { connect } from 'node:net';
import fc, { type Arbitrary } from 'fast-check';
import { bytesOf, formMessage, type Message, queryOf } from './ask';
import { type Answer, takeAnswer } from './client';
import { excerpt, Finding } from './oracles';
import type { Target } from './target';
import { ALICE, ATTACKER, Tenant, USERS } from './world';

/** Pipelined requests on a connection of their own, and how it ends behind them. */
export interface Connection {
  requests: RequestName[];
  ends: Ending;
  /** Milliseconds between the last request and the end. */
  after: number;
  /** Whether the client reads what it is answered. */
  reads: boolean;
}

/** Reads are spread over as many users as there are, because each of them is limited. */
const READERS = [0, 1, 2, 3, 4].map((number) => new Tenant(number));

const get = (path: string, key = ''): Message => ({
  method: 'GET',
  path,
  headers: key ? [['Authorization', `Bearer ${key}`]] : [],
});

const post = (path: string, fields: Record<string, string>) =>
  formMessage(path, fields, [['Authorization', `Bearer ${ATTACKER.key(ALICE)}`]]);

const REQUESTS: Record<string, [message: (key: string) => Message, status: number]> = {
  live: [() => get('/health/live'), 200],
  ready: [() => get('/health/ready'), 200],
  profile: [(key) => get('/profile', key), 200],
  games: [(key) => get('/profile/games', key), 200],
  collections: [(key) => get('/profile/collections', key), 200],
  nowhere: [() => get('/nowhere'), 404],
  stranger: [() => get('/profile'), 401],
  description: [() => get('/openapi.json'), 200],
  latest: [
    () => get(`/wharf/latest?${queryOf({ game_id: String(READERS[0]!.base + 1), channel_name: 'windows' })}`),
    200,
  ],
  write: [() => post(`/collections/${ATTACKER.base + 1}`, { title: 'Pipelined' }), 200],
  'bad write': [() => post(`/collections/${ATTACKER.base + 1}`, { title: 'x'.repeat(61) }), 400],
};
export type RequestName = keyof typeof REQUESTS;

/** Limits and overload may meet any request of so many. */
const TURNED_AWAY = [429, 503];
/** So many on one connection are answered; those behind them may be refused. */
const ANSWERED = 9;

const head = (...headers: string[]) =>
  ['POST /collections HTTP/1.1', 'Host: 127.0.0.1', `Authorization: Bearer ${ATTACKER.key(ALICE)}`]
    .concat(headers, '', '')
    .join('\r\n');

/** What is sent behind the requests, and how the client leaves then; `waits`: the server has the last word. */
const ENDINGS = {
  garbage: { sends: 'X\0\r\n\r\n', waits: true },
  'garbage and reset': { sends: 'X\0', resets: true },
  reset: { sends: '', resets: true },
  close: { sends: '' },
  'half-close': { sends: '', waits: true },
  'half a request': { sends: 'GET /profile HTTP/1.1\r\nHo' },
  'half a body': { sends: `${head('Content-Length: 1000')}title=` },
  'a promised body': { sends: head('Content-Type: application/json', 'Content-Length: 100') },
  'a body too large': { sends: head('Content-Length: 99999999') + 'x'.repeat(70_000) },
  'a bad chunk': { sends: `${head('Transfer-Encoding: chunked')}zz\r\nabc`, waits: true },
  'an upgrade': { sends: 'GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n' },
} satisfies Record<string, { sends: string; waits?: true; resets?: true }>;
export type Ending = keyof typeof ENDINGS;

export const connections: Arbitrary<Connection> = fc.record({
  requests: fc.array(fc.constantFrom(...Object.keys(REQUESTS)), {
    minLength: 1,
    maxLength: 20,
    size: 'max',
  }),
  ends: fc.constantFrom(...(Object.keys(ENDINGS) as Ending[])),
  after: fc.oneof(fc.constant(0), fc.nat({ max: 30 })),
  reads: fc.boolean(),
});

const LONGEST = 15_000;
let serial = 0;

/** Each from another address, whose limits it has for itself. */
const nextAddress = () => {
  serial = (serial + 1) % 50_000;
  return `127.1.${serial >> 8}.${serial & 255}`;
};

function exchange(port: number, { requests, ends, after, reads }: Connection): Promise<Answer[]> {
  const key = () => READERS[serial % READERS.length]!.key(USERS[serial % USERS.length]!);
  const localAddress = nextAddress();
  const { sends, waits, resets }: { sends: string; waits?: true; resets?: true } = ENDINGS[ends];
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true, noDelay: true });
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Finding('hang', 'a connection stays open after its sender has hung up', ends));
    }, LONGEST);
    socket.on('error', () => undefined);
    socket.on('connect', () => {
      if (!reads && !waits) socket.pause();
      const all = requests.map((name) => bytesOf(REQUESTS[name]![0](key())));
      const end = Buffer.from(sends, 'latin1');
      // In one piece, where nothing is waited for.
      socket.write(Buffer.concat(after === 0 ? [...all, end] : all));
      setTimeout(() => {
        if (after > 0 && sends) socket.write(end);
        if (waits) socket.end();
        else if (resets) socket.resetAndDestroy();
        else socket.destroy();
      }, after);
    });
    if (reads || waits) {
      socket.on('data', (chunk) => received.push(chunk));
      socket.on('end', () => socket.destroy());
    }
    socket.on('close', () => {
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
  });
}

/** What was answered is right and in order, and whoever waits to the end is answered all of it. */
export async function runConnection(target: Target, given: Connection): Promise<void> {
  const { requests, ends } = given;
  target.sentOtherwise += requests.length;
  const answers = await exchange(target.front!.port, given);
  for (const [index, answer] of answers.entries()) {
    target.coverage.count('pipelined', answer.status);
    const name = requests[index];
    // Behind the requests: what the ending is answered.
    if (name === undefined) break;
    const expected = REQUESTS[name]![1];
    if (answer.status !== expected && !TURNED_AWAY.includes(answer.status))
      throw new Finding(
        'verdict',
        `a pipelined request is answered ${answer.status} instead of ${expected}`,
        `${name}, the ${index + 1}th of ${requests.join(', ')}; then ${ends}; answers ${answers.map(({ status }) => status).join(' ')}: ${excerpt(answer)}`,
      );
  }
  const owed = Math.min(requests.length, ANSWERED);
  if (!('waits' in ENDINGS[ends]) || answers.length >= owed) return;
  throw new Finding(
    'pipeline',
    `of the requests before ${ends} some are not answered`,
    `${answers.length} of ${requests.length}`,
  );
}

// A bystander is always there: on a busy machine it takes a while until none of its requests is in flight either.
const SETTLED_WITHIN = 20_000;

/** When all clients are gone, nothing of theirs is in flight. */
export async function checkNothingInFlight({ front }: Target): Promise<void> {
  const left = await front!.metrics.lowest(SETTLED_WITHIN, front!.leaked);
  if (left <= front!.leaked) return;
  const more = left - front!.leaked;
  front!.leaked = left;
  throw new Finding(
    'in flight',
    'requests stay in flight after their clients have gone',
    `${more} more, ${left} in all`,
  );
}
