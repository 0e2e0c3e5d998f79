import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { Settings } from '../../src/platform/config/settings';
import { loadDemoStore } from '../../src/dev/demo/demo-store';
import { addCommands } from '../../src/commands/program';
import { readExamples, expectAsPrinted, run } from '../support/page-examples';
import { baseUrl, theApp, useStore } from '../support/app';
import { readFileSync } from 'node:fs';

useStore();

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'start', 'first-sale.md'), 'utf8');
const [before, after] = readExamples('start/first-sale.md');
const folder = mkdtempSync(join(tmpdir(), 'gamewharf-start-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a command from the page with other IDs than the printed ones. */
async function gamewharf(pattern: RegExp, id?: string): Promise<string> {
  const words = pattern
    .exec(page)![1]!
    .match(/"[^"]*"|\S+/g)!
    .map((word) => word.replaceAll('"', ''));
  const out = jest.spyOn(console, 'log').mockImplementation();
  const program = new Command().exitOverride();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), words);
  await program.parseAsync(
    words.map((word) => (/^\d+$/.test(word) ? id! : word)),
    { from: 'user' },
  );
  const printed = out.mock.calls.flat().join('\n');
  out.mockRestore();
  return printed;
}

test('the first sale works as documented', async () => {
  const demo = await loadDemoStore({ ...theApp().get(Settings), DATA_DIR: folder } as Settings);
  expect(demo).toMatchObject({ username: 'ash-beetle', game_id: 1, slug: 'brave-arcade' });
  const env = { GAMEWHARF_URL: baseUrl(), GAMEWHARF_KEY: demo!.api_key };
  await expectAsPrinted(before!, env);
  const sold = await gamewharf(/gamewharf -- (sell .*)/);
  const [, id] =
    /^Sold Brave Arcade to me@example\.com for \$4\.99: purchase (\d+)\.\nDownload key: gwdl_/.exec(sold)!;
  await expectAsPrinted(after!, env);
  await gamewharf(/gamewharf -- (refund \d+)/, id);
  expect((await run(after!, env)).stdout).toBe('');
});

test('creating and selling one’s own game works as documented', async () => {
  expect(await gamewharf(/gamewharf -- (users create .*)/)).toMatch(/^Created user \d+ \(me\)\./);
  expect(await gamewharf(/gamewharf -- (games create .*)/)).toMatch(/^Created game \d+ \(me\/my-game\)\./);
  expect(await gamewharf(/gamewharf -- (sell --game me.*)/)).toMatch(
    /^Sold My game to player@example\.com for \$4\.99: purchase \d+\./,
  );
});
