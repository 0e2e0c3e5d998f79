import { Actor } from '../support/actor';
import { useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { ServiceProcess } from '../support/service-process';
import { until } from '../support/time';

const OPERATOR_TOKEN = 'the operator token of this file';
const GAMES = 60;
/** A kill during the first requests, and two in the middle of them. */
const RESPONSES_BEFORE_KILL = [1, 12, 30];

useStore({ OPERATOR_TOKEN });

let service: ServiceProcess;
beforeAll(async () => {
  service = await ServiceProcess.open({ OPERATOR_TOKEN });
});
afterEach(() => service.kill());

async function kill(): Promise<void> {
  await service.kill();
  // The server notices that the connection is closed, and rolls back.
  await until(
    async () =>
      (
        await sql(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
        )
      ).length === 0,
  );
}

/** The JSON of a response with status 200; undefined if the connection was lost. */
async function post(path: string, token: string, body: object, retryKey?: string): Promise<unknown> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    ...(retryKey !== undefined && { 'idempotency-key': retryKey }),
  };
  try {
    for (;;) {
      const response = await fetch(service.url + path, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      if (response.status === 200) return await response.json();
      await response.text();
      // On a busy machine a request may time out, in which case it has done nothing.
      if (response.status !== 503) return undefined;
    }
  } catch {
    return undefined;
  }
}

const liveKeys = (purchase_id: number) =>
  sql<{ id: number; game_id: number }>(
    'SELECT id, game_id FROM download_keys WHERE purchase_id = $1 AND revoked_at IS NULL ORDER BY id',
    [purchase_id],
  );

async function bundleOfPlayer() {
  const owner = await make.user();
  const player = await make.user();
  const games: { id: number }[] = [];
  for (let n = 0; n < GAMES; n++) games.push(await make.game({ owner }));
  const bundle = await make.bundle({ owner, games });
  const sold = await new Actor(0, 'operator', OPERATOR_TOKEN).postJson('/operator/purchases', {
    bundle_id: bundle.id,
    user_id: player.id,
    email: 'buyer@example.com',
    currency: 'USD',
    amount: 1000,
  });
  const { purchase } = sold.body as { purchase: { id: number } };
  return {
    key: player.key!,
    game_ids: games.map(({ id }) => id),
    bundle_id: bundle.id,
    purchase_id: purchase.id,
  };
}

/** Claims each game twice at the same time, half of them with an Idempotency-Key of this phase. Returns the IDs of keys by game. */
async function claimAll(
  { key, game_ids, bundle_id }: Awaited<ReturnType<typeof bundleOfPlayer>>,
  phase: string,
  onResponse: (responses: number) => void = () => undefined,
): Promise<Map<number, number>> {
  const claimed = new Map<number, number>();
  let responses = 0;
  const waiting = game_ids.flatMap((id) => [id, id]);
  const claimer = async () => {
    for (let game_id = waiting.shift(); game_id !== undefined; game_id = waiting.shift()) {
      const body = await post(
        `/bundles/${bundle_id}/claim-game`,
        key,
        { game_id },
        game_id % 2 ? `${phase} ${game_id}` : undefined,
      );
      if (body === undefined) continue;
      const { id } = (body as { download_key: { id: number } }).download_key;
      expect(claimed.get(game_id) ?? id).toBe(id);
      claimed.set(game_id, id);
      onResponse(++responses);
    }
  };
  await Promise.all(Array.from({ length: 12 }, claimer));
  return claimed;
}

test.each(RESPONSES_BEFORE_KILL)(
  'kill -9 after %d responses to claims leaves one key for each game, and none after a refund',
  async (before) => {
    const bought = await bundleOfPlayer();
    const { purchase_id, game_ids } = bought;
    await service.start();
    const first = await claimAll(bought, 'claim', (responses) => {
      if (responses === before) void service.kill();
    });
    await kill();
    const kept = await liveKeys(purchase_id);
    expect(new Set(kept.map(({ game_id }) => game_id)).size).toBe(kept.length);
    // A response with status 200 was for a stored key.
    expect(kept).toEqual(expect.arrayContaining([...first].map(([game_id, id]) => ({ id, game_id }))));
    expect(first.size).toBeLessThan(game_ids.length);

    await service.start();
    const all = await claimAll(bought, 'claim');
    expect(all.size).toBe(GAMES);
    for (const { game_id, id } of kept) expect(all.get(game_id)).toBe(id);
    expect(await liveKeys(purchase_id)).toHaveLength(GAMES);

    await sql('DELETE FROM download_keys WHERE purchase_id = $1', [purchase_id]);
    const refund = () => post(`/operator/purchases/${purchase_id}/refund`, OPERATOR_TOKEN, {});
    let refunding: Promise<unknown> | undefined;
    await claimAll(bought, 'claim before refund', (responses) => {
      if (responses === before) refunding = refund();
      if (responses === before + 1) void service.kill();
    });
    await refunding;
    await kill();
    await service.start();
    expect(await refund()).toMatchObject({ purchase: { id: purchase_id } });
    expect(await liveKeys(purchase_id)).toEqual([]);
    expect((await claimAll(bought, 'claim after refund')).size).toBe(0);
    // Each key has the game in its purchase, and the account of its buyer.
    expect(
      await sql(
        `SELECT k.id FROM download_keys k JOIN purchases p ON p.id = k.purchase_id
         WHERE p.id = $1 AND (k.account_id IS DISTINCT FROM p.user_id OR NOT EXISTS (
           SELECT FROM purchase_games g WHERE (g.purchase_id, g.game_id) = (p.id, k.game_id)))`,
        [purchase_id],
      ),
    ).toEqual([]);
  },
);
