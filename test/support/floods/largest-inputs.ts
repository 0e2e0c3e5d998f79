import { formMessage, type Message } from '../world/message';
import { ALICE, ATTACKER } from '../world/world';
import type { Attack } from './attack';

const COLLECTION = ATTACKER.base + 1;
const [GAME] = [ATTACKER.base + 1];
const KEY: [string, string] = ['Authorization', `Bearer ${ATTACKER.key(ALICE)}`];
/** The largest that fits into a body. */
const LARGEST = 500_000;
const fill = (text: string, length = LARGEST) => text.repeat(Math.floor(length / text.length));
const ids = (count: number) => `[${Array.from({ length: count }, (_, i) => i + 1).join(',')}]`;

const json = (path: string, body: string): Message => ({
  method: 'POST',
  path,
  headers: [KEY, ['Content-Type', 'application/json']],
  body: Buffer.from(body),
});
const form = (path: string, body: string): Message => ({
  method: 'POST',
  path,
  headers: [KEY, ['Content-Type', 'application/x-www-form-urlencoded']],
  body: Buffer.from(body),
});
const described = (html: string) => json(`/collections/${COLLECTION}`, JSON.stringify({ description: html }));

/** Each parameter at its maximum, in the most expensive form. */
const INPUTS: Message[] = [
  described(fill('<a href="https://example.com/x">x</a>')),
  described(fill('<b>')),
  described(fill('<p><i><u>x')),
  described(fill('&lt;&amp;')),
  described(fill('<!--')),
  described(fill('<img src="https://example.com/x.png" alt="x">')),
  json(
    `/collections/${COLLECTION}/collection-games/${GAME}`,
    JSON.stringify({ blurb: fill('<a href="https://example.com/x">x</a>') }),
  ),
  json(`/collections/${COLLECTION}`, JSON.stringify({ title: fill('x') })),
  json(`/collections/${COLLECTION}/order`, `{"game_ids":${ids(70_000)}}`),
  form(`/collections/${COLLECTION}/order`, `game_ids=${ids(70_000)}`),
  form(`/collections/${COLLECTION}/order`, `game_ids=${ids(500)}`),
  json('/collections', fill('[')),
  json('/collections', `{"title":${fill('{"a":', 400_000)}1${fill('}', 80_000)}}`),
  form('/collections', fill('a=1&')),
  form('/collections', `title=${fill('%F0%9F%98%80')}`),
  form('/collections', fill('title[]=1&')),
  formMessage('/credentials/subkey', { game_id: String(GAME), scope: fill('profile:me ', 400_000) }, [KEY]),
  formMessage('/oauth/token', {
    grant_type: 'authorization_code',
    code: fill('x'),
    code_verifier: fill('y', 1000),
  }),
  formMessage('/oauth/device', { client_id: ATTACKER.clientId, scope: fill('profile ', 400_000) }),
  formMessage('/login', { username: fill('İ', 100_000), password: fill('x') }),
];

/** All clients send the same request, so that an expensive one isn't hidden among others. */
export const largestInputs = (attack: Attack) => attack.clientsThat(10, () => attack.inTurn(INPUTS));
