import { type Browser, signInBrowser } from '../support/browser';
import { type Actor } from '../support/actor';
import { baseUrl, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore();

const COLLECTIONS = '/user/settings/collections';
const NEW = `${COLLECTIONS}/new`;
let user: Actor;
let browser: Browser;

const titles = async () =>
  (await sql<{ title: string }>('SELECT title FROM collections WHERE user_id = $1', [user.id])).map(
    ({ title }) => title,
  );
const endSessions = () => sql('DELETE FROM sessions WHERE user_id = $1', [user.id]);

beforeEach(async () => {
  user = await make.user();
  browser = await signInBrowser(user);
});

test.each([
  ['the session expired', endSessions],
  ['the cookie expired', async () => browser.cookies.clear()],
])('a form sent after %s keeps what was entered until its person sends it again', async (_, end) => {
  await browser.get(NEW);
  const fields = { ...browser.formFields(COLLECTIONS), title: 'Long & <hard> to type' };
  await end();
  await browser.post(COLLECTIONS, fields);
  expect(browser.page.status).toBe(403);
  expect(browser.words).toMatch(
    /^Your session has ended Nothing was changed\. .* Title Long & <hard> to type Sign in in a new tab/,
  );
  // Without a new sign-in, a second submission gets the same page.
  await browser.submit(COLLECTIONS);
  expect(browser.words).toMatch(/^Your session has ended/);
  const kept = browser.formFields(COLLECTIONS);
  await browser.signIn(user.username);
  await browser.post(COLLECTIONS, kept);
  expect(browser.page.status).toBe(403);
  expect(browser.words).toMatch(
    new RegExp(`^Send this form\\? .* signed in as ${user.username}\\. .* Title Long & <hard> to type`),
  );
  expect(await titles()).toEqual([]);
  await browser.submit(COLLECTIONS);
  await browser.follow();
  expect(browser.words).toContain('“Long & <hard> to type” was created.');
  expect(await titles()).toEqual(['Long & <hard> to type']);
});

test('passwords aren’t kept, and a form with nothing else leads back to its page', async () => {
  const DATA = '/user/settings/data';
  await browser.get(DATA);
  const fields = { ...browser.formFields(DATA), password: 'a secret one' };
  await endSessions();
  await browser.post(DATA, fields, { referer: `${baseUrl()}${DATA}?from=menu` });
  expect(browser.words).toMatch(
    /^Your session has ended Nothing was changed\. Sign in again, and then repeat/,
  );
  expect(browser.page.text).not.toContain('a secret one');
  expect(browser.page.text).toContain('href="/login?return_to=%2Fuser%2Fsettings%2Fdata%3Ffrom%3Dmenu"');
});

test('the sign-in link contains no key', async () => {
  await browser.get(NEW);
  const fields = { ...browser.formFields(COLLECTIONS), title: 'x' };
  await endSessions();
  await browser.post(COLLECTIONS, fields, { referer: `${baseUrl()}/download/SECRET` });
  expect(browser.page.text).not.toContain('SECRET');
  const [, path] = /href="(\/login\?[^"]*)"/.exec(browser.page.text)!;
  await browser.get(path!);
  expect(browser.formFields('/login').return_to).toBe('/download/SECRET');
});

test('the sign-in link never leads to another host', async () => {
  await browser.get(NEW);
  const fields = { ...browser.formFields(COLLECTIONS), title: 'x' };
  await endSessions();
  for (const referer of ['https://evil.example/phish', 'x', '']) {
    await browser.post(COLLECTIONS, fields, { referer });
    expect(browser.page.text).toContain('href="/login?return_to=%2Fuser%2Fsettings"');
  }
});

test('a form without entries isn’t sent again by someone who has signed in since', async () => {
  const { id } = await make.collection({ owner: user });
  const path = `${COLLECTIONS}/${id}/delete`;
  await browser.get(path);
  const fields = browser.formFields(path);
  await endSessions();
  await browser.signIn(user.username);
  await browser.post(path, fields, { referer: baseUrl() + path });
  expect([browser.page.status, browser.words]).toEqual([
    403,
    expect.stringMatching(/^Your session has ended Nothing was changed\. .* Open the page$/),
  ]);
  expect(browser.page.text).toContain(`<a class="button" href="${path}">`);
  expect(browser.page.text).not.toContain(`action="${path}"`);
  expect(await titles()).toHaveLength(1);
});

test.each(['https://evil.example/phish', '//evil.example/phish'])(
  'no link leads to another host, as with the referrer %s',
  async (path) => {
    await browser.get(NEW);
    const fields = { ...browser.formFields(COLLECTIONS), title: 'x' };
    await endSessions();
    await browser.signIn(user.username);
    await browser.post(COLLECTIONS, fields, { referer: path.startsWith('/') ? baseUrl() + path : path });
    expect(browser.words).toMatch(/^Send this form\?/);
    expect(browser.page.text).not.toContain('evil');
    expect(browser.page.text).toMatch(/href="\/user\/settings"\s*>Discard it/);
  },
);

test('a form of another site, or without a token, is rejected as before', async () => {
  await browser.get(NEW);
  const fields = { ...browser.formFields(COLLECTIONS), title: 'Planted' };
  await endSessions();
  for (const [given, headers] of [
    [fields, { 'sec-fetch-site': 'cross-site' }],
    [fields, { 'sec-fetch-site': 'same-site' }],
    [{ title: 'Planted' }, {}],
    [{ title: 'Planted', form_token: 'short' }, {}],
  ] as const) {
    await browser.post(COLLECTIONS, given, headers);
    expect([browser.page.status, browser.page.text.includes('Planted')]).toEqual([403, false]);
  }
  // Scripts and programs get JSON.
  await browser.post(COLLECTIONS, fields, { accept: 'application/json' });
  expect(browser.page.text).not.toContain('<html');
});
