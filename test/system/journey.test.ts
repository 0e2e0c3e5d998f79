import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser as Chromium } from 'playwright-core';
import { PASSWORD, withPassword } from '../support/browser';
import { inChromium, openChromium, Window } from '../support/chromium';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor } from '../support/actor';
import { baseUrl, databaseUrl, PEPPER, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

// The path from an empty store to a game on a player's disk: each step as its guide describes.
const folder = mkdtempSync(join(tmpdir(), 'gamewharf-journey-'));
const FILES_DIR = join(folder, 'files');
useStore({ OPERATOR_TOKEN, FILES_DIR, SELLERS_MAY_REFUND: 'true' });
afterAll(() => rmSync(folder, { recursive: true }));

const CONTENT = Buffer.from('PK a game of some bytes');

/** Runs the command next to the service. */
const gamewharf = (...words: string[]): string =>
  execFileSync(process.execPath, ['dist/src/cli.js', ...words], {
    encoding: 'utf8',
    env: { ...process.env, DATABASE_URL: databaseUrl(), API_KEY_PEPPER: PEPPER, FILES_DIR },
  });

inChromium.describe('in Chromium', () => {
  let chromium: Chromium;
  let seller: Actor;
  let player: Actor;
  beforeAll(async () => {
    execFileSync(process.execPath, ['tools/scripts/compile.mjs'], { stdio: 'pipe' });
    chromium = await openChromium();
    seller = await withPassword(await make.user({ username: 'seller', developer: true }));
    player = await withPassword(await make.user({ username: 'player' }));
  });
  afterAll(() => chromium?.close());

  test('a game is created, uploaded, sold and refunded, and a key redeemed and downloaded', async () => {
    // The seller's game, with a file.
    gamewharf('games', 'create', '--user', 'seller', '--title', 'Tin Comet', '--price', '4.99');
    const [game] = await sql<{ id: number }>('SELECT id FROM games');
    writeFileSync(join(folder, 'tin-comet.zip'), CONTENT);
    const put = gamewharf('files', 'put', '--game', 'seller/tin-comet', join(folder, 'tin-comet.zip'));
    expect(put).toMatch(/^Stored upload \d+ of Tin Comet: tin-comet\.zip, 23 bytes\.$/m);

    // The checkout sells it, and the seller sees the sale and finds the buyer.
    const sale = await fetch(`${baseUrl()}/operator/purchases`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      body: new URLSearchParams({
        game_id: String(game!.id),
        email: 'buyer@example.com',
        currency: 'USD',
        amount: '499',
        reference: 'order 7',
      }),
    });
    expect(sale.status).toBe(200);
    const { purchase } = (await sale.json()) as { purchase: { id: number } };
    const selling = await Window.open(chromium, baseUrl());
    await selling.signIn(seller.username, PASSWORD);
    await selling.page.goto('/');
    await selling.page
      .getByRole('navigation', { name: 'Main' })
      .getByRole('link', { name: 'Sales', exact: true })
      .click();
    await selling.page.getByText('$4.99').first().waitFor();
    const findBuyer = async () => {
      await selling.page.getByRole('searchbox').fill('buyer@');
      await selling.page.getByRole('button', { name: 'Search' }).click();
      await selling.page.getByRole('link', { name: 'buyer@example.com' }).click();
      return selling.page.getByRole('row', { name: /Tin Comet/ }).innerText();
    };
    expect(await findBuyer()).not.toContain('Refunded');

    // A refund revokes the buyer's key.
    await selling.page.getByRole('link', { name: `Sale ${purchase.id}` }).click();
    await selling.page.getByRole('link', { name: 'Refund' }).click();
    await selling.page.getByRole('button', { name: 'Refund' }).click();
    await selling.page.getByRole('status').getByText('was refunded').waitFor();
    expect(await findBuyer()).toContain('Refunded');
    expect(await sql('SELECT id FROM download_keys WHERE revoked_at IS NULL')).toEqual([]);

    // The seller creates a key. A player redeems it and downloads the game.
    await selling.page.getByRole('link', { name: 'Keys', exact: true }).click();
    await selling.page.getByRole('link', { name: 'Tin Comet', exact: true }).click();
    await selling.page.getByLabel('Number of keys').fill('1');
    await selling.page.getByRole('textbox', { name: /^Label/ }).fill('Giveaway');
    await selling.page.getByRole('button', { name: 'Create keys' }).click();
    const key = await selling.page.getByLabel('New key').inputValue();
    const playing = await Window.open(chromium, baseUrl());
    const { page } = playing;
    await playing.signIn(player.username, PASSWORD);
    await page.getByRole('link', { name: 'Library' }).click();
    await page.getByText('You don’t own any games yet.').waitFor();
    await page.getByRole('link', { name: 'Redeem a key' }).click();
    await page.getByLabel('Download key').fill(key);
    await page.getByRole('button', { name: 'Redeem key' }).click();
    await page.getByRole('status').getByText('Tin Comet is now in your games.').waitFor();
    await page.getByRole('listitem').getByText('23 bytes').waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'tin-comet.zip' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe('tin-comet.zip');
    expect(readFileSync(await download.path()).equals(CONTENT)).toBe(true);
    await selling.page.getByRole('link', { name: 'All keys' }).click();
    await selling.page.getByRole('row', { name: /Giveaway .* Claimed by player/ }).waitFor();
    expect([...selling.complaints, ...playing.complaints]).toEqual([]);
  });
});
