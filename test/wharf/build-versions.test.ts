import { holdLocks, untilBlocked } from '../support/locks';
import { useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';

useStore();

const versions = async (game_id: number) =>
  (
    await sql<{ channel_name: string; id: number; version: number }>(
      'SELECT channel_name, id::int, version FROM builds WHERE game_id = $1 ORDER BY channel_name, id',
      [game_id],
    )
  ).map(({ channel_name, id, version }) => `${channel_name} ${id}: ${version}`);

test('builds have their numbers in the channel, whatever creates or moves them', async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  const values = (...builds: [id: number, channel: string][]) =>
    sql(
      `INSERT INTO builds (game_id, id, channel_name)
       SELECT $1, id, name FROM unnest($2::bigint[], $3::text[]) AS t (id, name)`,
      [game.id, builds.map(([id]) => id), builds.map(([, name]) => name)],
    );
  await values([9005, 'linux'], [9001, 'linux'], [9002, 'windows']);
  await values([9007, 'linux']);
  expect(await versions(game.id)).toEqual([
    'linux 9001: 1',
    'linux 9005: 2',
    'linux 9007: 3',
    'windows 9002: 1',
  ]);
  // An import adds an older one.
  await values([9003, 'linux']);
  await sql(`UPDATE builds SET channel_name = 'windows' WHERE id = 9005`);
  await sql(`UPDATE builds SET user_version = '2' WHERE id = 9007`);
  expect(await versions(game.id)).toEqual([
    'linux 9001: 1',
    'linux 9003: 2',
    'linux 9007: 3',
    'windows 9002: 1',
    'windows 9005: 2',
  ]);
});

test('builds that are created at the same time have different numbers', async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  const insert = `INSERT INTO builds (game_id, channel_name) VALUES (${game.id}, 'osx')`;
  const first = await holdLocks(insert);
  const second = sql(insert);
  await untilBlocked();
  await first.commit();
  await second;
  expect((await versions(game.id)).map((text) => text.split(': ')[1])).toEqual(['1', '2']);
});
