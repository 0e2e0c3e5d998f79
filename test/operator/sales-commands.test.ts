import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Command, CommanderError } from 'commander';
import { Settings } from '../../src/platform/config/settings';
import { loadDemoStore } from '../../src/dev/demo/demo-store';
import type { SaleResponse } from '../../src/purchases/sales/sale.dto';
import { addCommands } from '../../src/commands/program';
import { UsageError } from '../../src/platform/errors/operator-error';
import {
  OPERATOR_TOKEN,
  storedSales,
  expectedSales,
  sendSmall,
  wrongAccounts,
  wrongBuyers,
} from '../support/importing';
import { purchase } from '../support/records';
import { LossyNetwork } from '../support/lossy-network';
import { readExamples, expectAsPrinted, run, withCurl } from '../support/page-examples';
import { baseUrl, theApp, theClock, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { createZip } from '../support/zip-archives';

const folder = mkdtempSync(join(tmpdir(), 'gamewharf-sales-'));
useStore({ DATA_DIR: folder, OPERATOR_TOKEN, FILES_DIR: join(folder, 'files') });
afterAll(() => rmSync(folder, { recursive: true }));

let game: { id: number; slug: string };
let name: string;
let env: Record<string, string>;

beforeAll(async () => {
  const demo = await loadDemoStore(theApp().get(Settings));
  env = { GAMEWHARF_URL: baseUrl(), GAMEWHARF_KEY: demo!.api_key, CHECKOUT_TOKEN: OPERATOR_TOKEN };
  const [row] = await sql<{ id: number; slug: string; owner_name: string; min_price: number }>(
    `UPDATE games SET min_price = 799 WHERE id =
       (SELECT min(g.id) FROM games g JOIN api_keys k ON k.user_id = g.user_id WHERE g.published_at IS NOT NULL) RETURNING *`,
  );
  game = row!;
  name = `${row!.owner_name}/${row!.slug}`;
});

describe('docs/guides/selling.md', () => {
  const examples = readExamples('guides/selling.md');

  // Each example depends on the previous ones.
  withCurl.test('sells, refunds and retries in the documented order', async () => {
    const steps = examples.filter(({ language }) => language !== 'json');
    expect(steps.map(({ language }) => language)).toEqual(['sh', 'sh', 'js', 'sh', 'sh', 'sh', 'sh']);
    for (const example of steps) {
      const next = examples[examples.indexOf(example) + 1];
      if (example.language === 'js') {
        // The program runs on a network that drops the first response, with a proxy that returns an error for the
        // second.
        const network = await LossyNetwork.before(baseUrl(), 2, 1);
        await expectAsPrinted(example, { ...env, GAMEWHARF_URL: network.url });
        expect(network.lost).toBe(2);
        network.close();
      } else if (example.prints !== undefined) await expectAsPrinted(example, env);
      else {
        const { stdout } = await run(example, env);
        // Keys are random, and the time of a sale is the current one.
        const [printed, shown] = [stdout, next!.code].map((text) =>
          text
            .replace(/gwdl_[\w-]{24}/g, 'gwdl_')
            .replaceAll(baseUrl(), 'http://127.0.0.1:3000')
            .replace(/"created_at": ?"[^"]*"/, '"created_at":"now"'),
        );
        expect(JSON.parse(printed!)).toEqual(JSON.parse(shown!));
        // Variables that the page has the reader export.
        const { purchase, download_keys } = JSON.parse(stdout) as SaleResponse;
        if (download_keys?.[0])
          Object.assign(env, { KEY: download_keys[0].key, PURCHASE: String(purchase.id) });
      }
    }
  });

  test('contains only existing commands', () => {
    const text = readFileSync(join(__dirname, '..', '..', 'docs', 'guides', 'selling.md'), 'utf8');
    const section = text.slice(text.indexOf('## Sell from the command line'));
    const named = [...section.matchAll(/gamewharf -- ((?:users |purchases )?[\w-]+)/g)].map(
      ([, words]) => words,
    );
    expect(named).toEqual([
      'sell',
      'purchases list',
      'refund',
      'give',
      'users create',
      'users list',
      'reset',
    ]);
  });
});

describe('docs/guides/download-keys.md', () => {
  withCurl.test('creates and revokes keys as documented', async () => {
    const [create, created, revoke, revoked] = readExamples('guides/download-keys.md');
    const { stdout } = await run(create!, env);
    const { download_keys } = JSON.parse(stdout) as SaleResponse;
    // IDs, keys and times differ.
    const comparable = (text: string) =>
      text
        .replaceAll(baseUrl(), 'http://127.0.0.1:3000')
        .replace(/"id": ?\d+/g, '"id":1')
        .replace(/gwdl_[\w-]{24}|\d{4}-\d\d-\d\dT[\d:]{8}Z/g, '…');
    expect(comparable(stdout)).toBe(comparable(JSON.stringify(JSON.parse(created!.code))));
    const code = revoke!.code.replace('/561/', `/${download_keys[0]!.id}/`);
    expect(JSON.parse((await run({ ...revoke!, code }, env)).stdout)).toEqual(JSON.parse(revoked!.code));
  });
});

let failure: unknown;

/** What the command prints, or its error. `typed`: terminal input, line by line. */
async function gamewharf(words: string[], ...typed: string[]): Promise<string> {
  const said: string[] = [];
  const log = jest.spyOn(console, 'log').mockImplementation((line: string) => void said.push(line));
  const prompt = jest.spyOn(process.stderr, 'write').mockImplementation((text) => {
    if (String(text).trimEnd().endsWith(':')) setImmediate(() => terminal.write(`${typed.shift()}\n`));
    return true;
  });
  const terminal = Object.assign(new PassThrough(), { isTTY: typed.length > 0 });
  const { stdin } = process;
  Object.defineProperty(process, 'stdin', { value: terminal, configurable: true });
  const program = new Command().exitOverride();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), words);
  try {
    await program.parseAsync(words, { from: 'user' });
    return said.join('\n');
  } catch (error) {
    failure = error;
    return (error as Error).message;
  } finally {
    Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
    log.mockRestore();
    prompt.mockRestore();
  }
}

