import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { Client } from 'pg';
import { addCommands } from '../../src/commands/program';
import { describe as described, ProgressDisplay, shareOf } from '../../src/operator/import/progress';
import { metric } from '../support/metric';
import { withDatabase } from '../support/database';
import { sql, theApp, useStore } from '../support/store';
import { until } from '../support/time';

useStore();

let folder: string;
beforeAll(async () => (folder = await mkdtemp(join(tmpdir(), 'gamewharf-import-'))));
afterAll(() => rm(folder, { recursive: true }));

async function run(...words: string[]) {
  const out = jest.spyOn(console, 'log').mockImplementation();
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  addCommands(program, (work) => work(theApp(), new AbortController().signal), words);
  try {
    await program.parseAsync(words, { from: 'user' });
    return out.mock.calls.flat().join('\n').split('\n');
  } finally {
    out.mockRestore();
  }
}

test('writes and imports a demo store', async () => {
  const file = join(folder, 'demo.ndjson');
  await run('demo', file, '--users', '12', '--download-keys', '7', '--large-collection', '15', '--seed', '3');
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  expect(lines.filter((line) => line.includes('"type":"download_key"'))).toHaveLength(7);
  expect(await run('import', file)).toEqual([
    'users 12 new, 0 changed, 0 unchanged',
    'games 18 new, 0 changed, 0 unchanged',
    'purchases 80 new, 0 changed, 0 unchanged',
    'download_keys 7 new, 0 changed, 0 unchanged',
    'collections 7 new, 0 changed, 0 unchanged',
    'builds 90 new, 0 changed, 0 unchanged',
    'api_keys 1 new, 0 changed, 0 unchanged',
    'oauth_applications 1 new, 0 changed, 0 unchanged',
  ]);
  expect(await sql('SELECT count(*) AS count FROM download_keys')).toEqual([{ count: 7 }]);
});

test('reports all problems of a file with their lines in one message', async () => {
  const file = join(folder, 'wrong.ndjson');
  await writeFile(file, '{"type":"build","id":7000,"game_id":99999,"channel_name":"windows"}\nnonsense\n');
  await expect(run('import', file)).rejects.toThrow(
    'line 1: build 7000: game 99999 does not exist\nline 2: is not valid JSON',
  );
});

describe('a small file', () => {
  const file = () => join(folder, 'small.ndjson');
  const build = { type: 'build', id: 1, game_id: 1, channel_name: 'windows' };
  /** Imports while another transaction holds a lock. */
  const runBeside = async (held: string, releaseWhen?: () => Promise<unknown>) => {
    const [{ name } = { name: '' }] = await sql<{ name: string }>('SELECT current_database() AS name');
    const other = new Client({ connectionString: withDatabase(process.env.TEST_SERVER_URL!, name) });
    await other.connect();
    await other.query('BEGIN');
    await other.query(held);
    const imported = run('import', file());
    if (releaseWhen) {
      await releaseWhen();
      await other.query('ROLLBACK');
    }
    return imported.finally(() => other.end());
  };
  const done = async (size: string) =>
    (await metric('gamewharf_imports_total', { size, outcome: 'done' }))[0]!.value;

  test('does not wait for large imports and counts as small', async () => {
    await writeFile(file(), JSON.stringify({ ...build, user_version: 'during a large import' }));
    const before = [await done('small'), await done('large')] as const;
    // The lock of large imports.
    const changed = ['builds 0 new, 1 changed, 0 unchanged'];
    expect(await runBeside('SELECT pg_advisory_xact_lock(7305808)')).toEqual(changed);
    expect(await sql('SELECT user_version FROM builds WHERE id = 1')).toEqual([
      { user_version: 'during a large import' },
    ]);
    expect([await done('small'), await done('large')]).toEqual([before[0] + 1, before[1]]);
  });

  test('waits longer for a locked record than the server would', async () => {
    await writeFile(file(), JSON.stringify({ ...build, user_version: 'after a long wait' }));
    const held = 'UPDATE builds SET user_version = NULL WHERE id = 1';
    // The server gives up after two attempts.
    const waits = new Set<string>();
    const thirdWait = () =>
      until(async () => {
        const rows = await sql<{ since: string }>(
          'SELECT waitstart::text AS since FROM pg_locks WHERE NOT granted AND waitstart IS NOT NULL',
        );
        for (const { since } of rows) waits.add(since);
        return waits.size >= 3;
      });
    expect(await runBeside(held, thirdWait)).toEqual(['builds 0 new, 1 changed, 0 unchanged']);
  }, 20_000);
});

