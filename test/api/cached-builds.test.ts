import { Client } from 'pg';
import { BuildChanges } from '../../src/wharf/build-changes';
import { importDirectly } from '../support/importing';
import { countStatements, Replicas } from '../support/replicas';
import { baseUrl, databaseUrl, make, sql, theApp, theClock, useStore } from '../support/store';
import { until } from '../support/time';

useStore();

async function gameWithBuild() {
  const owner = await make.user();
  const game = await make.game({ owner });
  await make.build({ game, user_version: '2.0' });
  return { owner, game, target: `${owner.username}/${game.slug}` };
}

type Query = Record<string, string | number>;

const ask = (query: Query) => async (url: string) => {
  const asked = new URLSearchParams({ channel_name: 'windows', ...query } as Record<string, string>);
  return (await fetch(`${url}/wharf/latest?${asked}`)).text();
};

describe('builds that two replicas cache while polls find no change', () => {
  const replicas = new Replicas(BuildChanges);
  const cached = (query: Query, response: object) => replicas.cache(ask(query), JSON.stringify(response));
  const expectAfterPoll = (query: Query, response: object) =>
    replicas.expectAfterPoll(ask(query), JSON.stringify(response));

  const unknown = { errors: ['invalid game'] };
  test.each<[string, object, (game: { id: number }, owner: { id: number }) => Promise<unknown>]>([
    ['a new build', { latest: '3.0' }, (game) => make.build({ game, user_version: '3.0' })],
    [
      'an import with triggers turned off',
      { latest: '3.0' },
      ({ id }) =>
        importDirectly(
          [{ type: 'build', id: 9_000_000, game_id: id, channel_name: 'windows', user_version: '3.0' }],
          { prepare: (client) => client.query('SET session_replication_role = replica') },
        ),
    ],
    [
      'a game made private',
      unknown,
      ({ id }) => sql(`UPDATE games SET visibility = 'private' WHERE id = $1`, [id]),
    ],
    [
      'a new username of the owner',
      unknown,
      (_, { id }) => sql(`UPDATE users SET username = 'renamed' || id WHERE id = $1`, [id]),
    ],
    [
      'the deletion of a game',
      unknown,
      ({ id }) => sql(`DELETE FROM builds WHERE game_id = ${id}; DELETE FROM games WHERE id = ${id}`),
    ],
  ])('expire with the next poll after %s', async (_change, response, change) => {
    const { game, owner, target } = await gameWithBuild();
    await cached({ target }, { latest: '2.0' });
    await change(game, owner);
    await expectAfterPoll({ target }, response);
  });

  test('expire when a transaction commits, even after transactions that began later', async () => {
    const [{ game }, { game: other }] = [await gameWithBuild(), await gameWithBuild()];
    const slow = new Client({ connectionString: databaseUrl() });
    await slow.connect();
    try {
      await slow.query('BEGIN');
      await slow.query(
        `INSERT INTO builds (game_id, channel_name, user_version) VALUES ($1, 'windows', 'late')`,
        [game.id],
      );
      await cached({ game_id: game.id }, { latest: '2.0' });
      await make.build({ game: other, user_version: '3.0' });
      await cached({ game_id: game.id }, { latest: '2.0' });
      await slow.query('COMMIT');
      await expectAfterPoll({ game_id: game.id }, { latest: 'late' });
    } finally {
      await slow.end();
    }
  });

  test('expire 700 ms after the last successful poll', async () => {
    const { game } = await gameWithBuild();
    await cached({ game_id: game.id }, { latest: '2.0' });
    // Breaks polls, which select the column by name. Changes still get recorded.
    await sql('ALTER TABLE build_changes RENAME xid TO broken');
    try {
      await make.build({ game, user_version: '3.0' });
      theClock().advance(699);
      await expectAfterPoll({ game_id: game.id }, { latest: '2.0' });
      theClock().advance(1);
      await expectAfterPoll({ game_id: game.id }, { latest: '3.0' });
    } finally {
      await sql('ALTER TABLE build_changes RENAME broken TO xid');
    }
  });

  test('are not served while the database does not respond', async () => {
    const { game } = await gameWithBuild();
    await cached({ game_id: game.id }, { latest: '2.0' });
    replicas.proxy.freeze();
    try {
      theClock().advance(700);
      await replicas.pollers[0]!.poll();
      expect(await replicas.responses(ask({ game_id: game.id }))).toEqual([
        '{"latest":"2.0"}',
        expect.stringContaining('"errors"'),
      ]);
    } finally {
      replicas.proxy.thaw();
    }
  });

  test.each([
    [
      'was long ago, because records of changes may have been deleted since',
      () => theClock().setTimeOfDay(theClock().now() + 6 * 60_000),
    ],
    ['was on another server', () => replicas.moveToAnotherServer()],
  ])('expire if the last poll %s', async (_last, happens) => {
    const { game } = await gameWithBuild();
    await cached({ game_id: game.id }, { latest: '2.0' });
    try {
      happens();
      await sql(`
        INSERT INTO builds (game_id, channel_name, user_version) VALUES (${game.id}, 'windows', '3.0');
        DELETE FROM build_changes WHERE xid = pg_current_xact_id()`);
      await expectAfterPoll({ game_id: game.id }, { latest: '3.0' });
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('are not polled for after 30 seconds without requests', async () => {
    const { game } = await gameWithBuild();
    const statements = countStatements(theApp());
    const polls = async () => {
      await replicas.poll();
      return statements.named(/^poll_build_changes$/);
    };
    for (let i = 0; i < 2; i++) await replicas.responses(ask({ game_id: game.id }));
    expect(await polls()).toBe(1);
    theClock().advance(30_000);
    expect(await polls()).toBe(2);
    theClock().advance(1);
    expect(await polls()).toBe(2);
    await replicas.responses(ask({ game_id: game.id }));
    expect(await polls()).toBe(3);
    statements.stop();
  });
});

test('polls on its own timer', async () => {
  const { game } = await gameWithBuild();
  const statements = countStatements(theApp());
  for (let i = 0; i < 2; i++) await ask({ game_id: game.id })(baseUrl());
  await until(() => statements.named(/^poll_build_changes$/) > 1);
  statements.stop();
});

test('records a change that may affect the newest build once per transaction, and no other change', async () => {
  const { game, owner } = await gameWithBuild();
  const { owner: heir } = await gameWithBuild();
  const noted = async () =>
    Number((await sql<{ n: string }>('SELECT count(*) AS n FROM build_changes'))[0]!.n);
  for (const [change, rows] of [
    [`UPDATE builds SET state = 'failed' WHERE game_id = ${game.id}`, 1],
    [`UPDATE games SET slug = 'another-slug' WHERE id = ${game.id}`, 1],
    [`UPDATE games SET user_id = ${heir.id} WHERE id = ${game.id}`, 1],
    [`DELETE FROM builds WHERE game_id = ${game.id}; DELETE FROM games WHERE id = ${game.id}`, 1],
    ['DELETE FROM games WHERE id = 0', 1],
    ['DELETE FROM users WHERE id = 0', 1],
    [`UPDATE users SET username = 'another-name' WHERE id = ${owner.id}`, 1],
    [`SET LOCAL search_path = ''; DELETE FROM public.builds WHERE id = 0`, 1],
    ['BEGIN; TRUNCATE builds; ROLLBACK', 0],
    ['BEGIN; SAVEPOINT a; TRUNCATE builds; ROLLBACK TO a; DELETE FROM builds WHERE id = 0; COMMIT', 1],
    ['TRUNCATE builds', 1],
    [`UPDATE games SET views_count = views_count + 1`, 0],
    [`UPDATE users SET display_name = 'Another' WHERE id = ${heir.id}`, 0],
  ] as const) {
    const before = await noted();
    await sql(change);
    expect([change, (await noted()) - before]).toEqual([change, rows]);
  }
});

test('deletes records of changes ten minutes after their commit', async () => {
  const { game } = await gameWithBuild();
  const changes = theApp().get(BuildChanges);
  changes.stopPolling();
  theClock().stop();
  const slow = new Client({ connectionString: databaseUrl() });
  await slow.connect();
  const add = `INSERT INTO builds (game_id, channel_name) VALUES (${game.id}, 'windows')`;
  const record = async (db: { query: (text: string) => Promise<{ rows: { xid: string }[] }> }) =>
    (await db.query(`${add} RETURNING pg_current_xact_id()::text AS xid`)).rows[0]!.xid;
  const stored = async () =>
    (await sql<{ xid: string }>('SELECT xid::text FROM build_changes')).map(({ xid }) => xid);
  const poll = async () => {
    for (let i = 0; i < 2; i++) await ask({ game_id: game.id })(baseUrl());
    await changes.poll();
  };
  try {
    theClock().advance(11 * 60_000);
    await slow.query('BEGIN');
    const late = await record(slow);
    const early = await record({ query: async (text) => ({ rows: await sql(text) }) });
    // As a dump restored from another server would contain it.
    const foreign = '9000000000000000000';
    await sql('INSERT INTO build_changes VALUES ($1)', [foreign]);
    await poll();
    await until(async () => !(await stored()).includes(foreign));
    expect(await stored()).toContain(early);
    await slow.query('COMMIT');
    theClock().advance(11 * 60_000);
    await poll();
    await until(async () => !(await stored()).includes(early));
    expect(await stored()).toContain(late);
  } finally {
    changes.startPolling();
    await slow.end();
  }
});
