import { importMessage } from '../imports';
import type { JsonObject } from '../json';
import { downloadKeyRecord, ndjsonOf, purchaseRecord } from '../world';
import type { Play } from './play';
import type { Of } from './steps';

export async function profile(play: Play, { user }: { user: number }): Promise<void> {
  const operation = 'GET /profile';
  play.expect(operation, await play.call({ user, operation }), 200, {
    user: play.model.answers.user(play.tenant.user(user)),
  });
}

export async function games(play: Play, { user }: { user: number }): Promise<void> {
  const operation = 'GET /profile/games';
  play.expect(
    operation,
    await play.call({ user, operation }),
    200,
    play.model.answers.games(play.tenant.user(user)),
  );
}

export async function sell(play: Play, { game, buyer, amount, currency }: Of<'sell'>): Promise<void> {
  const purchase = {
    id: play.tenant.base + 50 + play.model.purchases.length,
    games: [play.tenant.base + game],
    bundle: false,
    email: play.tenant.email(buyer),
    user_id: play.tenant.user(buyer),
    currency,
    amount,
    status: 'complete',
    created_at: '2024-03-04T05:06:07Z',
  };
  if (play.model.purchases.length >= 30) return;
  await importRecord(play, purchaseRecord(purchase), 'purchases');
  play.model.purchases.push(purchase);
}

export async function giveKey(play: Play, { game, to, revoked }: Of<'give key'>): Promise<void> {
  const n = 50 + play.model.downloadKeys.length;
  if (play.model.downloadKeys.length >= 30) return;
  const key = {
    id: play.tenant.base + n,
    key: play.tenant.downloadKey(n),
    game_id: play.tenant.base + game,
    user_id: play.tenant.user(to),
    revoked,
    created_at: '2024-03-04T05:06:07Z',
  };
  await importRecord(play, downloadKeyRecord(key), 'download_keys');
  play.model.downloadKeys.push(key);
}

async function importRecord(play: Play, record: JsonObject, table: string): Promise<void> {
  const name = 'POST /operator/import';
  const about = { operation: play.target.operation(name) };
  const answered = await play.target.send(importMessage(ndjsonOf([record])), about, play.replica);
  play.expect(name, answered, 200, {
    summary: [`${table} 1 new, 0 changed, 0 unchanged`],
    types: { [table]: { new: 1, changed: 0, unchanged: 0 } },
  });
}

export async function lookUp(play: Play, { user, game, buyer, by, what }: Of<'look up'>): Promise<void> {
  const operation = `GET /games/{game_id}/${what}`;
  const game_id = play.tenant.base + game;
  const selector =
    by === 'email' ? { email: play.tenant.email(buyer) } : { user_id: play.tenant.user(buyer) };
  const answered = await play.call({
    user,
    operation,
    path: { game_id: String(game_id) },
    fields: selector,
  });
  const me = play.tenant.user(user);
  const expected =
    what === 'purchases'
      ? (play.model.answers.purchases(game_id, me, selector) ?? 'invalid game')
      : play.model.answers.downloadKey(game_id, me, selector);
  if (typeof expected === 'string') play.refused(operation, answered, [404, expected]);
  else play.expect(operation, answered, 200, expected);
}
