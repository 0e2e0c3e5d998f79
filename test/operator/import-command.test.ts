import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { addCommands } from '../../src/commands/program';
import { importProgress, ProgressDisplay } from '../../src/commands/progress';
import type { Progress } from '../../src/operator/import/import-records';
import { theApp, useStore } from '../support/app';
import { sql } from '../support/sql';

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
  await run('demo', file, '--users', '12', '--download-keys', '7', '--seed', '3');
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  expect(lines.filter((line) => line.includes('"type":"download_key"'))).toHaveLength(7);
  expect(await run('import', file)).toEqual([
    'users 12 new, 0 changed, 0 unchanged',
    'games 18 new, 0 changed, 0 unchanged',
    'bundles 1 new, 0 changed, 0 unchanged',
    'purchases 80 new, 0 changed, 0 unchanged',
    'download_keys 7 new, 0 changed, 0 unchanged',
    'collections 6 new, 0 changed, 0 unchanged',
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
    `${join(missing, 'x')} cannot be used (ENOENT).`,
  );
  await expect(run('demo', join(folder, 'x'), '--games', '2')).rejects.toThrow(
    'Invalid options: --collection-size 7 is more than --games 2.',
  );
  expect(existsSync(join(folder, 'x'))).toBe(false);
  await expect(run('demo', join(folder, 'x'), '--games', '2x')).rejects.toThrow('Use a whole number.');
});

const ofHundredBytes = (state: Progress, seconds: number) => importProgress(state, seconds, 100);

test('shows a progress bar with rate and remaining time in a terminal', () => {
  expect(importProgress({ phase: 'reading', bytes: 50, records: 20_000 }, 2, 100).text).toBe(
    '17%, 20,000 records, 10,000/s, 10 s left',
  );
  expect(importProgress({ phase: 'reading', bytes: 50, records: 20_000 }, 2).text).toBe(
    '20,000 records, 10,000/s',
  );
  expect(importProgress({ phase: 'writing', records: 100, written: 50, table: 'games' }, 300).text).toBe(
    '75%, 100 records, writing games, 1 min 40 s left',
  );
  expect(importProgress({ phase: 'writing', records: 100, written: 100, table: 'builds' }, 1).share).toBe(1);

  jest.useFakeTimers();
  const written: string[] = [];
  const terminal = { isTTY: true, columns: 60, write: (text: string) => Boolean(written.push(text)) };
  const display = new ProgressDisplay(terminal, ofHundredBytes);
  display.report({ phase: 'reading', bytes: 100, records: 10 });
  jest.advanceTimersByTime(1000);
  display.stop();
  jest.useRealTimers();
  expect(written[0]).toMatch(/^\r\x1b\[K\[#{8}-{16}\] 35%, 10 records/);
  expect(written.at(-1)).toBe('\r\x1b[K');
});

test('prints a line every few seconds without a terminal', () => {
  jest.useFakeTimers();
  const written: string[] = [];
  const log = { isTTY: false, columns: 0, write: (text: string) => Boolean(written.push(text)) };
  const display = new ProgressDisplay(log as never, ofHundredBytes);
  display.report({ phase: 'checking', records: 10 });
  jest.advanceTimersByTime(11_000);
  display.stop();
  jest.useRealTimers();
  expect(written).toEqual([
    '35%, 10 records, checking, 10 s left\n',
    '35%, 10 records, checking, 19 s left\n',
  ]);
});

describe('delete', () => {
  const builds = async () => (await sql('SELECT id FROM builds WHERE id = 1')).length;

  test('reports errors in one sentence before any prompt', async () => {
    await expect(run('delete', 'nothing', '1', '--yes')).rejects.toThrow(
      'Unknown record type nothing. The types are user, game, bundle, purchase,',
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
