import { type Answer, ask, keptConnections, type Question } from './ask';
import { DEVELOPER, GAME, KEYS } from './store';
import type { Tally } from './tally';

type Ask = (path: string, question?: Question) => Promise<Answer | undefined>;
type Work = (ask: Ask) => Promise<unknown>;

const bodyOf = <Body>(answer: Answer | undefined): Body | undefined =>
  answer?.status === 200 ? (JSON.parse(answer.body) as Body) : undefined;

/** A collection from its first day to its last. */
const collect: Work = async (ask) => {
  const post = (path: string, form: Record<string, string>) =>
    ask(path, { method: 'POST', form, headers: { 'idempotency-key': `soak ${Math.random()}` } });
  const made = bodyOf<{ collection: { id: number } }>(
    await post('/collections', {
      title: 'Of the soak',
      description: '<p>Some <b>bold</b> words and a <a href="https://example.com">link</a></p>',
    }),
  );
  if (!made) return;
  const path = `/collections/${made.collection.id}`;
  await post(`${path}/add-game`, { game_id: String(GAME), blurb: 'A note' });
  await post(`${path}/add-game`, { game_id: String(GAME + 1) });
  await post(`${path}/order`, { game_ids: `[${GAME + 1},${GAME}]` });
  await ask(`${path}/collection-games`);
  await post(`${path}/delete`, {});
};

/** A game that a player launches, and its token. */
const launch: Work = async (ask) => {
  const form = { game_id: String(GAME), scope: 'profile:me' };
  const made = bodyOf<{ key: string }>(await ask('/credentials/subkey', { method: 'POST', form }));
  if (made) await ask('/profile', { key: made.key });
};

const WORK: Work[] = [
  (ask) => ask('/profile'),
  (ask) => ask('/profile/games', { key: DEVELOPER }),
  (ask) => ask('/profile/collections'),
  (ask) => ask('/credentials/info'),
  (ask) => ask(`/wharf/latest?game_id=${GAME}&channel_name=windows`),
  collect,
  launch,
];

const PAUSE = 25;

/** One client on one kept connection, which does one thing after another, and tells of every answer but 200. */
export async function visit(
  url: string,
  client: number,
  things: number,
  tally: Tally,
  tell: (what: string) => void,
): Promise<void> {
  const agent = keptConnections(1);
  const key = KEYS[client % KEYS.length];
  const asks: Ask = async (path, question) => {
    const answer = await tally.of(ask(url + path, { key, agent, timeout: 5000, ...question }));
    if (answer?.status !== 200) tell(`${path}: ${answer?.status ?? 'no answer'}`);
    return answer;
  };
  for (let n = 0; n < things; n++) {
    await WORK[(client + n) % WORK.length]!(asks);
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  agent.destroy();
}
