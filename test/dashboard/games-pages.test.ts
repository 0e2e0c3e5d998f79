import { Audit } from '../../src/audit/audit';
import { type Browser, signInBrowser } from '../support/browser';
import { type Actor } from '../support/actor';
import { baseUrl, logged, theApp, useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { recordStatements } from '../support/statements';

useStore({ COVER_ORIGINS: 'https://images.example.com' });

const GAMES = '/user/settings/games';

let owner: Actor;
let admin: Actor;
let stranger: Actor;
let browser: Browser;

beforeAll(async () => {
  ({ owner, admin, stranger } = await actors());
});

describe('the Games page', () => {
  test('lists games with counts, builds and links, and a seller starts at Sales', async () => {
    const seller = await make.user();
    const game = await make.game({
      owner: seller,
      admins: [admin],
      title: 'Bright <Harbor>',
      visibility: 'restricted',
      min_price: 499,
      views_count: 12_345,
      downloads_count: 678,
      purchases_count: 9,
      created_at: '2024-01-02T00:00:00Z',
      published_at: '2024-05-06T07:08:09Z',
    });
    await make.game({
      owner: seller,
      title: 'Draft',
      published_at: null,
      created_at: '2024-01-01T00:00:00Z',
    });
    await make.game({ owner, title: 'Of another seller' });
    const build = (channel_name: string, user_version: string, state = 'completed') =>
      make.build({ game, channel_name, user_version, state, created_at: '2024-02-03T00:00:00Z' });
    await build('windows', '1.0');
    await build('linux', '0.9');
    await build('windows', '1.1');
    await build('windows', '1.2', 'processing');
    await make.upload({ game, external_url: 'https://example.com/' });
    const page = await signInBrowser(seller);
    expect((await page.get('/user/settings')).location).toBe('/user/settings/sales');
    await page.get(GAMES);
    expect(page.page.text).toContain(`<a href="${GAMES}"  aria-current="page">Games</a>`);
    expect(page.words).toMatch(/Bright <Harbor> \$4\.99 · Restricted, published 6 May 2024/);
    expect(page.words).toMatch(/Views 12,345 Downloads 678 Purchases 9 Files 1/);
    expect(page.words).toMatch(/linux 0\.9 3 Feb 2024 windows 1\.1 3 Feb 2024/);
    expect(page.words).toMatch(/Draft Free · Public, not published .* No builds yet\./);
    expect(page.words).not.toContain('Of another seller');
    for (const link of [
      `/user/settings/sales?game=${game.id}`,
      `/user/settings/buyers?game=${game.id}`,
      `${GAMES}/${game.id}/keys`,
    ]) {
      expect(page.page.text).toContain(`href="${link}"`);
      const opened = await signInBrowser(admin);
      expect((await opened.get(link)).status).toBe(200);
    }
  });

  test('needs one statement for a page of games, newest first', async () => {
    const seller = await make.user();
    for (let n = 1; n <= 21; n++)
      await make.game({
        owner: seller,
        title: `No. ${n}.`,
        created_at: `2024-01-${String(n).padStart(2, '0')}T00:00:00Z`,
      });
    const page = await signInBrowser(seller);
    const statements = await recordStatements(() => page.get(GAMES));
    expect(statements.filter((text) => text === 'games_page')).toHaveLength(1);
    expect(page.words).toMatch(/No\. 21\. .*No\. 2\. /);
    expect(page.words).not.toContain('No. 1. ');
    await page.click('Older');
    expect(page.words).toMatch(/^Games.* No\. 1\. /);
    expect(page.words).not.toContain('No. 2. ');
    expect(page.page.text).not.toContain('Older');
    await page.click('Newest');
    expect(page.words).toContain('No. 21. ');
    await page.get(`${GAMES}?after=2023-01-01+00:00:00%2B00,1`);
    expect(page.words).toContain('There are no more games.');
  });

  test('lists six channels, however many builds they have', async () => {
    const seller = await make.user();
    const game = await make.game({ owner: seller });
    for (const n of [1, 2, 3, 4, 5, 6, 7]) await make.build({ game, channel_name: `channel-${n}` });
    const page = await signInBrowser(seller);
    await page.get(GAMES);
    expect(page.words).toMatch(/channel-6 .*and more channels/);
    expect(page.words).not.toContain('channel-7');
  });

  test('shows covers from the service and COVER_ORIGINS, and initials instead of others', async () => {
    const seller = await make.user();
    const cover = (title: string, cover_url: string | null) => make.game({ owner: seller, title, cover_url });
    await cover('Copper & Comet', 'https://images.example.com/1.png');
    await cover('Tin Anchor', `${baseUrl()}/assets/cover-1.svg`);
    await cover('Elsewhere', 'https://other.example.com/1.png');
    await cover('No URL', 'images.example.com');
    await cover('Without', null);
    const page = await signInBrowser(seller);
    await page.get(GAMES);
    expect([...page.page.text.matchAll(/<img src="([^"]*)" alt="" loading/g)].map(([, src]) => src)).toEqual([
      '/assets/cover-1.svg',
      'https://images.example.com/1.png',
    ]);
    expect(page.words).toMatch(/^Games W .* NU .* E .* TA .* CC /);
    expect(page.page.headers.get('content-security-policy')).toContain(
      `img-src 'self' https://images.example.com;`,
    );
  });
});

