import { Client } from 'pg';
import { importDirectly } from '../support/importing';
import { elapse, questionsOf, Replicas, sixMinutesLater } from '../support/remembering';
import { databaseUrl, make, openApp, sql, theApp, useStore } from '../support/store';
import { moment, until } from '../support/time';

useStore();
// What is promised in milliseconds is measured here, on machines that others use too.
jest.retryTimes(2);

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

describe('what two replicas have known for longer than they would without looking', () => {
  const replicas = new Replicas(/^newest_builds/);
  const known = (query: Query, answer: object) => replicas.know(ask(query), JSON.stringify(answer));
  const seen = (query: Query, answer: object) => replicas.see(ask(query), JSON.stringify(answer));

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
      'another name of the owner',
      unknown,
      (_, { id }) => sql(`UPDATE users SET username = 'renamed' || id WHERE id = $1`, [id]),
    ],
    [
      'a game deleted',
      unknown,
      ({ id }) => sql(`DELETE FROM builds WHERE game_id = ${id}; DELETE FROM games WHERE id = ${id}`),
    ],
  ])('they see anew within a second: %s', async (_change, answer, change) => {
    const { game, owner, target } = await gameWithBuild();
    await known({ target }, { latest: '2.0' });
    await change(game, owner);
    await seen({ target }, answer);
  });

  test('a transaction that commits late is seen, also when later ones were before it', async () => {
    const [{ game }, { game: other }] = [await gameWithBuild(), await gameWithBuild()];
    const slow = new Client({ connectionString: databaseUrl() });
    await slow.connect();
    try {
      await slow.query('BEGIN');
      await slow.query(
        `INSERT INTO builds (game_id, channel_name, user_version) VALUES ($1, 'windows', 'late')`,
        [game.id],
      );
      await known({ game_id: game.id }, { latest: '2.0' });
      await make.build({ game: other, user_version: '3.0' });
      await known({ game_id: game.id }, { latest: '2.0' });
      await slow.query('COMMIT');
      await seen({ game_id: game.id }, { latest: 'late' });
    } finally {
      await slow.end();
    }
  });

  test('is asked again where looking fails', async () => {
    const { game } = await gameWithBuild();
    await known({ game_id: game.id }, { latest: '2.0' });
    // A look names the column, and a change does not.
    await sql('ALTER TABLE build_changes RENAME xid TO broken');
    try {
      await make.build({ game, user_version: '3.0' });
      await seen({ game_id: game.id }, { latest: '3.0' });
    } finally {
      await sql('ALTER TABLE build_changes RENAME broken TO xid');
    }
  });

  test('is not shown where the database hangs', async () => {
    const { game } = await gameWithBuild();
    await known({ game_id: game.id }, { latest: '2.0' });
    replicas.proxy.freeze();
    try {
      await moment(750);
      expect(await replicas.answers(ask({ game_id: game.id }))).toEqual([
        '{"latest":"2.0"}',
        expect.stringContaining('"errors"'),
      ]);
    } finally {
      replicas.proxy.thaw();
    }
  });

  test.each([
    ['long ago, and what came since may have been swept', sixMinutesLater],
    ['on another server', () => replicas.moveToAnotherServer()],
  ])('is asked again where the last look was %s', async (_last, happens) => {
    const { game } = await gameWithBuild();
    await known({ game_id: game.id }, { latest: '2.0' });
    try {
      happens();
      await sql(`
        INSERT INTO builds (game_id, channel_name, user_version) VALUES (${game.id}, 'windows', '3.0');
        DELETE FROM build_changes WHERE xid = pg_current_xact_id()`);
      await seen({ game_id: game.id }, { latest: '3.0' });
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('nobody looks when nobody asks', async () => {
    const { game } = await gameWithBuild();
    const questions = questionsOf(theApp());
    const looks = () => questions.named(/^poll_build_changes$/);
    await until(async () => (await replicas.answers(ask({ game_id: game.id }))) && looks() > 0);
    elapse(31_000);
    try {
      await moment(300);
      const before = looks();
      await moment(600);
      expect(looks()).toBe(before);
    } finally {
      jest.restoreAllMocks();
    }
  });
});

test('what may change the newest build is noted, once a transaction, and nothing else is', async () => {
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

test('what was noted is swept ten minutes after it was committed, however long ago it was written', async () => {
  const { game } = await gameWithBuild();
  const replica = await openApp();
  const slow = new Client({ connectionString: databaseUrl() });
  await slow.connect();
  const add = `INSERT INTO builds (game_id, channel_name) VALUES (${game.id}, 'windows')`;
  const note = async (db: { query: (text: string) => Promise<{ rows: { xid: string }[] }> }) =>
    (await db.query(`${add} RETURNING pg_current_xact_id()::text AS xid`)).rows[0]!.xid;
  const stored = async () =>
    (await sql<{ xid: string }>('SELECT xid::text FROM build_changes')).map(({ xid }) => xid);
  const url = await replica.getUrl();
  const askUntil = (condition: () => Promise<boolean>) =>
    until(async () => {
      await fetch(`${url}/wharf/latest?game_id=${game.id}&channel_name=windows`);
      return condition();
    });
  try {
    await slow.query('BEGIN');
    const late = await note(slow);
    const early = await note({ query: async (text) => ({ rows: await sql(text) }) });
    // As the dump of another server would have it.
    const foreign = '9000000000000000000';
    await sql('INSERT INTO build_changes VALUES ($1)', [foreign]);
    await askUntil(async () => !(await stored()).includes(foreign));
    expect(await stored()).toContain(early);
    await slow.query('COMMIT');
    elapse(11 * 60_000);
    await askUntil(async () => !(await stored()).includes(early));
    expect(await stored()).toContain(late);
  } finally {
    jest.restoreAllMocks();
    await slow.end();
    await replica.close();
  }
});
