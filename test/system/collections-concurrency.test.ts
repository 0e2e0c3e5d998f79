import fc from 'fast-check';
import { LOCK_COLLECTION } from '../../src/collections/collection-access';
import { type Actor } from '../support/actor';
import { baseUrl, openApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore({ DATABASE_POOL_SIZE: '12' });

const GAMES = 6;
const WRITERS = 4;

// One process queues its writers of a collection, so separate processes are needed to test the lock.
let replicas: string[];
beforeAll(async () => {
  const others = await Promise.all(Array.from({ length: WRITERS - 1 }, () => openApp()));
  replicas = [baseUrl(), ...(await Promise.all(others.map((app) => app.getUrl())))];
});

/** A client's action; games by number, from 0. */
type Action =
  | { do: 'add'; game: number }
  | { do: 'remove'; game: number }
  | { do: 'order'; games: number[]; removed: number[] }
  | { do: 'read' };

/** The response, with times just before the request and just after the response. */
interface Event {
  action: Action;
  response: string;
  requested: number;
  responded: number;
}

type State = readonly number[];

/** The complete rules: the new state of a collection after an action, and its response. */
function model(state: State, action: Action): { next: State; response: string } {
  switch (action.do) {
    case 'add': {
      const next = state.includes(action.game) ? state : [...state, action.game];
      return { next, response: `position ${next.indexOf(action.game) + 1}` };
    }
    case 'remove': {
      const next = state.filter((game) => game !== action.game);
      return { next, response: `removed ${next.length < state.length}` };
    }
    case 'order': {
      const left = state.filter((game) => !action.removed.includes(game));
      const first = action.games.filter((game) => left.includes(game));
      return { next: [...first, ...left.filter((game) => !first.includes(game))], response: 'ordered' };
    }
    case 'read':
      return { next: state, response: `games ${state.join()}` };
  }
}

/** Whether the events are linearizable: some order that respects real time obeys the model. */
function explained(events: Event[], start: State): boolean {
  const tried = new Set<string>();
  const from = (done: bigint, state: State): boolean => {
    const left = events.filter((_, i) => !(done & (1n << BigInt(i))));
    if (left.length === 0) return true;
    const memory = `${done} ${state.join()}`;
    if (tried.has(memory)) return false;
    tried.add(memory);
    const soonest = Math.min(...left.map(({ responded }) => responded));
    return left.some((event) => {
      if (event.requested > soonest) return false;
      const { next, response } = model(state, event.action);
      return response === event.response && from(done | (1n << BigInt(events.indexOf(event))), next);
    });
  };
  return from(0n, start);
}

const game = fc.nat(GAMES - 1);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('add' as const), game }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), game }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('order' as const),
      games: fc.uniqueArray(game),
      removed: fc.uniqueArray(game, { maxLength: 2 }),
    }),
  },
);
const histories = fc.record({
  start: fc.uniqueArray(game),
  writers: fc.array(fc.array(action, { minLength: 2, maxLength: 5 }), {
    minLength: WRITERS,
    maxLength: WRITERS,
  }),
});

class Wrong extends Error {}

async function play(
  owner: Actor,
  ids: number[],
  { start, writers }: { start: number[]; writers: Action[][] },
): Promise<void> {
  const { id } = await make.collection({ owner, games: start.map((n) => ({ id: ids[n]! })) });
  const events: Event[] = [];
  const perform = async (action: Action, at = replicas[0]!) => {
    const requested = performance.now();
    const response = await sendAction(at, owner, id, ids, action);
    events.push({ action, response, requested, responded: performance.now() });
  };
  let writing = true;
  const reader = async () => {
    while (writing) await perform({ do: 'read' });
  };
  const reading = [reader(), reader()];
  // All of them end before the next history, even if one has failed.
  const written = await Promise.allSettled(
    writers.map(async (actions, i) => {
      for (const action of actions) await perform(action, replicas[i % replicas.length]);
    }),
  );
  writing = false;
  for (const outcome of [...written, ...(await Promise.allSettled(reading))])
    if (outcome.status === 'rejected') throw outcome.reason;
  await perform({ do: 'read' });
  const [row] = await sql<{ games_count: number; entries: number }>(
    `SELECT games_count, (SELECT count(*) FROM collection_games WHERE collection_id = c.id) AS entries
     FROM collections c WHERE id = $1`,
    [id],
  );
  if (row!.games_count !== row!.entries) throw new Wrong(`counts ${row!.games_count}, holds ${row!.entries}`);
  if (!explained(events, start)) throw new Wrong('no order of the events explains the responses');
}