/** Runs the curl command that a command printed. */
async function asShown(printed: string) {
  const [, key, url] = /curl -H "Authorization: Bearer ([^"]+)" "([^"]+)"/.exec(printed)!;
  const { pathname, search } = new URL(url!);
  expect(new URL(url!).origin).toBe(baseUrl());
  return send('GET', pathname + search, { headers: { authorization: `Bearer ${key}` } });
}

const sell = (...words: string[]) => gamewharf(['sell', '--game', name, '--to', 'me@example.com', ...words]);

test.each<[string[], string]>([
  [['sell'], 'The game is missing. Use --game ash-beetle/brave-arcade.'],
  [['sell', '--game', 'no/game', '--to', 'me@example.com'], "Game no/game doesn't exist."],
  [
    ['sell', '--game', 'nothing', '--to', 'me@example.com'],
    'Invalid game "nothing". Use owner/slug, such as ash-beetle/brave-arcade, or an ID.',
  ],
  [
    ['sell', '--game', 'no/game/at/all', '--to', 'me@example.com'],
    'Invalid game "no/game/at/all". Use owner/slug, such as ash-beetle/brave-arcade, or an ID.',
  ],
  [['sell', '--game', '1'], 'The buyer is missing. Use --to me@example.com.'],
  [['sell', '--game', '1', '--to', 'nobody'], "User nobody doesn't exist."],
  [['sell', '--game', '1', '--to', 'a@b@c'], "a@b@c isn't a valid email address."],
  [
    ['sell', '--game', '1', '--to', 'me@example.com', '--price', '4,99'],
    'Invalid price "4,99". Use a number of USD such as 4.99.',
  ],
  [
    ['sell', '--game', '1', '--to', 'me@example.com', '--price', '4.999'],
    'Invalid price "4.999". Use a number of USD such as 4.99.',
  ],
  [
    ['sell', '--game', '1', '--to', 'me@example.com', '--price=-1'],
    'Invalid price "-1". Use a number of USD such as 4.99.',
  ],
  [
    ['sell', '--game', '1', '--to', 'me@example.com', '--price', '5.0', '--currency', 'JPY'],
    'Invalid price "5.0". Use a number of JPY such as 500.',
  ],
  [
    ['sell', '--game', '1', '--to', 'me@example.com', '--price', '5', '--currency', 'QQQ'],
    "error: option '--currency <CODE>' argument 'QQQ' is invalid. Use an ISO 4217 code such as USD.",
  ],
  [
    // An unknown currency is an error even without a price.
    ['sell', '--game', '1', '--to', 'me@example.com', '--currency', 'XXX'],
    "error: option '--currency <CODE>' argument 'XXX' is invalid. Use an ISO 4217 code such as USD.",
  ],
  [
    ['sell', '--game', '1', '--to', 'me@example.com', '--currency', 'EUR'],
    'Use --price with --currency, because the minimum price of a game is in USD.',
  ],
  [['games', 'create', '--title', 'A'], 'The user is missing. Use --user ash-beetle.'],
  [['files', 'list'], 'The game is missing. Use --game ash-beetle/brave-arcade.'],
  [['operator-tokens', 'create', 'a'], 'The list of permissions is missing. Use --permissions import.'],
  [['files', 'rm', '1'], 'Nothing was deleted. Use --yes to delete without confirmation.'],
  [['refund'], 'The ID of the purchase is missing.'],
  [['refund', 'x'], "x isn't a valid ID."],
  [['refund', '999999'], "Purchase 999999 doesn't exist. Nothing was changed."],
  [['give', '--game', '1'], 'The buyer is missing. Use --to me@example.com.'],
  [
    ['give', '--game', '1', '--to', 'nobody@Erased.invalid'],
    "nobody@Erased.invalid isn't a valid email address.",
  ],
  [['purchases', 'list', '--buyer', 'nobody'], "User nobody doesn't exist."],
  [['users', 'create'], 'The username is missing.'],
  [['users', 'create', 'a b'], 'A username must have 1 to 63 letters, digits, _ or -.'],
  [['users', 'create', 'new', '--email', 'nobody'], "nobody isn't a valid email address."],
  [
    ['users', 'create', 'new', '--email', 'nobody@ERASED.invalid'],
    "nobody@ERASED.invalid isn't a valid email address.",
  ],
  [['reset'], 'Nothing was deleted. Use --yes to reset the demo store without confirmation.'],
])('%j', async (words, problem) => {
  expect(await gamewharf(words)).toBe(problem);
  // The other errors aren't usage errors, because the words are correct.
  const isUsage = !/doesn't exist|^Nothing was/.test(problem);
  expect(failure instanceof UsageError || failure instanceof CommanderError).toBe(isUsage);
});

test("sells at the game's own price or another and prints it", async () => {
  const printed = await sell();
  expect(printed).toMatch(
    /^Sold .+ to me@example.com for \$7\.99: purchase \d+\.\nDownload key: (gwdl_[\w-]{24})\nIts page: http:\/\/\S+\/download\/\1\ncurl /,
  );
  const { body } = await asShown(printed);
  expect((body as { purchases: object[] }).purchases[0]).toMatchObject({
    email: 'me@example.com',
    price: '$7.99',
  });
  expect(await sell('--price', '4.99', '--currency', 'EUR')).toContain('for €4.99');
  expect(await sell('--price', '500', '--currency', 'JPY')).toContain('for ¥500');
  const once = await sell('--reference', 'order-7');
  expect(await sell('--reference', 'order-7')).toBe(once);
  expect(await sell('--reference', 'order-7', '--price', '1')).toBe(
    'Nothing was changed: reference `order-7` is another sale; amount differs.',
  );
  expect(await storedSales()).toEqual(await expectedSales());
  expect(await wrongBuyers()).toEqual([]);
});

test('prompts for missing values in a terminal', async () => {
  expect(await gamewharf(['sell'], String(game.id), 'asked@example.com')).toMatch(
    /^Sold .+ to asked@example.com/,
  );
});

test('lists and refunds purchases', async () => {
  const printed = await sell('--reference', 'order-8');
  const [, id] = /purchase (\d+)\./.exec(printed)!;
  const listed = await gamewharf(['purchases', 'list', '--game', name, '--count', '1']);
  const [head, first] = listed.split('\n');
  expect(head).toMatch(/^ID +TIME +BUYER +PRICE +STATUS +REFERENCE$/);
  expect(first).toMatch(new RegExp(`^${id} .* me@example.com +\\$7\\.99 +complete +order-8$`));
  const { body } = await asShown(listed);
  expect((body as { sales: object[] }).sales).toEqual([expect.objectContaining({ id: Number(id) })]);
  const refunded = await gamewharf(['refund', id!]);
  expect(refunded).toMatch(
    new RegExp(
      `^Refunded \\$7\\.99 to me@example.com for purchase ${id}\\. Its download keys are revoked\\.\ncurl `,
    ),
  );
  expect((await asShown(refunded)).status).toBe(200);
  expect(await gamewharf(['purchases', 'list', '--game', name])).toMatch(
    new RegExp(`^${id} .* refunded`, 'm'),
  );
  expect(await gamewharf(['refund', '--keep-keys'], id!)).toContain('Its download keys stay valid.');
  const [, keyless] = /purchase (\d+)\./.exec(await sell('--reference', 'keyless'))!;
  await sql('DELETE FROM download_keys WHERE purchase_id = $1', [keyless]);
  expect(await gamewharf(['refund', keyless!])).toContain(' It has no download keys.');
  expect(await storedSales()).toEqual(await expectedSales());
});

test('lists the purchases of the store and of a buyer, also as JSON', async () => {
  const buyer = await make.user({ emails: [{ email: 'verified@example.com', verified: true }] });
  const other = await make.game({ owner: await make.user(), slug: 'other-game' });
  const sold = (to: string, which: string) =>
    gamewharf(['sell', '--game', which, '--to', to, '--price', '1.50', '--currency', 'EUR']);
  await sold('Verified@example.com', String(other.id));
  await sold(buyer.username, name);
  await sold('somebody@example.com', name);
  const listed = async (...words: string[]) =>
    (await gamewharf(['purchases', 'list', ...words])).split('\n').slice(1);
  const [newest] = await listed('--count', '1');
  expect(newest).toMatch(new RegExp(`^\\d+ +\\S+Z +${name} +somebody@example.com +€1\\.50 +complete +-$`));
  for (const one of [buyer.username, 'verified@EXAMPLE.com'])
    expect(await listed('--buyer', one)).toEqual([
      expect.stringContaining(` ${name} `),
      expect.stringContaining('/other-game '),
    ]);
  const line = await gamewharf(['purchases', 'list', '--buyer', buyer.username, '--game', name, '--json']);
  expect(JSON.parse(line)).toEqual({
    id: expect.any(Number),
    time: expect.stringMatching(/Z$/),
    buyer: 'verified@example.com',
    price: { amount: 150, currency: 'EUR' },
    status: 'complete',
    reference: null,
  });
});

test.each(['users', 'games', 'webhooks', 'operator-tokens', 'signing-keys'])(
  '%s list prints one JSON object per line',
  async (list) => {
    const printed = await gamewharf([list, 'list', '--json']);
    for (const line of printed.split('\n').filter(Boolean)) expect(JSON.parse(line)).toBeInstanceOf(Object);
    if (list === 'users') expect(printed).toContain('"email_addresses":[');
    if (list === 'games') expect(printed).toContain('"min_price":{"amount":');
  },
);

test('suggests the most similar game', async () => {
  await make.game({ owner: await make.user({ username: 'stoker' }), slug: 'steam-engine' });
  for (const typo of ['stoker/steam-engin', 'stocker/steam-engine'])
    expect(await gamewharf(['games', 'set-price', typo, '1'])).toBe(
      `Game ${typo} doesn't exist. Did you mean stoker/steam-engine?`,
    );
});

test('creates a key for an email address or an account and prints it', async () => {
  const friend = await make.user();
  for (const to of ['friend@example.com', friend.username]) {
    const printed = await gamewharf(['give', '--game', name, '--to', to]);
    const [, key] = new RegExp(`^Created a download key of .+ for ${to}: (gwdl_[\\w-]{24})\n`).exec(printed)!;
    expect(await asShown(printed)).toMatchObject({ status: 200, body: { download_key: { key } } });
  }
  expect(await wrongAccounts()).toEqual([]);
  const events = () =>
    sql<object>(
      `SELECT user_id, request_id, details FROM audit_events WHERE event = 'download_key.created' AND user_id IS NULL`,
    );
  await until(async () => (await events()).length === 2);
  const given = { user_id: null, request_id: null, details: { counts: { games: 1, keys: 1 } } };
  expect(await events()).toEqual([given, given]);
  const elses = await make.game({ owner: friend });
  expect(await gamewharf(['give', '--game', String(elses.id), '--to', 'friend@example.com'])).toContain(
    `GAMEWHARF_KEY=$(gamewharf keys create --user ${friend.username})\ncurl -H "Authorization: Bearer $GAMEWHARF_KEY"`,
  );
});

test('finds a buyer whose name only begins like that of an erased user', async () => {
  const { id } = await make.user();
  await sql('UPDATE users SET username = $2 WHERE id = $1', [id, `erased-${id}x`]);
  expect(await gamewharf(['give', '--game', name, '--to', `erased-${id}x`])).toContain(
    `for erased-${id}x: gwdl_`,
  );
});

test('creates and lists accounts', async () => {
  const made = await gamewharf(
    ['users', 'create', '--display-name', 'Bo', '--developer', '--email', 'Bo@example.com'],
    'bosun',
  );
  expect(made).toMatch(
    /^Created user \d+ \(bosun\)\. To let them sign in, run `gamewharf users set-password bosun`\./,
  );
  expect(await gamewharf(['users', 'create', 'BOSUN'])).toBe('The username BOSUN is already taken.');
  expect(await gamewharf(['users', 'create', 'other', '--email', 'bo@EXAMPLE.com'])).toBe(
    'Another user has verified bo@EXAMPLE.com.',
  );
  expect(await sql(`SELECT FROM users WHERE username = 'other'`)).toEqual([]);
  const [head, first, ...request] = (await gamewharf(['users', 'list', '--count', '1'])).split('\n');
  expect(head).toMatch(/^ID +NAME +DEVELOPER +CREATED +EMAIL ADDRESSES$/);
  expect(first).toMatch(/^\d+ +bosun +yes +\S+Z +bo@example\.com$/);
  expect(request).toEqual([
    'GAMEWHARF_KEY=$(gamewharf keys create --user bosun)',
    `curl -H "Authorization: Bearer $GAMEWHARF_KEY" "${baseUrl()}/profile"`,
  ]);
});

test('creates a game for its owner, visible in the API and for sale', async () => {
  const { username, ...owner } = await make.user({ username: 'Quartermaster' });
  const create = (...words: string[]) =>
    gamewharf(['games', 'create', '--user', 'quartermaster', '--title', ...words]);
  expect(await gamewharf(['games', 'list', '--user', 'quartermaster'])).toBe(
    [
      'There are no games. To add and sell one, run:',
      '  gamewharf games create --user quartermaster --title "My game" --price 4.99',
      '  gamewharf sell --game quartermaster/my-game --to player@example.com',
    ].join('\n'),
  );
  const made = await create('  Röde Orm: 2nd Edition! ', '--price', '4.99');
  const [, id] = /^Created game (\d+) \(Quartermaster\/rode-orm-2nd-edition\)\. To sell it, run /.exec(made)!;
  const { body } = await send('GET', `/games/${id}`, { headers: { authorization: `Bearer ${owner.key}` } });
  expect(body).toMatchObject({
    game: {
      ...{ title: 'Röde Orm: 2nd Edition!', min_price: 499, traits: ['can_be_bought'] },
      user: { username },
    },
  });
  const sold = await gamewharf([
    'sell',
    '--game',
    `${username}/rode-orm-2nd-edition`,
    '--to',
    'me@example.com',
  ]);
  expect(sold).toContain('Sold Röde Orm: 2nd Edition! to me@example.com for $4.99');
  const [head, first] = (await gamewharf(['games', 'list', '--user', 'QUARTERMASTER'])).split('\n');
  expect(head).toMatch(/^ID +GAME +TITLE +VISIBILITY +MIN PRICE +PURCHASES +CREATED$/);
  expect(first).toMatch(
    new RegExp(`^${id} +${username}/rode-orm-2nd-edition +Röde Orm: 2nd Edition! +public +\\$4\\.99 +1 `),
  );
  expect(await create('Röde Orm 2nd edition')).toBe(
    `The game ${username}/rode-orm-2nd-edition exists already. Use --slug for another URL.`,
  );
  expect(await create('Röde Orm 2nd edition', '--slug', 'orm')).toContain(`(${username}/orm)`);
});

test('changes the minimum price of a game', async () => {
  const { id, title } = await make.game({ owner: await make.user(), traits: [] });
  const stored = () => sql('SELECT min_price, traits FROM games WHERE id = $1', [id]);
  const setPrice = (price: string) => gamewharf(['games', 'set-price', String(id), price]);
  expect(await setPrice('2.50')).toBe(`The minimum price of ${title} is $2.50.`);
  expect(await stored()).toEqual([{ min_price: 250, traits: ['can_be_bought'] }]);
  expect(await setPrice('0')).toBe(`The minimum price of ${title} is $0.00.`);
  expect(await stored()).toEqual([{ min_price: 0, traits: ['can_be_bought'] }]);
  expect(await setPrice('free')).toBe('Invalid price "free". Use a number of USD such as 4.99.');
});

test('lists the uploads of a game', async () => {
  const { id } = await make.game({ owner: await make.user() });
  await make.upload({
    game: { id },
    filename: 'moon.zip',
    traits: ['p_linux', 'demo'],
    size: 12,
    file_key: 'moon.zip',
  });
  const [head, first] = (await gamewharf(['files', 'list', '--game', String(id)])).split('\n');
  expect(head).toMatch(/^ID +FILE +TRAITS +SOURCE +BYTES +UPDATED$/);
  expect(first).toMatch(/^\d+ +moon\.zip +p_linux demo +\S+ +12 +\d{4}-\d\d-\d\dT[\d:]{8}Z$/);
});

test("games list reports a user that doesn't exist", async () => {
  expect(await gamewharf(['games', 'list', '--user', 'nobody'])).toBe("User nobody doesn't exist.");
});

test.each([
  [['--user', 'nobody', '--title', 'A'], "User nobody doesn't exist."],
  [['--user', 'ash-beetle', '--title', ' '], 'A title must have 1 to 500 characters.'],
  [['--user', 'ash-beetle', '--title', '竜'], 'Use --slug with up to 100 letters, digits, _, . and -.'],
  [
    ['--user', 'ash-beetle', '--title', 'A', '--slug', 'a/b'],
    'Use --slug with up to 100 letters, digits, _, . and -.',
  ],
  [
    ['--user', 'ash-beetle', '--title', 'A', '--price', 'free'],
    'Invalid price "free". Use a number of USD such as 4.99.',
  ],
])('games create %j', async (words, problem) => {
  expect(await gamewharf(['games', 'create', ...words])).toBe(problem);
});

test('files put escapes characters that change the terminal', async () => {
  const { id } = await make.game({ owner: await make.user(), title: 'Sun\u202eset' });
  writeFileSync(join(folder, 'sun.zip'), 'PK');
  const put = await gamewharf(['files', 'put', '--game', String(id), join(folder, 'sun.zip')]);
  expect(put).toContain('of Sun\\u202eset: sun.zip, 2 bytes.');
  expect(await gamewharf(['files', 'put', '--game', String(id), '/nofile.zip'])).toBe(
    "File /nofile.zip doesn't exist.",
  );
});

test('files sign and files prune', async () => {
  const { id } = await make.game({ owner: await make.user({ username: 'pruner' }), slug: 'sun' });
  const [zip, text] = [join(folder, 'moon.zip'), join(folder, 'text.txt')];
  writeFileSync(zip, createZip([{ name: 'a', content: Buffer.from('a') }]));
  writeFileSync(text, 'text');
  const put = (file: string) =>
    gamewharf(['files', 'put', file, '--game', String(id), '--channel', 'windows', '--user-version', '1.0']);
  for (const file of [zip, zip, text]) await put(file);
  const signatures = () =>
    sql(`SELECT FROM build_files f JOIN builds b ON b.id = f.build_id WHERE b.game_id = $1`, [id]);
  expect(await signatures()).toHaveLength(2);
  await sql('DELETE FROM build_files');
  expect(await gamewharf(['files', 'sign', '--game', 'pruner/sun'])).toBe('Signed 2 builds.');
  expect(await signatures()).toHaveLength(2);
  const [line, total] = (await gamewharf(['files', 'prune', '--keep', '1', '--dry-run'])).split('\n');
  expect(line).toMatch(/^\d+ {2}pruner\/sun:windows {2}version 1 \(1\.0\) {2}\d+ bytes$/);
  expect(total).toMatch(/^Would delete the files of 1 build: \d+ bytes\.$/);
  expect(await signatures()).toHaveLength(2);
  expect(await gamewharf(['files', 'prune', '--keep', '1'])).toContain('Deleted the files of 1 build: ');
  expect(await signatures()).toHaveLength(1);
  expect(await gamewharf(['files', 'prune', '--keep', '1'])).toBe('Deleted the files of 0 builds: 0 bytes.');
});

test('imported and assigned IDs do not collide after a reset while the service runs', async () => {
  const importPurchases = (first: number) =>
    sendSmall(Array.from({ length: 50 }, (_, i) => purchase(first + i, { game_id: game.id })));
  const sellOne = () =>
    send('POST', '/operator/purchases', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ game_id: game.id, email: 'me@example.com', currency: 'USD', amount: 499 }),
    });
  // Reserves IDs far ahead.
  expect((await importPurchases(1_000_000)).status).toBe(200);
  await gamewharf(['reset', '--yes']);
  const sold = (await sellOne()).body as SaleResponse;
  theClock().advance(1000);
  expect((await importPurchases(sold.purchase.id + 1)).status).toBe(200);
  expect(await sellOne()).toMatchObject({ status: 200 });
});

