import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { checkAccessibility } from '../support/accessibility';
import { PASSWORD, withPassword } from '../support/browser';
import { inChromium, openChromium, Window } from '../support/chromium';
import { type Actor } from '../support/actor';
import { baseUrl, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

const FOLDER = mkdtempSync(join(tmpdir(), 'gamewharf-files-'));
const PART_BYTES = 8 * 1024 * 1024;

// Scrolling may hide a tab.
const LAST_TAB_END = `document.querySelector('.tabs.game li:last-child a').getBoundingClientRect().right`;

inChromium.describe('in Chromium', () => {
  useStore({ RATE_LIMIT: 'off', FILES_DIR: FOLDER, FILES_MAX_BYTES: '30000000' });

  const local = join(FOLDER, 'harbor-linux.zip');
  const content = randomBytes(2 * PART_BYTES + 500_000);
  let browser: Browser;
  let seller: Actor;
  let game: { id: number };

  beforeAll(async () => {
    writeFileSync(local, content);
    browser = await openChromium();
    seller = await withPassword(await make.user({ username: 'marina', developer: true }));
  });
  beforeEach(async () => {
    game = await make.game({
      owner: seller,
      title: 'Harbor Lights',
      visibility: 'private',
      published_at: null,
    });
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(FOLDER, { recursive: true });
  });

  async function within(
    work: (page: Page, window: Window) => Promise<void>,
    options: Parameters<typeof Window.open>[2] = {},
  ): Promise<void> {
    const window = await Window.open(browser, baseUrl(), options);
    try {
      await window.signIn(seller.username, PASSWORD);
      await work(window.page, window);
      expect(window.complaints.filter((one) => !/net::ERR_/.test(one))).toEqual([]);
    } finally {
      await window.close();
    }
  }

  const openFiles = (page: Page) => page.goto(`/user/settings/games/${game.id}/files`);
  const uploads = () => sql('SELECT * FROM uploads WHERE game_id = $1', [game.id]);
  const received = async () =>
    (await sql<{ received: number }>('SELECT received FROM upload_sessions WHERE game_id = $1', [game.id]))[0]
      ?.received;

  test('creates a game, uploads a file, and publishes it, with the keyboard only', () =>
    within(async (page, window) => {
      await page.goto('/user/settings/games');
      await window.tabTo(/^New game$/);
      await page.keyboard.press('Enter');
      await page.getByLabel('Title').waitFor();
      await window.tabTo(/^Title/);
      await page.keyboard.type('Night Ferry');
      await window.tabTo(/^Create game$/);
      await page.keyboard.press('Enter');
      await page.getByRole('status').getByText('Night Ferry was created.').waitFor();
      await page.getByRole('link', { name: 'files', exact: true }).click();
      // The script of the page shows the form, and must see the choice of a file.
      await page.getByLabel('File', { exact: true }).waitFor();
      await page.getByLabel('File', { exact: true }).setInputFiles(local);
      // The platform follows from the name.
      expect(await page.getByLabel('Linux').isChecked()).toBe(true);
      await window.tabTo(/^Upload$/);
      await page.keyboard.press('Enter');
      await page.getByRole('link', { name: 'harbor-linux.zip', exact: true }).waitFor();
      await page.getByRole('link', { name: 'Overview' }).click();
      await page.getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('status').getByText('Night Ferry was published.').waitFor();
    }));

  test('shows the progress, and continues after lost connections and a reload', () =>
    within(async (page) => {
      await openFiles(page);
      let requests = 0;
      // The second part is lost on its way, as are questions about it.
      await page.route('**/upload-sessions/**', (route) =>
        ++requests < 3 ? route.continue() : route.abort('connectionreset'),
      );
      await page.getByLabel('File', { exact: true }).setInputFiles(local);
      await page.getByRole('button', { name: 'Upload' }).click();
      await page.getByText(/The connection was lost\. Trying again in \d+ s/).waitFor();
      expect(await received()).toBe(PART_BYTES);
      page.on('dialog', (dialog) => void dialog.accept());
      await page.unroute('**/upload-sessions/**');
      await openFiles(page);
      await page.getByText('To continue, choose the same file again.').waitFor();
      const sent: string[] = [];
      page.on('request', (request) => {
        const range = request.headers()['content-range'];
        if (range !== undefined) sent.push(range);
      });
      await page.getByLabel('File', { exact: true }).setInputFiles(local);
      await page.getByRole('button', { name: 'Upload' }).click();
      await page.getByRole('link', { name: 'harbor-linux.zip', exact: true }).waitFor();
      expect(sent[1]).toMatch(new RegExp(`^bytes ${PART_BYTES}-`));
      expect(await uploads()).toEqual([expect.objectContaining({ size: content.length })]);
    }));

  test('cancels, and sends smaller parts to a proxy that accepts less', () =>
    within(async (page) => {
      await openFiles(page);
      await page.route('**/upload-sessions/**', (route) =>
        Number(route.request().headers()['content-length'] ?? 0) > PART_BYTES / 2
          ? route.fulfill({ status: 413, body: 'too large' })
          : new Promise(() => undefined),
      );
      await page.getByLabel('File', { exact: true }).setInputFiles(local);
      await page.getByRole('button', { name: 'Upload' }).click();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('button', { name: 'Upload' }).waitFor();
      await page.unroute('**/upload-sessions/**');
      await page.route('**/upload-sessions/**', (route) =>
        (route.request().postDataBuffer()?.length ?? 0) > PART_BYTES / 2
          ? route.fulfill({ status: 413, body: 'too large' })
          : route.continue(),
      );
      await page.getByRole('button', { name: 'Upload' }).click();
      await page.getByRole('link', { name: 'harbor-linux.zip', exact: true }).waitFor();
      expect(await uploads()).toHaveLength(1);
      expect(await sql('SELECT state FROM file_uploads WHERE game_id = $1', [game.id])).toEqual([
        { state: 'stored' },
      ]);
    }));

  test('cancels an upload before the service has created it', () =>
    within(async (page) => {
      await openFiles(page);
      let go!: () => void;
      const cancelled = new Promise<void>((resolve) => (go = resolve));
      await page.route('**/files/uploads', async (route) => {
        await cancelled;
        await route.continue();
      });
      await page.getByLabel('File', { exact: true }).setInputFiles(local);
      await page.getByRole('button', { name: 'Upload' }).click();
      const discarded = page.waitForResponse('**/discard');
      await page.getByRole('button', { name: 'Cancel' }).click();
      go();
      expect((await discarded).ok()).toBe(true);
      expect(await sql('SELECT FROM file_uploads WHERE game_id = $1', [game.id])).toEqual([]);
    }));

  test('says what is wrong with a file, and keeps the form', () =>
    within(async (page) => {
      await openFiles(page);
      await page.getByLabel('File', { exact: true }).setInputFiles({
        name: 'huge.zip',
        mimeType: 'application/zip',
        buffer: Buffer.alloc(30_000_001),
      });
      await page.getByLabel('Name to show').fill('Huge');
      await page.getByRole('button', { name: 'Upload' }).click();
      await page.getByRole('alert').getByText('more than this store accepts').waitFor();
      expect(await page.getByLabel('Name to show').inputValue()).toBe('Huge');
      await page.getByLabel('File', { exact: true }).setInputFiles({
        name: 'empty.zip',
        mimeType: 'application/zip',
        buffer: Buffer.alloc(0),
      });
      await page.getByRole('button', { name: 'Upload' }).click();
      await page.getByRole('alert').getByText('The file is empty.').waitFor();
    }));

  test.each(['light', 'dark'] as const)(
    'the pages of a game are accessible in the %s scheme',
    async (colorScheme) => {
      await make.upload({
        game,
        filename: 'harbor.zip',
        file_key: 'k',
        size: 1_000_000,
        traits: '{p_windows,demo}',
      });
      await make.upload({ game, filename: 'osx.zip', channel_name: 'osx', hidden: true, position: 1 });
      const base = `/user/settings/games/${game.id}`;
      const [upload] = await uploads();
      const pages = [
        '/user/settings/games',
        '/user/settings/games/new',
        base,
        `${base}/details`,
        `${base}/delete`,
        `${base}/files`,
        `${base}/files/${String(upload!.id)}`,
        `${base}/files/${String(upload!.id)}/delete`,
      ];
      for (const width of [390, 1280])
        await within(
          async (page) => {
            for (const path of pages) {
              await page.goto(path);
              await checkAccessibility(page, `${path} at ${width}`);
              if (path === base) expect(await page.evaluate(LAST_TAB_END)).toBeLessThan(width);
            }
          },
          { colorScheme, viewport: { width, height: 800 } },
        );
    },
  );

  test('the page shows other ways to upload if JavaScript is off', async () => {
    const context = await browser.newContext({ baseURL: baseUrl(), javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto('/login');
    await page.getByLabel('Username or email address').fill(seller.username);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('.account').waitFor();
    await openFiles(page);
    // getByText ignores the content of noscript.
    expect(await page.locator('noscript .alert').innerText()).toMatch(
      /^Uploading in the browser needs JavaScript\./,
    );
    expect(await page.locator('noscript .alert').isVisible()).toBe(true);
    expect(await page.getByRole('button', { name: 'Upload' }).isVisible()).toBe(false);
    await context.close();
  });
});