describe('the page of all keys', () => {
  test('lists the games of the seller with the numbers of their keys', async () => {
    const seller = await make.user();
    const game = await make.game({
      owner: seller,
      title: 'Tin <Anchor>',
      created_at: '2024-01-01T00:00:00Z',
    });
    await make.game({ owner: seller, title: 'Draft' });
    await make.game({ owner, title: 'Of another seller' });
    await make.downloadKey({ game });
    await make.downloadKey({ game, user_id: owner.id });
    await make.downloadKey({ game, revoked_at: '2024-02-05T00:00:00Z' });
    const { id: purchase_id } = await make.purchase({ games: [game], email: 'a@example.com' });
    await make.downloadKey({ game, purchase_id });
    const page = await signInBrowser(seller);
    await page.get(GAMES);
    expect(page.page.text).toContain('<a href="/user/settings/download-keys" >Keys</a>');
    await page.get('/user/settings/download-keys');
    expect(page.words).toMatch(/Draft 0 0 .*Tin <Anchor> 3 1 /);
    expect(page.words).not.toContain('Of another seller');
    expect(page.page.text).toContain(`href="${GAMES}/${game.id}/keys"`);
    await page.get('/user/settings/download-keys?after=2023-01-01+00:00:00%2B00,1');
    expect(page.words).toContain('There are no more games.');
  });

  test('counts to a thousand', async () => {
    const seller = await make.user();
    const game = await make.game({ owner: seller, title: 'Full' });
    const add = (count: number) =>
      sql(
        'INSERT INTO download_keys (key, game_id) SELECT gen_random_uuid()::text, $1 FROM generate_series(1, $2)',
        [game.id, count],
      );
    const page = await signInBrowser(seller);
    await add(1000);
    await page.get('/user/settings/download-keys');
    expect(page.words).toContain('Full 1,000 1,000 ');
    await add(2);
    await page.get('/user/settings/download-keys');
    expect(page.words).toContain('Full 1,000+ 1,000+ ');
  });
});

