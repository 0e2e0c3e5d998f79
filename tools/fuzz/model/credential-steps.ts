import { setTimeout as sleep } from 'node:timers/promises';
import { covers } from '../credentials';
import { excerpt, Finding } from '../oracles';
import { endOf, type Key, type Revocation } from './model';
import { type Play, REVOCATION_MS } from './play';
import type { Of } from './steps';

const PROFILE = 'GET /profile';

/** What a request may carry, and since when no longer. */
interface Credential {
  text: string;
  user: number;
  scopes?: string[];
  ended: Revocation | undefined;
  refusal: string;
}

export const ofKey = (key: Key): Credential => ({ ...key, ended: key.revoked, refusal: 'invalid key' });

export function credentialsOf({ model }: Play): Record<'keys' | 'jwts' | 'accessTokens', Credential[]> {
  return {
    keys: model.keys.map(ofKey),
    jwts: model.jwts.map((jwt) => ({ ...jwt, ended: jwt.key?.revoked, refusal: 'invalid token' })),
    accessTokens: model.accessTokens.map((token) => ({
      ...token,
      ended: endOf(token.family),
      refusal: 'invalid key',
    })),
  };
}

/** One of those that there are, the newest first. */
export const oneOf = <T>(all: T[], index: number): T | undefined => all.at(-1 - (index % all.length));

export async function use(play: Play, credential: Credential | undefined): Promise<void> {
  if (!credential) return;
  const { text, user, scopes, ended, refusal } = credential;
  const over = play.isOver(ended);
  const answered = await play.call({ user, operation: PROFILE, key: text });
  if (over || (ended && answered.answer.status === 401)) play.refused(PROFILE, answered, [401, refusal]);
  else if (scopes && !covers(scopes, 'profile:me'))
    play.refused(PROFILE, answered, [403, 'api key does not permit `profile:me`']);
  else play.expect(PROFILE, answered, 200, { user: play.model.answers.user(play.tenant.user(user)) });
}

/** By the replica that is asked, and by the other: what was just found good may be remembered. */
export async function useEverywhere(play: Play, credential: Credential | undefined): Promise<void> {
  for (let replica = 0; replica < 2; replica++) {
    await use(play, credential);
    play.changeReplica();
  }
}

/** What was taken back from any replica is refused by all, a second later. */
export async function settle(play: Play): Promise<void> {
  const ended = Object.values(credentialsOf(play)).flatMap((all) => all.filter((one) => one.ended));
  const last = Math.max(0, ...ended.map((one) => one.ended!.at));
  await sleep(Math.max(0, last + REVOCATION_MS + 5 - performance.now()));
  for (const one of ended) await useEverywhere(play, one);
}

export async function makeKey(play: Play, { user }: { user: number }): Promise<void> {
  if (user === 3) return;
  const path = '/user/settings/api-keys';
  const session = await play.session(user);
  const { answer } = await session.post(path, { label: 'fuzz <label>' });
  const { body } = (await session.get(path, true)).answer;
  const text = /gw_[0-9A-Za-z]{38}/.exec(body)?.[0];
  const id = Math.max(...[...body.matchAll(/api-keys\/(\d+)\/revoke/g)].map(([, one]) => Number(one)));
  if (answer.status !== 303 || !text) throw new Finding('model', 'a key is not made', excerpt(answer));
  if (body.includes('<label>')) throw new Finding('page', 'a label is not escaped', body.slice(0, 600));
  // Shown once: a second look is checked for credentials like any other page.
  await session.get(path);
  play.model.keys.push({ id, text, user });
}

/** Used right before and right after. */
export async function revokeKey(play: Play, { user, key: index }: Of<'revoke key'>): Promise<void> {
  const key = oneOf(play.model.keys, index);
  if (user === 3 || !key) return;
  await useEverywhere(play, ofKey(key));
  const session = await play.session(user);
  const { answer } = await session.post(`/user/settings/api-keys/${key.id}/revoke`, {});
  const own = key.user === user && !key.revoked;
  if (answer.status !== (own ? 303 : 404))
    throw new Finding('model', 'revoking a key is not what the model says', excerpt(answer));
  if (own) key.revoked = play.revocation;
  await useEverywhere(play, ofKey(key));
}

export async function useKey(play: Play, { key }: Of<'use key'>): Promise<void> {
  await use(play, oneOf(credentialsOf(play).keys, key));
}

export async function useToken(play: Play, { token }: Of<'use token'>): Promise<void> {
  await use(play, oneOf(credentialsOf(play).jwts, token));
}

export async function useAccess(play: Play, { token }: Of<'use access'>): Promise<void> {
  await use(play, oneOf(credentialsOf(play).accessTokens, token));
}

export async function makeToken(
  play: Play,
  { user: given, place, key: index, game }: Of<'make token'>,
): Promise<void> {
  const operation = 'POST /credentials/subkey';
  const key = oneOf(play.model.keys, index);
  const user = key?.user ?? given;
  const game_id = play.tenant.base + game;
  const over = play.isOver(key?.revoked);
  const fields = { game_id, scope: 'profile:me' };
  const answered = await play.call({ user, operation, fields, place, key: key?.text });
  if (over || (key?.revoked && answered.answer.status === 401)) {
    play.refused(operation, answered, [401, 'invalid key']);
    return;
  }
  if (!play.model.canViewGame(game_id, play.tenant.user(user))) {
    play.refused(operation, answered, [404, 'invalid game']);
    return;
  }
  if (answered.answer.status !== 200) play.fail(operation, 'is refused', answered, game_id);
  play.model.jwts.push({ text: (answered.json as { key: string }).key, key, user });
}
