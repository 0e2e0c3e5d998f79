import { type Browser, signInBrowser } from '../support/browser';
import { useStore } from '../support/app';
import { make, useGame } from '../support/make';
import { sql } from '../support/sql';

useStore({ FILES_DIR: '/nonexistent' });

const store = useGame();
let browser: Browser;

beforeEach(async () => {
  browser = await signInBrowser(store.owner);
});

const path = (more = '', id = store.game.id) => `/user/settings/games/${id}/builds${more}`;
const build = (fields: object = {}) =>
  make.build({ game: store.game, file_key: `${store.game.id}/a.zip`, size: 2_000_000, ...fields });
const readWords = async (more = '') => {
  await browser.get(path(more));
  return browser.words;
};

async function publish(id: number, page = browser) {
  await page.get(path());
  const [, form_token] = /name="form_token" value="([^"]+)"/.exec(page.page.text) ?? [];
  return page.post(path(`/${id}/publish`), { form_token: form_token! });
}

test('lists the builds of all channels with their state, size and error', async () => {
  expect(await readWords()).toContain('There are no builds yet.');
  const first = await build({ user_version: '1.0' });
  await build({ user_version: '1.1' });
  await build({ hidden: true });
  await build({
    channel_name: 'linux',
    state: 'failed',
    error: 'The patch is for another parent build.',
    file_key: null,
    size: null,
  });
  await build({ channel_name: 'osx', state: 'processing', file_key: null, size: null });
  await sql(
    `INSERT INTO build_files (id, build_id, type, state, size, file_key)
     VALUES (nextval('builds_id_seq'), $1, 'patch', 'uploaded', 3000, 'p')`,
    [first.id],
  );
  const words = await readWords();
  for (const text of [
    /osx 1 Processing none/,
    /linux 1 Failed The patch is for another parent build\. none/,
    /windows 3 Completed Hidden 2\.0 MB/,
    /windows 2 1\.1 Newest 2\.0 MB/,
    /windows 1 1\.0 Completed 2\.0 MB Patch 3\.0 KB/,
  ])
    expect(words).toMatch(text);
  const linux = await readWords('?channel=linux');
  expect(linux).toContain('Failed');
  expect(linux).not.toContain('Processing');
});

test('publishes a hidden build', async () => {
  await build();
  const hidden = await build({ hidden: true });
  expect(await publish(hidden.id)).toMatchObject({ status: 303 });
  await browser.follow();
  expect(browser.words).toContain('Version 2 of windows was published.');
  expect(browser.words).toMatch(/windows 2 Newest/);
  expect(browser.page.text).not.toContain('/publish');
});

test('shows 50 builds on a page', async () => {
  for (let i = 0; i < 51; i++) await build();
  expect(await readWords()).toMatch(/windows 51 Newest/);
  await browser.click('Older');
  expect(browser.words).toMatch(/windows 1 Completed/);
  expect(browser.words).not.toMatch(/windows 2 /);
  await browser.click('Newest');
  expect(browser.words).toMatch(/windows 51 Newest/);
});

test('is for users who can edit the game', async () => {
  const hidden = await build({ hidden: true });
  const stranger = await signInBrowser(await make.user({ developer: true }));
  expect(await stranger.get(path())).toMatchObject({ status: 404 });
  await stranger.get('/user/settings/games/new');
  const [, form_token] = /name="form_token" value="([^"]+)"/.exec(stranger.page.text)!;
  expect(await stranger.post(path(`/${hidden.id}/publish`), { form_token: form_token! })).toMatchObject({
    status: 404,
  });
  // The build of another game of the same seller.
  const other = await make.game({ owner: store.owner });
  await browser.get(path());
  const [, token] = /name="form_token" value="([^"]+)"/.exec(browser.page.text)!;
  expect(await browser.post(path(`/${hidden.id}/publish`, other.id), { form_token: token! })).toMatchObject({
    status: 404,
  });
  expect(await sql('SELECT hidden FROM builds WHERE id = $1', [hidden.id])).toEqual([{ hidden: true }]);
});