test('resets the demo store after confirmation, and no other store', async () => {
  const counts = () =>
    sql(
      'SELECT (SELECT count(*) FROM users) AS users, (SELECT count(*) FROM purchase_references) AS references',
    );
  writeFileSync(join(folder, 'moon.zip'), 'PK');
  expect(await gamewharf(['files', 'put', '--game', name, join(folder, 'moon.zip')])).toMatch(
    /^Stored upload \d+ of /,
  );
  const files = () =>
    readdirSync(join(folder, 'files'), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('moon.zip'),
    );
  const before = await counts();
  expect(await gamewharf(['reset'], 'no')).toBe('Nothing was deleted.');
  expect(await counts()).toEqual(before);
  expect(files()).toHaveLength(1);
  const printed = await gamewharf(['reset'], 'reset');
  expect(printed).toMatch(/^The demo store was reset\.\ncurl /);
  expect(await counts()).toEqual([{ users: 24, references: 0 }]);
  expect(files()).toEqual([]);
  expect(await asShown(printed)).toMatchObject({ status: 200 });
  expect(await sell()).toMatch(/^Sold /);
  await sql('UPDATE api_keys SET revoked_at = now()');
  expect(await gamewharf(['reset', '--yes'])).toBe('This is not the demo store, so nothing was deleted.');
});

test('a rejected reset changes nothing, even in an empty store', async () => {
  await sql('TRUNCATE users, purchases RESTART IDENTITY CASCADE');
  const secrets = ['demo-api-key', 'demo-password'].map((secret) => join(folder, secret));
  for (const secret of secrets) rmSync(secret);
  expect(await gamewharf(['reset'], 'no')).toBe('This is not the demo store, so nothing was deleted.');
  expect(await sql('SELECT FROM users')).toEqual([]);
  expect(secrets.filter((secret) => existsSync(secret))).toEqual([]);
});