test('an empty file is an error', async () => {
  const file = join(folder, 'empty.ndjson');
  await writeFile(file, '\n');
  expect(await run('import', file)).toEqual(['The input contains no records.']);
});

test('reports unreadable and unwritable files in one sentence', async () => {
  const missing = join(folder, 'missing.ndjson');
  await expect(run('import', missing)).rejects.toThrow(`File ${missing} doesn't exist.`);
  await expect(run('import', folder)).rejects.toThrow(`${folder} is a folder. Specify a file.`);
  await expect(run('demo', join(missing, 'x'))).rejects.toThrow(
    `${join(missing, 'x')} cannot be written (ENOENT).`,
  );
  await expect(run('demo', join(folder, 'x'), '--games', '2')).rejects.toThrow(
    'Invalid options: a collection cannot have more games than there are.',
  );
  await expect(run('demo', join(folder, 'x'), '--games', '2x')).rejects.toThrow('Use a whole number.');
});

test('shows a progress bar with rate and remaining time in a terminal', () => {
  expect(described({ phase: 'reading', bytes: 50, records: 20_000 }, 2, 100)).toBe(
    '17 %, 20,000 records, 10,000/s, 10 s left',
  );
  expect(described({ phase: 'reading', bytes: 50, records: 20_000 }, 2)).toBe('20,000 records, 10,000/s');
  expect(described({ phase: 'writing', records: 100, written: 50, table: 'games' }, 300)).toBe(
    '75 %, 100 records, writing games, 1 min 40 s left',
  );
  expect(shareOf({ phase: 'writing', records: 100, written: 100, table: 'builds' })).toBe(1);

  jest.useFakeTimers();
  const written: string[] = [];
  const terminal = { isTTY: true, columns: 60, write: (text: string) => Boolean(written.push(text)) };
  const display = new ProgressDisplay(terminal, 100);
  display.report({ phase: 'reading', bytes: 100, records: 10 });
  jest.advanceTimersByTime(1000);
  display.stop();
  jest.useRealTimers();
  expect(written[0]).toMatch(/^\r\x1b\[K\[#{8}-{16}\] 35 %, 10 records/);
  expect(written.at(-1)).toBe('\r\x1b[K');
});

test('prints a line every few seconds without a terminal', () => {
  jest.useFakeTimers();
  const written: string[] = [];
  const log = { isTTY: false, columns: 0, write: (text: string) => Boolean(written.push(text)) };
  const display = new ProgressDisplay(log as never, 100);
  display.report({ phase: 'checking', records: 10 });
  jest.advanceTimersByTime(11_000);
  display.stop();
  jest.useRealTimers();
  expect(written).toEqual([
    '35 %, 10 records, checking, 10 s left\n',
    '35 %, 10 records, checking, 19 s left\n',
  ]);
});

describe('delete', () => {
  const builds = async () => (await sql('SELECT id FROM builds WHERE id = 1')).length;

  test('reports errors in one sentence before any prompt', async () => {
    await expect(run('delete', 'nothing', '1', '--yes')).rejects.toThrow(
      'Unknown record type nothing. The types are user, game, purchase,',
    );
    await expect(run('delete', 'game', 'x-moon', '--yes')).rejects.toThrow("x-moon isn't a valid ID.");
  });

  test('fails without a terminal to prompt on', async () => {
    await expect(run('delete', 'build', '1')).rejects.toThrow('Use --yes to delete without confirmation.');
    expect(await builds()).toBe(1);
  });

  test('reports what a record is required by', async () => {
    await expect(run('delete', 'game', '1', '--yes')).rejects.toThrow(/^game 1: has \d+ purchases/);
  });

  test('deletes a record, and reports that it is missing the next time', async () => {
    expect(await run('delete', 'build', '1', '--yes')).toEqual(['Deleted build 1.']);
    expect(await builds()).toBe(0);
    expect(await run('delete', 'build', '1', '--yes')).toEqual(["Build 1 doesn't exist."]);
  });

  test('does not print an API key', async () => {
    expect(await run('delete', 'api_key', 'no-such-key', '--yes')).toEqual(["The API key doesn't exist."]);
  });
});
