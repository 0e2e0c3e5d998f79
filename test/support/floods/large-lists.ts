import { request } from 'node:http';
import { encodeMessage, type Message } from '../world/message';
import { ATTACKER, BOB, CAROL, operatorAuthorization } from '../world/world';
import type { Attack } from './attack';

const CLIENTS = 10;
const PATIENCE = 5000;
const LONG = `<p>${'ü'.repeat(19_990)}</p>`;

const collectionsRequest = (user: number): Message => ({
  method: 'GET',
  path: '/profile/collections',
  headers: [['Authorization', `Bearer ${ATTACKER.key(user)}`]],
});
const exportRequest = (user: number): Message => ({
  method: 'POST',
  path: `/operator/users/${ATTACKER.user(user)}/export`,
  headers: [['Authorization', operatorAuthorization]],
});

/** Runs the flood while an account has more collections than a user would create by hand. */
async function withCollections<Result>(
  { sql }: Attack,
  [number, count, description]: [user: number, count: number, description: string],
  flood: () => Promise<Result>,
): Promise<Result> {
  const user = ATTACKER.user(number);
  await sql.query(
    `INSERT INTO collections (user_id, title, description, games_count)
     SELECT $1, 'Collection ' || n, nullif($3, ''), 0 FROM generate_series(1, $2::int) AS n`,
    [user, count, description],
  );
  try {
    return await flood();
  } finally {
    await sql.query('DELETE FROM collections WHERE user_id = $1 AND id NOT BETWEEN $2 AND $3', [
      user,
      ATTACKER.base,
      ATTACKER.base + 99,
    ]);
  }
}

/** Clients that request all of the collections. */
const requested = (attack: Attack, count: number, description: string) =>
  withCollections(attack, [CAROL, count, description], () => {
    attack.begin();
    return attack.clientsThat(CLIENTS, () => collectionsRequest(CAROL));
  });

export const manyCollections = (attack: Attack) => requested(attack, 40_000, '');
export const longCollections = (attack: Attack) => requested(attack, 3000, LONG);

/** Four clients that repeatedly stop reading a long response, while one at another IP address reads its own. */
const slowly = (attack: Attack, buildRequest: (user: number) => Message): Promise<string[]> =>
  withCollections(attack, [BOB, 600, ''], () =>
    withCollections(attack, [CAROL, 1000, LONG], async () => {
      const broken: string[] = [];
      attack.begin();
      await attack.every(1000 / 3, async () => {
        for (let i = 0; i < 4; i++) attack.open(encodeMessage(buildRequest(CAROL))).pause();
        const got = await responseElsewhere(attack, buildRequest(BOB));
        if (got !== 'all') broken.push(`a client at another IP address got ${got}`);
      });
      return broken;
    }),
  );

export const slowLists = (attack: Attack) => slowly(attack, collectionsRequest);
export const slowExports = (attack: Attack) => slowly(attack, exportRequest);

/** `all` for a complete response with status 200, otherwise what was received instead. */
const responseElsewhere = ({ base }: Attack, { method, path, headers }: Message): Promise<string> =>
  new Promise((resolve) => {
    const options = { method, headers: Object.fromEntries(headers), localAddress: '127.0.0.3', agent: false };
    const outgoing = request(base + path, { ...options, timeout: PATIENCE }, (response) => {
      const { statusCode } = response;
      response.resume();
      response.on('close', () =>
        resolve(response.complete && statusCode === 200 ? 'all' : `part of a ${statusCode}`),
      );
    });
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', ({ message }) => resolve(message));
    outgoing.end();
  });