describe('keys of a game', () => {
  let game: { id: number; title: string };
  let path: string;

  beforeEach(async () => {
    game = await make.game({ owner, admins: [admin], title: 'Tin <Comet>' });
    path = `${GAMES}/${game.id}/keys`;
    browser = await signInBrowser(owner);
  });

  const create = async (fields: Record<string, string>, as = browser) => {
    await as.get(path);
    return as.submit(path, fields);
  };
  const stored = () =>
    sql<{ id: number; key: string; label: string | null; revoked: boolean }>(
      'SELECT id, key, label, revoked_at IS NOT NULL AS revoked FROM download_keys WHERE game_id = $1 ORDER BY id',
      [game.id],
    );

  test('are created with a label and displayed for copying', async () => {
    const { status, location } = await create({ count: '3', label: ' Press <kit> ' });
    expect(status).toBe(303);
    await browser.follow();
    const keys = await stored();
    expect(keys.map(({ label }) => label)).toEqual(Array(3).fill('Press <kit>'));
    expect(browser.words).toContain('3 new keys');
    expect(browser.page.text).toContain(`>${keys.map(({ key }) => key).join('\n')}</textarea>`);
    expect(browser.words).toMatch(/Press <kit> .* Unclaimed 0 Revoke/);
    // The URL alone doesn't make them new.
    await browser.get(location!);
    expect(browser.words).toMatch(/Press <kit> .* Unclaimed 0 Revoke/);
    expect(browser.words).not.toContain('new keys');
    for (const [i, label] of ['', ' \u200b '].entries()) {
      await create({ count: '1', label });
      expect((await stored())[3 + i]!.label).toBeNull();
    }
    await theApp().get(Audit).flush();
    expect(
      await sql(
        `SELECT event, user_id, details FROM audit_events WHERE (details->>'game_id')::bigint = $1 ORDER BY id`,
        [game.id],
      ),
    ).toEqual(
      [3, 1, 1].map((count) => ({
        event: 'download_key.created',
        user_id: owner.id,
        details: { game_id: game.id, count },
      })),
    );
  });

  test.each([
    ['0', '', 'Enter a number from 1 to 1000.'],
    ['1001', '', 'Enter a number from 1 to 1000.'],
    ['x', '', 'Enter a number from 1 to 1000.'],
    ['1', 'x'.repeat(101), 'The label can have at most 100 characters.'],
  ])('are not created for the count %s with the label %j', async (count, label, problem) => {
    expect((await create({ count, label })).status).toBe(400);
    expect(browser.words).toContain(problem);
    expect(await stored()).toEqual([]);
  });

  test('beyond 10,000 unclaimed ones are reported', async () => {
    await sql(
      `INSERT INTO download_keys (key, game_id) SELECT 'full-' || $1 || '-' || n, $1::bigint FROM generate_series(1, 10000) n`,
      [game.id],
    );
    expect((await create({ count: '1', label: '' })).status).toBe(400);
    expect(browser.words).toContain('A game can have at most 10,000 unclaimed keys.');
  });

  test('are listed with their state, newest first, without those of purchases', async () => {
    const purchase = await make.purchase({ games: [game], email: 'buyer@example.com' });
    const bought = await make.downloadKey({ game, purchase_id: purchase.id });
    await make.downloadKey({ game, user_id: stranger.id, account_id: stranger.id });
    await make.downloadKey({ game, email: 'friend@example.com', downloads: 3 });
    await make.downloadKey({ game, revoked_at: '2026-01-01T00:00:00Z' });
    await browser.get(path);
    expect(browser.words).toMatch(
      new RegExp(`Revoked .*For friend@example\\.com 3 .*Claimed by ${stranger.username}`),
    );
    expect(browser.words).not.toContain(bought.key);
    expect(browser.page.text).toContain('class="tabs game"');
  });

  test('are paged', async () => {
    await create({ count: '60', label: '' });
    const keys = (await stored()).map(({ key }) => key);
    await browser.get(path);
    expect(browser.page.text).toContain(keys[59]);
    expect(browser.page.text).not.toContain(keys[9]!);
    await browser.click('Older');
    expect(browser.page.text).toContain(keys[9]);
    expect(browser.page.text).not.toContain(keys[10]!);
  });

  test('are downloaded as CSV, all or those of one request', async () => {
    await create({ count: '2', label: '=1+1' });
    await create({ count: '600', label: 'Bundle' });
    const keys = await stored();
    const { text, headers } = await browser.get(`${path}.csv`);
    expect(headers.get('content-disposition')).toBe(`attachment; filename="keys-of-game-${game.id}.csv"`);
    const lines = text.trim().split('\r\n');
    expect(lines[0]).toBe('id,key,label,created_at,status,claimed_by,email,downloads,url');
    expect(lines).toHaveLength(603);
    expect(lines.at(-1)).toMatch(
      new RegExp(
        `^${keys[0]!.id},${keys[0]!.key},'=1\\+1,\\S+Z,unclaimed,,,0,http\\S+/download/${keys[0]!.key}$`,
      ),
    );
    const one = await browser.get(`${path}.csv?from=${keys[0]!.id}&to=${keys[1]!.id}`);
    expect(one.text.trim().split('\r\n')).toHaveLength(3);
  });

  test('are revoked after confirmation', async () => {
    await create({ count: '1', label: '' });
    const { id, key } = (await stored())[0]!;
    const revoke = `${path}/${id}/revoke`;
    await browser.get(revoke);
    expect(browser.words).toContain('Revoke this download key?');
    expect(browser.words).toContain(key);
    expect((await browser.submit(revoke, {})).location).toBe(path);
    await browser.follow();
    expect(browser.words).toContain('The key was revoked.');
    expect((await stored())[0]!.revoked).toBe(true);
    expect((await browser.get(revoke)).status).toBe(404);
    expect(browser.words).toContain('This key doesn’t exist, or it was already revoked.');
  });

  describe('of several batches', () => {
    let own: { id: number };
    let at: string;
    let ids: Record<'press' | 'friends', number[]>;

    beforeAll(async () => {
      own = await make.game({ owner, title: 'Batches' });
      at = `${GAMES}/${own.id}/keys`;
      const player = await make.user({ username: 'first-player' });
      const add = async (label: string | null, fields: object = {}) =>
        (await make.downloadKey({ game: own, label, ...fields })).id;
      ids = { press: [], friends: [] };
      for (let i = 0; i < 3; i++) ids.press.push(await add('Press'));
      ids.press.push(await add('Press', { user_id: player.id }));
      ids.press.push(await add('Press', { revoked_at: '2024-01-01T00:00:00Z' }));
      for (let i = 0; i < 2; i++) ids.friends.push(await add('Friends'));
      await add(null, { email: 'someone@example.com' });
    });

    const shown = () =>
      [...browser.page.text.matchAll(/href="[^"]*keys\/(\d+)\/revoke"/g)].map(([, id]) => Number(id)).sort();

    test('lists those with a label or in a state', async () => {
      await browser.get(`${at}?label=Press`);
      expect(shown()).toEqual(ids.press.slice(0, 4));
      expect(browser.words).toContain('Label Any label Friends Press');
      await browser.get(`${at}?label=Press&state=unclaimed`);
      expect(shown()).toEqual(ids.press.slice(0, 3));
      expect(browser.formFields(at).label).toBeDefined();
      await browser.get(`${at}?state=claimed`);
      expect(browser.words).toMatch(/For someone@example\.com .* Claimed by first-player/);
      expect(shown()).toHaveLength(2);
      await browser.get(`${at}?state=revoked`);
      expect(shown()).toEqual([]);
      expect(browser.words).toContain('Revoked');
      await browser.get(`${at}?label=None`);
      expect(browser.words).toContain('No key matches.');
      const { text } = await browser.get(`${at}.csv?label=Friends&state=unclaimed`);
      expect(text.trimEnd().split('\r\n')).toHaveLength(3);
    });

    test('shows links instead of keys', async () => {
      await browser.get(`${at}?label=Friends&show=links`);
      const copied = /<textarea id="shown-keys"[^>]*>([^<]*)</.exec(browser.page.text)![1]!;
      expect(copied.split('\n')).toEqual([
        expect.stringMatching(/^http.*\/download\//),
        expect.stringMatching(/^http.*\/download\//),
      ]);
      await browser.get(`${at}?label=Friends`);
      expect(/<textarea id="shown-keys"[^>]*>([^<]*)</.exec(browser.page.text)![1]).not.toContain('/');
    });

    test('revokes a batch after a question, without claimed keys unless the seller says so', async () => {
      await browser.get(`${at}?label=Press`);
      await browser.get(
        /href="([^"]*keys\/revoke[^"]*)"/.exec(browser.page.text)![1]!.replaceAll('&amp;', '&'),
      );
      expect(browser.words).toMatch(/^Revoke 3 keys\? Game Batches Label Press Unclaimed 3 Claimed 1 /);
      const later = await make.downloadKey({ game: own, label: 'Press' });
      const stranger = await signInBrowser((await actors()).stranger);
      await stranger.get('/user/games');
      const { form_token } = stranger.formFields('/logout');
      const fields = { ...browser.formFields(`${at}/revoke`), form_token: form_token! };
      expect((await stranger.post(`${at}/revoke`, fields)).status).toBe(404);
      const earlier = logged.length;
      await browser.submit(`${at}/revoke`);
      await browser.follow();
      expect(browser.words).toContain('3 keys were revoked.');
      expect(logged.slice(earlier).find((line) => line.includes('"download_key.revoked"'))).toContain(
        '"count":3',
      );
      await browser.get(`${at}?label=Press`);
      expect(shown()).toEqual([ids.press[3], later.id]);
      await browser.get(`${at}/revoke?label=Press`);
      await browser.submit(`${at}/revoke`, { claimed: 'yes' });
      await browser.get(`${at}?label=Press`);
      expect(shown()).toEqual([]);
      await browser.get(`${at}?label=Friends`);
      expect(shown()).toEqual(ids.friends);
      expect((await browser.get(`${at}/revoke?label=Press`)).location).toBe(at);
    });

    test('finds and revokes those whose label has a character that the page leaves out', async () => {
      const { id } = await make.downloadKey({ game: own, label: 'Re\u202eview' });
      await browser.get(at);
      const [, label] = /<option value="([^"]*)"\s*>Review</.exec(browser.page.text)!;
      await browser.get(`${at}?${new URLSearchParams({ label: label! })}`);
      expect(shown()).toEqual([id]);
      expect(browser.words).not.toContain('\u202e');
      await browser.get(`${at}/revoke?${new URLSearchParams({ label: label! })}`);
      await browser.submit(`${at}/revoke`);
      await browser.follow();
      expect(browser.words).toContain('1 key was revoked.');
    });
  });

  test('are available only to editors of the game', async () => {
    const { id } = await make.downloadKey({ game });
    const other = await signInBrowser(stranger);
    await other.get(GAMES);
    expect(other.words).not.toContain(game.title);
    for (const page of [
      path,
      `${path}.csv`,
      `${path}/${id}/revoke`,
      `${GAMES}/x/keys`,
      `${GAMES}/4000000/keys`,
    ])
      expect({ page, status: (await other.get(page)).status }).toEqual({ page, status: 404 });
    // The page of the error, and not a file.
    const { headers } = await other.get(`${path}.csv`);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-disposition')).toBeNull();
    await browser.get(path);
    await other.get('/user/games/redeem');
    const { form_token = '' } = other.formFields('/user/games/redeem');
    expect((await other.post(path, { form_token, count: '1' })).status).toBe(404);
    expect((await other.post(`${path}/${id}/revoke`, { form_token })).status).toBe(404);
    expect((await browser.post(path, { form_token, count: '1' })).status).toBe(403);
    expect(await stored()).toEqual([expect.objectContaining({ id, revoked: false })]);
    const helper = await signInBrowser(admin);
    expect((await create({ count: '1' }, helper)).status).toBe(303);
  });
});
