import type { Browser, Page } from 'playwright-core';
import { WebhooksService } from '../../src/operator/webhooks/webhooks.service';
import { LinksService } from '../../src/users/links/links.service';
import { checkAccessibility } from '../support/accessibility';
import { PASSWORD, withPassword } from '../support/browser';
import { inChromium, openChromium, Window } from '../support/chromium';
import { baseUrl, theApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore({ RATE_LIMIT: 'off', SIGN_UP: 'true', FILES_DIR: '/nonexistent' });

const ACCOUNT = '/user/settings/account';

/** Opens pages on a phone and on a wide screen, in both color schemes. `SCREENSHOTS`: a folder for pictures. */
async function check(page: Page, name: string): Promise<void> {
  for (const width of [390, 1280])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await checkAccessibility(page, `${name} ${width} ${colorScheme}`, false);
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true);
      if (process.env.SCREENSHOTS)
        await page.screenshot({
          path: `${process.env.SCREENSHOTS}/${name}-${width}-${colorScheme}.png`,
          fullPage: true,
        });
    }
}

inChromium.describe('in Chromium', () => {
  let chromium: Browser;
  beforeAll(async () => {
    chromium = await openChromium();
  });
  afterAll(() => chromium?.close());

  test('a buyer opens the link of a key, signs up by hand, and keeps the game; every page is accessible', async () => {
    const url = 'https://mailer.example.com/';
    await theApp()
      .get(WebhooksService)
      .add({ url, events: ['link.requested'], game_id: null });
    const game = await make.game({
      owner: await make.user({ display_name: 'Azure Bison' }),
      title: 'A game with a name that is longer than a phone is wide',
      min_price: 500,
    });
    for (const trait of ['p_windows', 'p_linux'])
      await make.upload({ game, filename: `${'long-name-'.repeat(9)}${trait}.zip`, traits: [trait] });
    const key = await make.downloadKey({ game });
    const reader = await withPassword(
      await make.user({
        username: 'reader',
        emails: [{ email: `${'long'.repeat(15)}@example.com`, verified: true }],
      }),
    );
    await sql(`INSERT INTO user_emails (user_id, email) VALUES ($1, 'second@example.com')`, [reader.id]);

    const window = await Window.open(chromium, baseUrl(), { viewport: { width: 390, height: 900 } });
    const { page } = window;
    await page.goto(`/download/${key.key}`);
    // The files for this platform come first.
    await page.getByRole('listitem').first().getByText('Linux ·').waitFor();
    await check(page, 'key');
    await page.goto('/download/unknown');
    await check(page, 'unknown-key');
    for (const path of ['forgot-password', 'sign-up']) {
      await page.goto(`/${path}`);
      await check(page, path);
    }
    for (const purpose of ['set_password', 'sign_in'] as const) {
      const link = await theApp().get(LinksService).create({ user_id: reader.id, purpose }, {});
      await page.goto(new URL(link.url).pathname);
      await check(page, purpose);
    }
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.waitForURL(/\/user\/games/);

    await page.goto(`/download/${key.key}`);
    await page.getByRole('button', { name: 'Add to your library' }).click();
    await page.getByText('is now in your library').waitFor();
    await page.goto(ACCOUNT);
    await check(page, 'account');
    await page.getByLabel('New email address').fill('third@example.com');
    await page.getByLabel('Your password').fill('wrong password');
    await page.getByRole('button', { name: 'Add email address' }).click();
    await page.getByRole('alert').waitFor();
    await check(page, 'account-problem');
    await page.goto(`${ACCOUNT}/erase`);
    await check(page, 'erase');
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('This can’t be undone.').waitFor();
    await check(page, 'erase-for-good');
    expect(window.complaints.filter((text) => !text.includes('404') && !text.includes('403'))).toEqual([]);
    await window.close();
  });
});
