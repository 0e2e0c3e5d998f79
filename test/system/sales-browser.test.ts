import { readFileSync } from 'node:fs';
import type { Browser as Chromium } from 'playwright-core';
import { PASSWORD, withPassword } from '../support/browser';
import { inChromium, openChromium, Window } from '../support/chromium';
import { OPERATOR_TOKEN } from '../support/importing';
import { baseUrl, useStore } from '../support/app';
import { make } from '../support/make';
import { addSales } from '../support/selling';

useStore({ RATE_LIMIT: 'off', OPERATOR_TOKEN, SELLERS_MAY_REFUND: 'true' });

const SALES = '/user/settings/sales';
const FIGURES = `${SALES}/figures`;
const DAY = 86_400_000;
const dayAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString();

inChromium.describe('in Chromium', () => {
  let chromium: Chromium;
  beforeAll(async () => {
    chromium = await openChromium();
  });
  afterAll(() => chromium?.close());

  test('a seller finds a sale and its buyer, downloads the CSV, refunds, creates a read-only key, and revokes it', async () => {
    const seller = await withPassword(await make.user());
    const mine = await make.game({ owner: seller, title: 'Night Ferry' });
    await make.user({
      username: 'passenger',
      emails: [{ email: 'passenger@example.com', verified: true }],
    });
    const window = await Window.open(chromium, baseUrl());
    const { page } = window;
    await page.goto('/login');
    await page.getByLabel('Username or email address').fill(seller.username);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page
      .getByRole('navigation', { name: 'Main' })
      .getByRole('link', { name: 'Sales', exact: true })
      .click();
    await page.getByText('There are no sales yet.').waitFor();

    const sale = await fetch(`${baseUrl()}/operator/purchases`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      body: new URLSearchParams({
        game_id: String(mine.id),
        email: 'passenger@example.com',
        currency: 'EUR',
        amount: '1234',
      }),
    });
    expect(sale.status).toBe(200);
    await page.reload();
    await page.getByRole('row', { name: /passenger@example\.com.*Night Ferry.*€12\.34.*Complete/ }).waitFor();
    await page.getByRole('link', { name: 'Figures' }).click();
    await page.waitForURL(/figures$/);
    const today = page.locator('.column').last();
    const tip = page.locator('.tip');
    expect(await today.getAttribute('aria-label')).toMatch(/: €12\.34, 1 sale$/);
    // One of thirty columns is in the Tab order; the arrow keys reach the others.
    await window.tabTo(/: €12\.34, 1 sale$/);
    expect(await page.evaluate(`document.activeElement.getAttribute('class')`)).toBe('column');
    expect(await tip.textContent()).toMatch(/: €12\.34, 1 sale$/);
    await page.keyboard.press('ArrowLeft');
    expect(await page.evaluate(`document.activeElement.getAttribute('aria-label')`)).toMatch(
      /: €0\.00, 0 sales$/,
    );
    expect(await tip.textContent()).toMatch(/: €0\.00, 0 sales$/);
    expect(await page.locator('.column[tabindex="0"]').count()).toBe(1);
    // The values of a column are near the pointer.
    const { x, y, width, height } = (await page.locator('.column .hit').nth(10).boundingBox())!;
    const pointer = { x: x + width / 2, y: y + height / 2 };
    await page.mouse.move(pointer.x, pointer.y);
    const shown = (await tip.boundingBox())!;
    expect(Math.abs(shown.x + shown.width / 2 - pointer.x)).toBeLessThan(shown.width);
    expect(Math.abs(shown.y + shown.height - pointer.y)).toBeLessThan(30);
    await page.getByText('Show as table').click();
    await page.getByRole('cell', { name: '€12.34' }).first().waitFor();

    await page.getByRole('link', { name: 'Sales of Night Ferry' }).click();
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download sales as CSV' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toMatch(/^sales-night-ferry-.*\.csv$/);
    expect(readFileSync(await download.path(), 'utf8').split('\r\n')[1]).toMatch(
      /,Night Ferry,passenger@example\.com,passenger,EUR,12\.34,.*,complete,1,0,0,,$/,
    );
    await page.getByRole('link', { name: 'Buyers', exact: true }).click();
    await page.getByRole('rowheader', { name: 'passenger@example.com' }).waitFor();

    await page.getByRole('searchbox').fill('passen');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('link', { name: 'Refund' }).click();
    await page.getByRole('button', { name: 'Refund' }).click();
    await page
      .getByRole('status')
      .getByText(/was refunded/)
      .waitFor();
    await page.getByText(`Refunded by ${seller.username}`).waitFor();
    await page.getByRole('link', { name: 'passenger@example.com' }).click();
    await page.getByRole('row', { name: /Night Ferry.*Refunded/ }).waitFor();
    expect(page.url()).not.toContain('passenger');

    await page.getByRole('link', { name: 'Developers' }).click();
    await page.getByRole('link', { name: 'API keys', exact: true }).first().click();
    await page.getByRole('link', { name: 'New key' }).click();
    await page.getByLabel('Name of the key').fill('Accountant');
    await page.getByLabel('game:view:purchases').check();
    await page.getByRole('button', { name: 'Create key' }).click();
    const looking = seller.with(await page.getByLabel('Key', { exact: true }).inputValue());
    expect(await looking.get(`/games/${mine.id}/sales`)).toMatchObject({
      status: 200,
      body: { sales: [{ email: 'passenger@example.com', price: '€12.34' }] },
    });
    expect((await looking.post('/collections')).status).toBe(403);
    await page.getByRole('link', { name: 'Revoke Accountant' }).click();
    await page.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByRole('status').getByText('“Accountant” was revoked').waitFor();
    expect((await looking.get(`/games/${mine.id}/sales`)).status).toBe(401);
    expect(window.complaints).toEqual([]);
    await window.close();
  });

  test('keyboard only: filters on change, reads the chart, downloads the CSV, and goes back to a search', async () => {
    const seller = await withPassword(await make.user());
    const mine = await make.game({ owner: seller, title: 'Tidal Clock' });
    await addSales(mine.id, dayAgo(1), 'EUR', 3, 1497);
    const sale = await make.purchase({ games: [mine], email: 'keys@example.com', currency: 'EUR' });
    await make.purchase({ games: [mine], email: 'other@example.com', status: 'refunded' });
    const window = await Window.open(chromium, baseUrl());
    const { page } = window;
    const { keyboard } = page;
    await window.signIn(seller.username, PASSWORD);
    await page.goto(SALES);
    // The focus stays on the filter, and there is no button to press.
    await window.tabTo(/^Status/);
    expect(await page.getByRole('button', { name: 'Show' }).isVisible()).toBe(false);
    // The filter is sent a moment after its first change, so one letter chooses each option.
    await keyboard.press('R');
    await page.waitForURL(/status=refunded/);
    expect(new URL(page.url()).search).toBe('?range=all&status=refunded');
    await page.getByRole('row', { name: /other@example\.com/ }).waitFor();
    expect(await page.getByRole('row', { name: /keys@example\.com/ }).count()).toBe(0);
    expect(await window.focused()).toMatch(/^Status/);
    await page.goBack();
    await page.getByRole('row', { name: /keys@example\.com/ }).waitFor();
    expect(await page.getByLabel('Status').inputValue()).toBe('');
    await window.tabTo(/^Figures$/);
    await keyboard.press('Enter');
    await page.waitForURL(/figures$/);
    await window.tabTo(/^Period/);
    await keyboard.press('L');
    await page.waitForURL(/range=90d/);
    await window.tabTo(/^Group by/);
    await keyboard.press('W');
    await page.waitForURL(/by=week/);
    await window.tabTo(/: €/);
    await keyboard.press('End');
    expect(await window.focused()).toMatch(/^Week of .*: €/);
    await window.tabTo(/^Show as table$/);
    await keyboard.press('Enter');
    await page.getByRole('cell', { name: '€14.97' }).first().waitFor();
    await window.tabTo(/^Download CSV by week$/);
    const downloading = page.waitForEvent('download');
    await keyboard.press('Enter');
    expect(readFileSync(await (await downloading).path(), 'utf8')).toContain(',3,EUR,14.97');
    await page.reload();
    await window.tabTo(/^Find a sale/);
    await keyboard.type('example.com');
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Search' }).waitFor();
    await window.tabTo(new RegExp(`^Sale ${sale.id}$`));
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: `Sale ${sale.id}` }).waitFor();
    await page.goBack();
    await page.getByRole('row', { name: /other@example\.com/ }).waitFor();
    await page.reload();
    await page.getByRole('row', { name: /keys@example\.com/ }).waitFor();
    expect(page.url()).not.toContain('example.com');
    expect(window.complaints).toEqual([]);
    await window.close();
  });

  test('prints the numbers without cut-off text or controls', async () => {
    const seller = await withPassword(await make.user());
    const mine = await make.game({
      owner: seller,
      title: 'A game with a name that is longer than a page is wide, or nearly',
    });
    for (let i = 0; i < 40; i++) await addSales(mine.id, dayAgo(i * 7), 'USD', 1 + (i % 5), 49_900 * i);
    await make.purchase({ games: [mine], email: `${'long'.repeat(20)}@example.com` });
    // An A4 page without its margins at 96 dpi.
    const window = await Window.open(chromium, baseUrl(), {
      colorScheme: 'dark',
      viewport: { width: 718, height: 1047 },
    });
    const { page } = window;
    await window.signIn(seller.username, PASSWORD);
    await page.emulateMedia({ media: 'print' });
    for (const path of [`${FIGURES}?range=12m`, `${FIGURES}?range=5y&by=week`, SALES]) {
      await page.goto(path);
      const found = await page.evaluate(`(() => {
        const visible = (one) => one.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
        const shown = [...document.querySelectorAll('body *')].filter(visible);
        const clickable = shown.filter((one) => one.matches('button, .button, input, select, summary, nav')).map((one) => one.outerHTML);
        const cut = shown.filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 200));
        const figures = [...document.querySelectorAll('figure td, table.list td')].filter(visible).length;
        const dark = getComputedStyle(document.body).backgroundColor;
        return { clickable, cut, figures: figures > 0, dark };
      })()`);
      expect({ path, ...(found as object) }).toEqual({
        path,
        clickable: [],
        cut: [],
        figures: true,
        dark: 'rgb(255, 255, 255)',
      });
    }
    await window.close();
  });
});
