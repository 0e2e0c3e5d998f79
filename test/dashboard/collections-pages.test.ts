import { Browser, signInBrowser } from '../support/browser';
import { type Actor } from '../support/actor';
import { useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';

useStore();

const COLLECTIONS = '/user/settings/collections';
let player: Actor;
let admin: Actor;
let stranger: Actor;
let owner: Actor;
let browser: Browser;

beforeAll(async () => {
  ({ owner, admin, stranger } = await actors());
  player = await make.user();
  browser = await signInBrowser(player);
});

const titles = (of = browser) =>
  [...of.page.text.matchAll(/<li class="card" value="\d+">.*?<h2>\s*(.*?)\s*<\/h2>/gs)].map(
    ([, title]) => title,
  );
const readCollectionGameIds = async (id: number) =>
  (
    await sql<{ game_id: number }>(
      'SELECT game_id FROM collection_games WHERE collection_id = $1 ORDER BY sort_key',
      [id],
    )
  ).map(({ game_id }) => game_id);

test('a player creates, fills, orders, renames and deletes a collection with forms alone', async () => {
  const games = [];
  for (const title of ['Harbor <one>', 'Harbor two', 'Harbor three']) {
    const game = await make.game({ owner, title });
    await make.downloadKey({ game, user_id: player.id });
    games.push(game);
  }
  const hidden = await make.game({ owner, title: 'Hidden', visibility: 'private' });
  await browser.get(COLLECTIONS);
  expect(browser.words).toContain('You have no collections yet.');
  await browser.get(`${COLLECTIONS}/new`);
  expect((await browser.submit(COLLECTIONS, { title: ' ' })).status).toBe(400);
  expect(browser.words).toContain('Enter a title.');
  // As in the API, an invisible title is blank.
  expect((await browser.submit(COLLECTIONS, { title: '\u200b\u2800' })).status).toBe(400);
  expect((await browser.submit(COLLECTIONS, { title: 'x'.repeat(61) })).status).toBe(400);
  await browser.submit(COLLECTIONS, { title: 'By the <sea>', private: 'yes', on_profile: 'yes' });
  const path = browser.page.location!;
  const id = Number(path.split('/').at(-1));
  await browser.follow();
  expect(browser.words).toMatch(/“By the <sea>” was created\. This collection has no games yet\./);
  expect(
    await sql(
      `SELECT user_id, private, EXISTS (SELECT FROM profile_collections WHERE collection_id = id) AS shown
       FROM collections WHERE id = $1`,
      [id],
    ),
  ).toEqual([{ user_id: player.id, private: true, shown: true }]);

  await make.downloadKey({ game: hidden, user_id: player.id });
  for (const game of games) {
    await browser.get(`${path}?find=HARBOR`);
    expect(browser.words).not.toContain('Hidden');
    await browser.submit(`${path}/games`, { game_id: String(game.id) });
    await browser.follow();
    expect(browser.words).toContain(`${game.title} is in the collection.`);
  }
  expect(titles()).toEqual(['Harbor &lt;one&gt;', 'Harbor two', 'Harbor three']);
  await browser.get(`${path}?find=hidden`);
  await browser.submit(`${path}/games`);
  expect([browser.page.status, browser.words]).toEqual([
    404,
    expect.stringContaining('it is private and can’t be in a collection.'),
  ]);
  await browser.get(`${path}?find=nothing`);
  expect(browser.words).toContain('No game in your library matches “nothing”.');
  // Between two games that the player can see is one that they can't: the game moves past both.
  await sql(
    'INSERT INTO collection_games (collection_id, game_id, sort_key, user_id) VALUES ($1, $2, 0, $3)',
    [id, hidden.id, player.id],
  );
  await sql('UPDATE collection_games SET sort_key = -1 WHERE collection_id = $1 AND game_id = $2', [
    id,
    games[0]!.id,
  ]);
  const [first, second, third] = games.map((game) => game.id);
  const moved = async (game: number | undefined, to: string) => {
    await browser.get(path);
    await browser.submit(`${path}/games/${game}/move`, { to });
    await browser.follow();
    return readCollectionGameIds(id);
  };
  expect(await moved(second, 'up')).toEqual([second, first, hidden.id, third]);
  expect(browser.words).toContain('The order was changed.');
  expect(await moved(first, 'down')).toEqual([second, hidden.id, third, first]);
  expect(await moved(first, 'top')).toEqual([first, second, hidden.id, third]);
  expect(browser.words).toContain('The order was changed.');
  for (const to of ['down', 'sideways']) {
    expect(await moved(third, to)).toEqual([first, second, hidden.id, third]);
    expect(browser.words).not.toContain('The order was changed.');
  }
  await browser.submit(`${path}/games/${second}/remove`);
  await browser.follow();
  expect(browser.words).toContain('The game was removed.');
  expect(await readCollectionGameIds(id)).toEqual([first, hidden.id, third]);

  await browser.submit(path, { title: '' });
  expect([browser.page.status, browser.words]).toEqual([400, expect.stringContaining('Enter a title.')]);
  const { form_token } = browser.formFields(path);
  await browser.post(path, { form_token: form_token!, title: 'By\r\nthe\tlake' });
  await browser.follow();
  expect(browser.words).toMatch(/^By the lake .*The collection was saved\./);
  expect(
    await sql(
      `SELECT title, private, EXISTS (SELECT FROM profile_collections WHERE collection_id = id) AS shown
       FROM collections WHERE id = $1`,
      [id],
    ),
  ).toEqual([{ title: 'By the lake', private: false, shown: false }]);
  await browser.get(`${path}/delete`);
  expect(browser.words).toContain('Delete “By the lake”?');
  await browser.submit(`${path}/delete`);
  await browser.follow();
  expect(browser.words).toContain('“By the lake” was deleted.');
  expect(await sql('SELECT FROM collections WHERE id = $1', [id])).toEqual([]);
});

test('the library offers to add a game to a collection, or to a new one', async () => {
  const game = await make.game({ owner, title: 'Tin <Comet>' });
  await make.downloadKey({ game, user_id: player.id });
  const having = await make.collection({ owner: player, title: 'Has it', games: [game] });
  const other = await make.collection({ owner: player, title: 'Other one' });
  await browser.get('/user/games?search=comet');
  const add = `${COLLECTIONS}/add?game_id=${game.id}`;
  expect(browser.page.text).toContain(`href="${add}"`);
  await browser.get(add);
  expect(browser.words).toMatch(/^Add Tin <Comet> to a collection It is already in Has it ?\./);
  expect(browser.page.text).not.toContain(`<option value="${having.id}"`);
  await browser.submit(`${COLLECTIONS}/add`, { collection: String(other.id) });
  expect(browser.page.location).toBe(`${COLLECTIONS}/${other.id}`);
  expect(await readCollectionGameIds(other.id)).toEqual([game.id]);
  await browser.get(add);
  expect((await browser.submit(`${COLLECTIONS}/add`, { collection: 'new', title: '' })).status).toBe(400);
  expect(browser.words).toContain('Enter a title.');
  await browser.submit(`${COLLECTIONS}/add`, { collection: 'new', title: 'Comets' });
  await browser.follow();
  expect(browser.words).toMatch(/^Comets .*“Comets” was created\. .*Tin <Comet>/);
});

test('only editors open and change a collection; a game that a player can’t see can’t be added', async () => {
  const game = await make.game({ owner });
  const secret = await make.game({ owner, visibility: 'private', title: 'Unseen' });
  const { id } = await make.collection({
    owner: player,
    admins: [admin],
    games: [game],
    title: 'Public one',
  });
  const path = `${COLLECTIONS}/${id}`;
  const [editor, other] = [await signInBrowser(admin), await signInBrowser(stranger)];
  expect((await editor.get(path)).status).toBe(200);
  const { form_token } = editor.formFields(path);
  expect(
    (await editor.post(`${path}/games`, { form_token: form_token!, game_id: String(secret.id) })).status,
  ).toBe(404);
  expect((await editor.get(`${COLLECTIONS}/add?game_id=${secret.id}`)).status).toBe(404);
  expect(editor.page.text).not.toContain('Unseen');
  await other.get(`${COLLECTIONS}/new`);
  const { form_token: token } = other.formFields(COLLECTIONS);
  for (const [at, fields] of [
    ['', { title: 'Stolen' }],
    ['/delete', {}],
    ['/games', { game_id: String(game.id) }],
    [`/games/${game.id}/move`, { to: 'top' }],
    [`/games/${game.id}/remove`, {}],
  ] as const)
    expect((await other.post(path + at, { form_token: token!, ...fields })).status).toBe(404);
  for (const at of ['', '/delete']) expect((await other.get(path + at)).status).toBe(404);
  // With the form token of another session, nothing changes either.
  expect((await editor.post(`${path}/delete`, { form_token: token! })).status).toBe(403);
  expect(await readCollectionGameIds(id)).toEqual([game.id]);
  for (const at of ['/x', '/0', '/4000000']) expect((await editor.get(COLLECTIONS + at)).status).toBe(404);
});

test('a player with as many collections as possible is told so', async () => {
  const full = await make.user();
  await sql(`INSERT INTO collections (user_id, title) SELECT $1, 'One' FROM generate_series(1, 1000)`, [
    full.id,
  ]);
  const mine = await signInBrowser(full);
  await mine.get(`${COLLECTIONS}/new`);
  expect((await mine.submit(COLLECTIONS, { title: 'One more' })).status).toBe(400);
  expect(mine.words).toContain('You have too many collections. Delete one first.');
});

test('a player with many collections sees the last changed ones first, in pages whose forms return to the same one', async () => {
  const many = await make.user();
  await sql(
    `INSERT INTO collections (user_id, title, updated_at)
     SELECT $1, 'Number ' || n || '.', timestamptz '2024-01-01' + n / 2 * interval '1 minute' FROM generate_series(1, 101) n`,
    [many.id],
  );
  const admin = await make.collection({ owner, title: 'Of a friend' });
  await sql('INSERT INTO collection_admins (collection_id, user_id) VALUES ($1, $2)', [admin.id, many.id]);
  const mine = await signInBrowser(many);
  const numbers = () => [...mine.page.text.matchAll(/>Number (\d+)\.<\/a/g)].map(([, n]) => Number(n));
  await mine.get(COLLECTIONS);
  expect(mine.words).toContain('Of a friend Admin');
  const seen = numbers();
  await mine.click('Next');
  seen.push(...numbers());
  await mine.submit(/action="([^"]*\/on-profile)"/.exec(mine.page.text)![1]!);
  const { location } = mine.page;
  await mine.follow();
  expect(location).toContain('?after=');
  expect(numbers()).toEqual(seen.slice(49));
  await mine.click('Next');
  expect(numbers()).toEqual([2, 1]);
  expect([...seen, ...numbers()]).toEqual(Array.from({ length: 101 }, (_, i) => 101 - i));
  await mine.click('First');
  expect(numbers()).toEqual(seen.slice(0, 49));
});

test('a long collection has pages, and its forms return to the same one', async () => {
  const games = [];
  for (let n = 1; n <= 51; n++) games.push(await make.game({ owner, title: `Number ${n}` }));
  const { id } = await make.collection({ owner: player, games });
  const path = `${COLLECTIONS}/${id}`;
  await browser.get(path);
  expect(titles()).toHaveLength(50);
  await browser.get(`${path}?page=2`);
  expect(titles()).toEqual(['Number 51']);
  expect(browser.words).toContain('51 of 51');
  await browser.submit(`${path}/games/${games[50]!.id}/move`, { to: 'up' });
  expect(browser.page.location).toBe(`${path}?page=2`);
  await browser.follow();
  expect(titles()).toEqual(['Number 50']);
});
