import { createHmac } from 'node:crypto';
import type { Socket } from 'node:net';
import { encodeMessage, formMessage, type Message } from '../world/message';
import { ALICE, ATTACKER, BOB, CAROL } from '../world/world';
import type { Attack } from './attack';
import { fastDownloads, lostDownloads, slowDownloads, unreadDownloads } from './downloads';
import { hostilePushes } from './hostile-pushes';
import { longCollections, manyCollections, slowExports, slowLists } from './large-lists';
import { largestInputs } from './largest-inputs';
import { manyTokens } from './tokens';

/** Runs until the attack's time is over; returns violated expectations beyond those for all floods. */
export type Pattern = (attack: Attack) => Promise<string[] | void>;

const authorization = (user: number): [string, string] => ['Authorization', `Bearer ${ATTACKER.key(user)}`];
const get = (path: string, user?: number): Message => ({
  method: 'GET',
  path,
  headers: user ? [authorization(user)] : [],
});
const requestHead = (length: number) =>
  [
    'POST /collections HTTP/1.1',
    'Host: 127.0.0.1',
    authorization(BOB).join(': '),
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${length}`,
    '',
    '',
  ].join('\r\n');

const TICK = 50;

/** Nine requests, and then something that ends the connection. */
const pipelining: Pattern = async (attack) => {
  const nine = encodeMessage(get('/health/live')).toString().repeat(9);
  const connection = () => {
    const ending = attack.pick(['garbage', 'reset', 'close', 'half-close', 'half a request', 'too large']);
    const behind = { garbage: 'X\0', 'half a request': 'GET /pro', 'too large': requestHead(99_999_999) }[
      ending
    ];
    const socket = attack.open(nine + (behind ?? ''));
    socket.resume();
    const leave = () => {
      if (ending === 'reset') socket.resetAndDestroy();
      else if (ending === 'close' || ending === 'half a request') socket.destroy();
      else socket.end();
    };
    socket.on('connect', () => setTimeout(leave, attack.random(10)));
  };
  for (let i = 0; i < 63; i++) connection();
  await attack.every(TICK, () => {
    for (let i = 0; i < 5; i++) connection();
  });
};

/** Requests that announce a body and never send it: 90 per second, starting with a full backlog. */
const promisedBodies: Pattern = async (attack) => {
  const promise = () => attack.open(requestHead(100 + attack.random(1000))).resume();
  for (let i = 0; i < 700; i++) promise();
  await attack.every(1000 / 90, promise);
};

const health: Pattern = (attack) =>
  attack.clientsThat(900 + attack.random(600), () => get(attack.pick(['/health/ready', '/health/live'])));

/** Requests large responses and reads nothing. */
const slowReaders: Pattern = async (attack) => {
  const nine = encodeMessage(get('/openapi.json')).toString().repeat(9);
  for (let i = 0; i < 100; i++) attack.open(nine).pause();
  await attack.every(TICK, () => attack.open(nine).pause());
};

/** Bodies that arrive one byte at a time. */
const slowBodies: Pattern = async (attack) => {
  const sockets = Array.from({ length: 700 }, () => attack.open(requestHead(1000)).resume());
  await attack.every(TICK * 4, () => {
    for (const socket of sockets) if (socket.writable) socket.write('x');
  });
};

/** A body with as many parts as bytes, with and without a key. */
const tinyChunks: Pattern = async (attack) => {
  const chunks = '1\r\nx\r\n'.repeat(10_000);
  const head = requestHead(0).replace('Content-Length: 0', 'Transfer-Encoding: chunked');
  const withoutKey = head.replace(/Authorization: .*\r\n/, '');
  const sockets = new Set<Socket>();
  await attack.every(TICK * 4, () => {
    while (sockets.size < 20) {
      const socket = attack.open(attack.pick([head, withoutKey])).resume();
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
    for (const socket of sockets) if (socket.writable && socket.writableLength === 0) socket.write(chunks);
  });
};

/** Bodies that are just small enough, too large, and far too large. */
const largeBodies: Pattern = (attack) =>
  attack.clientsThat(40, () => ({
    method: 'POST',
    path: `/collections/${ATTACKER.base + 1}`,
    headers: [
      authorization(ALICE),
      ['Content-Type', attack.pick(['application/json', 'application/x-www-form-urlencoded'])],
    ],
    body: Buffer.alloc(attack.pick([524_288, 524_289, 2_000_000]), 'x'),
  }));

/** Pages of keys that exist, were revoked or never existed. */
const keyPages: Pattern = (attack) =>
  attack.clientsThat(60, () => ({
    method: 'GET',
    path: `/download/${attack.pick([ATTACKER.downloadKey(2), ATTACKER.downloadKey(3), `guess-${attack.random(1e9)}`])}`,
    headers: [['Accept', attack.pick(['text/html', 'application/json'])]],
  }));

const COOKIE = 'A'.repeat(43);

/** A form as a browser sends it. */
const formOfBrowser = (path: string, fields: Record<string, string>): Message =>
  formMessage(
    path,
    { form_token: createHmac('sha256', COOKIE).update('form').digest('base64url'), ...fields },
    [
      ['Accept', 'text/html'],
      ['Cookie', `gamewharf_session=${COOKIE}`],
    ],
  );

/** Runs `work` with a mailer, because pages that request links show no form without one. */
async function withMailer(attack: Attack, work: () => Promise<void>): Promise<string[]> {
  const { rows } = await attack.sql.query<{ id: string }>(
    `INSERT INTO webhooks (url, events, secret) VALUES ('http://127.0.0.1:9/', '{link.requested}', '\\x00') RETURNING id`,
  );
  try {
    await work();
    const requests = await attack.sql.query('SELECT id FROM link_requests LIMIT 1');
    return requests.rowCount === 0 ? ['no request for a link was stored'] : [];
  } finally {
    await attack.sql.query('DELETE FROM webhooks WHERE id = $1', [rows[0]!.id]);
    await attack.sql.query('DELETE FROM link_requests');
  }
}

/** Requests links for accounts that exist and that don't, and opens invented links. */
const forgottenPasswords: Pattern = (attack) =>
  withMailer(attack, () =>
    attack.clientsThat(60, () => {
      if (attack.random(3) === 0) return get(`/links/guess-${attack.random(1e9)}`);
      const username = attack.pick([
        ATTACKER.username(BOB),
        ATTACKER.email(CAROL),
        `nobody-${attack.random(1e9)}`,
      ]);
      return formOfBrowser('/forgot-password', { username });
    }),
  );

/** Signs up with new email addresses and one that an account has. Each request hashes a password. */
const signUps: Pattern = (attack) =>
  withMailer(attack, () =>
    attack.clientsThat(60, () => {
      if (attack.random(4) === 0) return get('/sign-up');
      const n = attack.random(1e9);
      const email = attack.pick([ATTACKER.email(BOB), `new-${n}@example.com`]);
      return formOfBrowser('/sign-up', { email, username: `new-${n}`, new_password: `a long password ${n}` });
    }),
  );

/** Clients that half-close their connection: after a request, or in the middle of one. */
const halfCloses: Pattern = async (attack) => {
  const whole = encodeMessage(get('/profile', BOB)).toString();
  await attack.every(TICK, () => {
    for (let i = 0; i < 10; i++) {
      const text = attack.pick([whole, whole.repeat(9), whole.slice(0, 40), `${requestHead(1000)}title=`]);
      const socket = attack.open(text).resume();
      socket.on('connect', () => socket.end());
    }
  });
};

/** Clients that disconnect during the response or while sending. */
const aborts: Pattern = async (attack) => {
  const requests = [
    get('/profile/collections', CAROL),
    get('/profile/games', ALICE),
    formMessage('/collections', { title: 'Aborted' }, [authorization(BOB)]),
    formMessage('/oauth/device', { client_id: ATTACKER.clientId, scope: 'profile' }),
  ].map((message) => encodeMessage(message).toString());
  const upload = requestHead(500_000);
  await attack.every(TICK, () => {
    for (let i = 0; i < 10; i++) {
      const half = upload + 'x'.repeat(attack.random(100_000));
      const socket = attack.open(attack.pick([half, attack.pick(requests).repeat(attack.pick([1, 4, 9]))]));
      socket.on('connect', () => setTimeout(() => socket.resetAndDestroy(), attack.random(20)));
    }
  });
};

/** The reference, its endpoints file and the API description, nine at a time and without a credential. */
const docs: Pattern = async (attack) => {
  const page = await (await fetch(`${attack.base}/docs`)).text();
  const [, source] = /data-source="([^"]+)"/.exec(page)!;
  const nine = ['/docs', source!, '/openapi.json'].map((path) =>
    encodeMessage(get(path)).toString().repeat(9),
  );
  for (let i = 0; i < 200; i++) attack.open(attack.pick(nine)).resume();
  await attack.every(TICK, () => attack.open(attack.pick(nine)).resume());
};

const sales: Pattern = (attack) =>
  attack.clientsThat(100, () => get(`/games/${ATTACKER.base + 1}/sales?per_page=100`, ALICE));

const OWNED_KEYS = 5000;

/** Pages of an account with more keys than any player. */
const ownedKeys: Pattern = async (attack) => {
  const game = ATTACKER.base + 1;
  await attack.sql.query(
    `INSERT INTO download_keys (key, game_id, user_id, account_id)
     SELECT 'owned ' || n, $1, $2, $2 FROM generate_series(1, $3::int) AS n`,
    [game, ATTACKER.user(CAROL), OWNED_KEYS],
  );
  // Autovacuum would do this within a minute. Without it, the plan is one for an almost empty table.
  await attack.sql.query('ANALYZE download_keys');
  try {
    attack.begin();
    await attack.clientsThat(100, () =>
      get(`/profile/owned-keys?per_page=100&page=${1 + attack.random(OWNED_KEYS / 100)}`, CAROL),
    );
  } finally {
    await attack.sql.query(`DELETE FROM download_keys WHERE game_id = $1 AND key LIKE 'owned %'`, [game]);
  }
};

/** What a launcher requests before it downloads, and the download. */
const downloads: Pattern = (attack) => {
  const game = ATTACKER.base + 1;
  const paths = [
    `/games/${game}/uploads`,
    `/uploads/${game}`,
    `/uploads/${game}/builds`,
    `/uploads/${game}/download`,
  ];
  return attack.clientsThat(200, () => get(attack.pick(paths), ALICE));
};

export const PATTERNS = {
  pipelining,
  aborts,
  'half-closes': halfCloses,
  'promised-bodies': promisedBodies,
  'slow-bodies': slowBodies,
  'large-bodies': largeBodies,
  'tiny-chunks': tinyChunks,
  'slow-readers': slowReaders,
  health,
  docs,
  sales,
  'owned-keys': ownedKeys,
  downloads,
  'key-pages': keyPages,
  'forgotten-passwords': forgottenPasswords,
  'sign-ups': signUps,
  'unread-downloads': unreadDownloads,
  'fast-downloads': fastDownloads,
  'slow-downloads': slowDownloads,
  'lost-downloads': lostDownloads,
  'hostile-pushes': hostilePushes,
  'largest-inputs': largestInputs,
  'many-collections': manyCollections,
  'long-collections': longCollections,
  'slow-lists': slowLists,
  'slow-exports': slowExports,
  'many-tokens': manyTokens,
} satisfies Record<string, Pattern>;

export type PatternName = keyof typeof PATTERNS;
