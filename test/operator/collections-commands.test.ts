import { Command } from 'commander';
import type { Resanitized } from '../../src/collections/resanitize.service';
import { addCommands } from '../../src/commands/program';
import { ProgressDisplay } from '../../src/commands/progress';
import { theApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore();

/** What a command prints, or its error message. */
async function run(...words: string[]): Promise<{ printed: string; failed?: string }> {
  const lines: string[] = [];
  const log = jest.spyOn(console, 'log').mockImplementation((line: string = '') => void lines.push(line));
  const program = new Command();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), words);
  try {
    await program.parseAsync(words, { from: 'user' });
    return { printed: lines.join('\n') };
  } catch (error) {
    return { printed: lines.join('\n'), failed: (error as Error).message };
  } finally {
    log.mockRestore();
  }
}

describe('collections show', () => {
  test('shows who can edit a collection and whose profiles show it', async () => {
    const owner = await make.user({ username: 'leaf' });
    const admin = await make.user({ username: 'Twig' });
    const { id } = await make.collection({
      owner,
      admins: [admin],
      title: 'Train rides',
      description: '<b>x</b>',
      created_at: '2024-05-06T07:08:09Z',
      updated_at: '2024-05-07T07:08:09Z',
    });
    await admin.post(`/collections/${id}`, { on_profile: true });
    await sql(`UPDATE collections SET updated_at = '2024-05-07T07:08:09Z' WHERE id = $1`, [id]);
    expect((await run('collections', 'show', String(id))).printed).toBe(
      [
        'title        Train rides',
        `url          https://gamewharf.example/c/${id}/train-rides`,
        'games        0',
        'private      no',
        'layout       grid',
        'created      2024-05-06T07:08:09Z',
        'updated      2024-05-07T07:08:09Z',
        'description  <b>x</b>',
        '',
        'USER  ROLE   ON PROFILE',
        'leaf  owner  no',
        'Twig  admin  yes',
      ].join('\n'),
    );
  });

  test('reports a missing collection', async () => {
    expect(await run('collections', 'show', '999999')).toEqual({
      printed: '',
      failed: "Collection 999999 doesn't exist.",
    });
  });
});

describe('collections resanitize', () => {
  test('removes only markup that the list no longer allows', async () => {
    const owner = await make.user();
    const games = await Promise.all([1, 2].map(() => make.game({ owner })));
    const dirty = await make.collection({ owner, games, description: '<b>x</b><script>y</script>' });
    const gone = await make.collection({ owner, description: '<script>y</script>' });
    const clean = await make.collection({ owner, games, description: '<b>x</b>' });
    await sql(
      `UPDATE collection_games SET blurb = '<font>z</font>' WHERE collection_id = $1 AND game_id = $2`,
      [dirty.id, games[1]!.id],
    );
    await sql(`UPDATE collection_games SET blurb = 'fine' WHERE collection_id = $1`, [clean.id]);
    const rest = async () => [
      await sql(`SELECT id, title, updated_at, games_count FROM collections ORDER BY id`),
      await sql(`SELECT xmin::text, description FROM collections WHERE id = $1`, [clean.id]),
      await sql(`SELECT xmin::text, blurb FROM collection_games WHERE collection_id = $1`, [clean.id]),
    ];
    const before = await rest();
    expect(await run('collections', 'resanitize')).toEqual({ printed: '7 texts checked, 3 changed.' });
    expect(await rest()).toEqual(before);
    expect(
      await sql('SELECT id, description FROM collections WHERE id = ANY($1) ORDER BY id', [
        [dirty.id, gone.id],
      ]),
    ).toEqual([
      { id: dirty.id, description: '<b>x</b>' },
      { id: gone.id, description: null },
    ]);
    expect(
      await sql('SELECT blurb FROM collection_games WHERE collection_id = $1 AND game_id = $2', [
        dirty.id,
        games[1]!.id,
      ]),
    ).toEqual([{ blurb: 'z' }]);
    expect(await run('collections', 'resanitize')).toEqual({ printed: '6 texts checked, 0 changed.' });
  });

  test('handles more than a batch and results that are too long', async () => {
    const owner = await make.user();
    await sql(
      `INSERT INTO collections (user_id, title, description) SELECT $1, 'Many', '<i>' || n || '<u>' FROM generate_series(1, 1200) n`,
      [owner.id],
    );
    const link = '<a href="https://x.example">x</a>';
    const { id } = await make.collection({ owner, description: link.repeat(600) });
    const report = jest.spyOn(ProgressDisplay.prototype, 'report');
    const states: number[] = [];
    report.mockImplementation((state) => void states.push((state as Resanitized).checked));
    const { printed, failed } = await run('collections', 'resanitize');
    report.mockRestore();
    expect(states.slice(0, 3)).toEqual([500, 1000, expect.any(Number)]);
    expect(printed).toMatch(/^1,\d{3} texts checked, 1,200 changed\.$/);
    expect(failed).toBe(
      `These texts are unchanged because they would exceed the maximum length:\n  the description of collection ${id}`,
    );
    expect(
      await sql(`SELECT FROM collections WHERE title = 'Many' AND description !~ '^<i>\\d+<u></u></i>$'`),
    ).toEqual([]);
  });
});
