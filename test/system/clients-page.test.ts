import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Settings } from '../../src/platform/config/settings';
import { EXAMPLE_TIME } from '../../src/dev/demo/demo-calendar';
import { loadDemoStore } from '../../src/dev/demo/demo-store';
import { LossyNetwork } from '../support/lossy-network';
import { type Example, readExamples, expectAsPrinted, run, runnable } from '../support/page-examples';
import { baseUrl, theApp, useStore } from '../support/app';
import { sql } from '../support/sql';

useStore();

const LOSSES = 2;
// One connection breaks, and a proxy returns an error for the other.
const PROXIED = 1;
const examples = readExamples('guides/clients.md');
/** Runs on a network that breaks connections. */
const isLossy = ({ heading }: Example) => heading === 'When a connection is lost';
const numbered = runnable(examples).map((one, i) => ({ ...one, i }));
const folder = mkdtempSync(join(tmpdir(), 'gamewharf-clients-'));
let key: string;

beforeAll(async () => {
  const settings = { ...theApp().get(Settings), DATA_DIR: folder } as Settings;
  const demo = await loadDemoStore(settings, undefined, EXAMPLE_TIME);
  key = demo!.api_key;
});

afterAll(() => rmSync(folder, { recursive: true }));

const env = (url: string) => ({ GAMEWHARF_URL: url, GAMEWHARF_KEY: key });

test('the pages have the expected number of examples', () => {
  const count = (language: string) => examples.filter((one) => one.language === language).length;
  expect(['sh', 'python', 'js', 'go', 'gdscript', 'csharp'].map(count)).toEqual([5, 2, 2, 1, 2, 1]);
  expect(examples.filter(isLossy)).toHaveLength(3);
});

for (const { example, when, i } of numbered.filter(({ example }) => !isLossy(example)))
  when.test(`${example.language}, example ${i}`, () => expectAsPrinted(example, env(baseUrl())));

for (const { example, when } of numbered.filter(({ example }) => isLossy(example)))
  when.describe(`${example.language}, on a network that drops responses`, () => {
    test('writes once', async () => {
      const network = await LossyNetwork.before(baseUrl(), LOSSES, PROXIED);
      await expectAsPrinted(example, env(network.url));
      expect(network.lost).toBe(LOSSES);
      network.close();
    });

    test('control: writes once per attempt without the key', async () => {
      const network = await LossyNetwork.before(baseUrl(), LOSSES, PROXIED);
      const { language, code } = example;
      const [title] = /Made with \w+/.exec(code)!;
      const careless = code
        .replaceAll(/idempotency-key/gi, 'X-Nothing')
        .replaceAll(title, `Without ${language}`);
      await run({ language, code: careless }, env(network.url));
      expect(await sql('SELECT id FROM collections WHERE title = $1', [`Without ${language}`])).toHaveLength(
        LOSSES + 1,
      );
      network.close();
    });
  });
