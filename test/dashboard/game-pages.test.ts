import { Audit } from '../../src/audit/audit';
import { type Browser, signInBrowser } from '../support/browser';
import { type Actor } from '../support/actor';
import { theApp, useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';

useStore();

const GAMES = '/user/settings/games';

let seller: Actor;
let admin: Actor;
let stranger: Actor;
let browser: Browser;

beforeAll(async () => {
  ({ owner: seller, admin, stranger } = await actors());
  await sql('UPDATE users SET developer = true WHERE id = $1', [seller.id]);
});
beforeEach(async () => {
  browser = await signInBrowser(seller);
});

const stored = async (id: number) => (await sql('SELECT * FROM games WHERE id = $1', [id]))[0];

/** Creates a game on the page, and returns its ID. */
async function create(title: string): Promise<number> {
  await browser.get(`${GAMES}/new`);
  const { location } = await browser.submit(GAMES, { title });
  await browser.follow();
  return Number(/\/(\d+)$/.exec(location!)![1]);
}

test('a new developer creates a game, completes its details, and publishes it', async () => {
  const id = await create('Harbor <Lights>');
  expect(browser.words).toContain('Harbor <Lights> was created.');
  expect(browser.words).toMatch(
    /Only editors can see this game Upload its files , complete its details , and publish it/,
  );
  expect(await stored(id)).toMatchObject({
    slug: 'harbor-lights',
    visibility: 'private',
    published_at: null,
  });

  await browser.get(`${GAMES}/${id}/details`);
  await browser.submit(`${GAMES}/${id}/details`, {
    short_text: 'Two lines\r\nof text',
    cover_url: 'https://cdn.example.com/1.png',
    price: '4.99',
    type: 'html',
  });
  await browser.follow();
  expect(browser.words).toContain('Your changes were saved.');
  expect(await stored(id)).toMatchObject({
    title: 'Harbor <Lights>',
    short_text: 'Two lines\nof text',
    cover_url: 'https://cdn.example.com/1.png',
    min_price: 499,
    traits: ['can_be_bought'],
    type: 'html',
  });

  await browser.get(`${GAMES}/${id}`);
  await browser.submit(`${GAMES}/${id}/publish`, {}, 'Publish');
  await browser.follow();
  expect(browser.words).toContain('Harbor <Lights> was published.');
  expect(await stored(id)).toMatchObject({ visibility: 'public', published_at: expect.any(String) });
  expect((await stranger.get(`/games/${id}`)).status).toBe(200);

  await browser.submit(`${GAMES}/${id}/publish`, {}, 'Unpublish');
  expect((await stranger.get(`/games/${id}`)).status).toBe(404);
  await theApp().get(Audit).flush();
  expect(
    await sql(
      `SELECT event, details->'fields' AS fields FROM audit_events WHERE (details->>'game_id')::bigint = $1 ORDER BY id`,
      [id],
    ),
  ).toEqual([
    { event: 'game.created', fields: null },
    { event: 'game.updated', fields: ['short_text', 'cover_url', 'type', 'min_price'] },
    { event: 'game.updated', fields: ['published', 'visibility'] },
    { event: 'game.updated', fields: ['published'] },
  ]);
});

test('shows problems at their fields, and keeps what was entered', async () => {
  const game = await make.game({ owner: seller });
  const other = await make.game({ owner: seller });
  const path = `${GAMES}/${game.id}/details`;
  await browser.get(path);
  const { status } = await browser.submit(path, {
    title: ' ',
    short_text: 'Kept <text>',
    cover_url: 'ftp://x',
    price: '4,99',
    slug: 'not a slug',
  });
  expect(status).toBe(400);
  expect(browser.words).toContain('Enter a price in US dollars such as 4.99, or 0 for a free game.');
  expect(browser.page.text).toContain('Kept &lt;text&gt;</textarea');
  await browser.submit(path, { price: '5' });
  for (const problem of [
    'The title must not be blank.',
    'The cover image must be an http or https URL.',
    'The short name must consist of letters, digits, _, . and -.',
  ])
    expect(browser.words).toContain(problem);
  expect(browser.page.text).toContain('aria-describedby="slug-help slug-problem" aria-invalid="true"');
  expect(browser.formFields(path)).toMatchObject({
    short_text: 'Kept <text>',
    price: '5',
    slug: 'not a slug',
  });
  await browser.submit(path, { title: 'T', cover_url: '', slug: other.slug });
  expect(browser.words).toContain('The short name is taken by another game.');
  await browser.submit(path, { slug: '' });
  expect(browser.words).toContain('Enter a short name.');
  expect(await stored(game.id)).toMatchObject({ title: game.title, slug: game.slug });
});

test('a title without Latin letters asks for a short name', async () => {
  await browser.get(`${GAMES}/new`);
  expect((await browser.submit(GAMES, { title: '月光' })).status).toBe(400);
  expect(browser.words).toContain('The short name is required, as the title has no Latin letters or digits.');
  await browser.submit(GAMES, { slug: 'moonlight' });
  expect(browser.page.status).toBe(303);
});

test('another short name says what stops working, before and after', async () => {
  const game = await make.game({ owner: seller });
  const path = `${GAMES}/${game.id}/details`;
  await browser.get(path);
  expect(browser.words).toContain('links to the old URL stop working');
  await browser.submit(path, { slug: 'renamed' });
  await browser.follow();
  expect(browser.words).toContain(`The URL with ${game.slug} no longer works.`);
});

test('the overview shows figures, the newest sales and files', async () => {
  const game = await make.game({
    owner: seller,
    admins: [admin],
    title: 'Overview',
    views_count: 1234,
    downloads_count: 55,
    min_price: 499,
  });
  const purchase = await make.purchase({ games: [game], email: 'buyer@example.com' });
  await make.upload({
    game,
    filename: 'overview.zip',
    traits: '{p_windows,demo}',
    file_key: 'k',
    size: 1_500_000,
  });
  const page = await signInBrowser(admin);
  await page.get(`${GAMES}/${game.id}`);
  expect(page.words).toMatch(/Downloads 55 in all Views 1,234 in all/);
  expect(page.words).toContain(`Sale ${purchase.id}`);
  expect(page.words).toContain('buyer@example.com');
  expect(page.words).toMatch(/overview\.zip Demo Windows 1\.5 MB/);
  for (const tab of ['details', 'files', 'keys'])
    expect(page.page.text).toContain(`href="${GAMES}/${game.id}/${tab}"`);
  for (const path of ['sales', 'buyers'])
    expect(page.page.text).toContain(`href="/user/settings/${path}?game=${game.id}"`);
});

describe('delete', () => {
  test('asks first, and deletes an unsold game', async () => {
    const game = await make.game({ owner: seller, title: 'To delete' });
    await browser.get(`${GAMES}/${game.id}/details`);
    expect(browser.page.text).toContain(`href="${GAMES}/${game.id}/delete"`);
    await browser.get(`${GAMES}/${game.id}/delete`);
    expect(browser.words).toContain('Delete To delete?');
    expect(await stored(game.id)).toBeDefined();
    await browser.submit(`${GAMES}/${game.id}/delete`);
    await browser.follow();
    expect(browser.words).toContain('To delete was deleted.');
    expect(await stored(game.id)).toBeUndefined();
  });

  test('says why a sold game stays', async () => {
    const game = await make.game({ owner: seller });
    await make.purchase({ games: [game] });
    await browser.get(`${GAMES}/${game.id}/delete`);
    expect((await browser.submit(`${GAMES}/${game.id}/delete`)).status).toBe(400);
    expect(browser.words).toContain('The game has 1 purchase: make it private instead.');
  });

  test('requires the owner', async () => {
    const game = await make.game({ owner: seller, admins: [admin] });
    const page = await signInBrowser(admin);
    await page.get(`${GAMES}/${game.id}/details`);
    expect(page.words).not.toContain('Delete this game');
    const { form_token = '' } = page.formFields(`${GAMES}/${game.id}/details`);
    expect((await page.get(`${GAMES}/${game.id}/delete`)).status).toBe(403);
    expect((await page.post(`${GAMES}/${game.id}/delete`, { form_token })).status).toBe(403);
    expect(await stored(game.id)).toBeDefined();
  });
});

test('other users get the same 404 for every page of a game as for one that doesn’t exist', async () => {
  const game = await make.game({ owner: seller });
  const page = await signInBrowser(stranger);
  await page.get('/user/settings/collections');
  const form_token = /name="form_token" value="([^"]+)"/.exec(page.page.text)![1]!;
  for (const tab of ['', '/details', '/delete']) {
    const foreign = await page.get(`${GAMES}/${game.id}${tab}`);
    const missing = await page.get(`${GAMES}/4000000${tab}`);
    expect([foreign.status, missing.status]).toEqual([404, 404]);
    const inPath = new RegExp(`(?<=games(?:/|%2F))${game.id}\\b`, 'g');
    expect(foreign.text.replace(inPath, '4000000')).toBe(missing.text);
  }
  for (const action of ['details', 'publish', 'delete'])
    expect(
      (await page.post(`${GAMES}/${game.id}/${action}`, { form_token, title: 'X', published: 'yes' })).status,
    ).toBe(404);
  expect(await stored(game.id)).toMatchObject({ title: game.title });
});

test('accounts of players can’t create games; developers without games find the page', async () => {
  const player = await signInBrowser(stranger);
  expect((await player.get(`${GAMES}/new`)).status).toBe(403);
  await player.get(GAMES);
  expect(player.words).not.toContain('New game');
  const developer = await signInBrowser(await make.user({ developer: true }));
  await developer.get(GAMES);
  expect(developer.page.text).toContain(`href="${GAMES}/new"`);
  expect(developer.page.text).toContain(`<a href="${GAMES}"  aria-current="page">Games</a>`);
});

test('a form without the token of its session changes nothing', async () => {
  const game = await make.game({ owner: seller });
  for (const path of [
    GAMES,
    `${GAMES}/${game.id}/details`,
    `${GAMES}/${game.id}/publish`,
    `${GAMES}/${game.id}/delete`,
  ])
    expect((await browser.post(path, { title: 'Forged', published: 'yes' })).status).toBe(403);
  expect(await stored(game.id)).toMatchObject({ title: game.title, visibility: 'public' });
});