async function post(at: string, owner: Actor, path: string, body: object) {
  const headers = { Authorization: owner.key!, 'Content-Type': 'application/json' };
  for (;;) {
    const response = await fetch(at + path, { method: 'POST', headers, body: JSON.stringify(body) });
    // On a busy machine a request may time out, in which case it has done nothing.
    if (response.status !== 503) return { status: response.status, body: await response.json() };
    await response.text();
  }
}

async function sendAction(
  at: string,
  owner: Actor,
  id: number,
  ids: number[],
  action: Action,
): Promise<string> {
  const path = `/collections/${id}`;
  if (action.do === 'read') {
    const { body, status } = await owner.get(`${path}/collection-games`);
    if (status === 503) return sendAction(at, owner, id, ids, action);
    if (status !== 200) throw new Wrong(`read: ${status} ${JSON.stringify(body)}`);
    const entries = (body as { collection_games: { game_id: number; position: number }[] }).collection_games;
    entries.forEach(({ position }, i) => {
      if (position !== i + 1) throw new Wrong(`positions ${entries.map((e) => e.position).join()}`);
    });
    return `games ${entries.map(({ game_id }) => ids.indexOf(game_id)).join()}`;
  }
  const { status, body } =
    action.do === 'order'
      ? await post(at, owner, `${path}/order`, {
          game_ids: action.games.map((n) => ids[n]),
          remove_game_ids: action.removed.map((n) => ids[n]),
        })
      : await post(at, owner, `${path}/${action.do}-game`, { game_id: ids[action.game] });
  if (status !== 200) throw new Wrong(`${action.do}: ${status} ${JSON.stringify(body)}`);
  const response = body as { collection_game?: { position: number }; removed?: boolean };
  if (action.do === 'add') return `position ${response.collection_game!.position}`;
  return action.do === 'remove' ? `removed ${response.removed}` : 'ordered';
}

async function playAll(numRuns: number): Promise<void> {
  const owner = await make.user();
  const games = await Promise.all(Array.from({ length: GAMES }, () => make.game({ owner })));
  const ids = games.map(({ id }) => id);
  await fc.assert(
    fc.asyncProperty(histories, (history) => play(owner, ids, history)),
    { numRuns, endOnFailure: true },
  );
}

test('concurrent changes are linearizable, and every read returns a state between them', async () => {
  await playAll(20);
});

test('control: they are not without the lock', async () => {
  jest.replaceProperty(LOCK_COLLECTION, 'name', 'no_lock');
  jest.replaceProperty(LOCK_COLLECTION, 'text', 'SELECT $1::bigint, $2::bigint');
  await expect(playAll(200)).rejects.toMatchObject({ cause: expect.any(Wrong) });
  jest.restoreAllMocks();
});

test('control: the model rejects an incorrect history', () => {
  const event = (action: Action, response: string, requested: number): Event => ({
    action,
    response,
    requested,
    responded: requested + 1,
  });
  const add = event({ do: 'add', game: 1 }, 'position 1', 1);
  expect(explained([add, event({ do: 'read' }, 'games 1', 3)], [])).toBe(true);
  expect(explained([add, event({ do: 'read' }, 'games ', 3)], [])).toBe(false);
  expect(explained([add, event({ do: 'read' }, 'games ', 2)], [])).toBe(true);
});
