import { excerpt, Finding } from '../oracles';
import type { Key } from './model';
import type { Play } from './play';
import type { Of } from './steps';

export async function makeKey(play: Play, { user }: { user: number }): Promise<void> {
  if (user === 3) return;
  const path = '/user/settings/api-keys';
  const session = await play.target.session(play.tenant, user);
  const { answer } = await session.post(path, { label: 'fuzz <label>' });
  const { body } = (await session.get(path, true)).answer;
  const key = /gw_[0-9A-Za-z]{38}/.exec(body)?.[0];
  const id = Math.max(...[...body.matchAll(/api-keys\/(\d+)\/revoke/g)].map(([, one]) => Number(one)));
  if (answer.status !== 303 || !key) throw new Finding('model', 'a key is not made', excerpt(answer));
  if (body.includes('<label>')) throw new Finding('page', 'a label is not escaped', body.slice(0, 600));
  // Shown once: a second look is checked for credentials like any other page.
  await session.get(path);
  play.model.keys.push({ id, key, user, revoked: false });
}

/** One of those that there are. */
const oneOf = <T>(all: T[], index: number): T | undefined => all[index % all.length];

/** Used right before and right after: what was just found good may be remembered. */
export async function revokeKey(play: Play, { user, key: index }: Of<'revoke key'>): Promise<void> {
  const key = oneOf(play.model.keys, index);
  if (user === 3 || !key) return;
  await use(play, key);
  const session = await play.target.session(play.tenant, user);
  const { answer } = await session.post(`/user/settings/api-keys/${key.id}/revoke`, {});
  const own = key.user === user && !key.revoked;
  if (answer.status !== (own ? 303 : 404))
    throw new Finding('model', 'revoking a key is not what the model says', excerpt(answer));
  key.revoked ||= own;
  await use(play, key);
}

export async function useKey(play: Play, { key: index }: Of<'use key'>): Promise<void> {
  const key = oneOf(play.model.keys, index);
  if (key) await use(play, key);
}

async function use(play: Play, key: Key): Promise<void> {
  const operation = 'GET /profile';
  const answered = await play.call({ user: key.user, operation, key: key.key });
  if (key.revoked) play.refused(operation, answered, [401, 'invalid key']);
  else play.expect(operation, answered, 200, { user: play.model.answers.user(play.tenant.user(key.user)) });
}

export async function makeToken(
  play: Play,
  { user: given, place, key: index, game }: Of<'make token'>,
): Promise<void> {
  const operation = 'POST /credentials/subkey';
  const key = oneOf(play.model.keys, index);
  const user = key?.user ?? given;
  const game_id = play.tenant.base + game;
  const answered = await play.call({
    user,
    operation,
    fields: { game_id, scope: 'profile:me' },
    place,
    key: key?.key,
  });
  if (key?.revoked) {
    play.refused(operation, answered, [401, 'invalid key']);
    return;
  }
  if (!play.model.canViewGame(game_id, play.tenant.user(user))) {
    play.refused(operation, answered, [404, 'invalid game']);
    return;
  }
  if (answered.answer.status !== 200) play.fail(operation, 'is refused', answered, game_id);
  play.model.tokens.push({ jwt: (answered.json as { key: string }).key, key, user });
}

export async function useToken(play: Play, { token: index }: Of<'use token'>): Promise<void> {
  const token = oneOf(play.model.tokens, index);
  if (!token) return;
  const operation = 'GET /profile';
  const answered = await play.call({ user: token.user, operation, key: token.jwt });
  if (token.key?.revoked) play.refused(operation, answered, [401, 'invalid token']);
  else play.expect(operation, answered, 200, { user: play.model.answers.user(play.tenant.user(token.user)) });
}
