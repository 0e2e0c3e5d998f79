import { ModulesContainer } from '@nestjs/core';
import type { Browser, Page } from 'playwright-core';
import { LinksService } from '../../src/users/links/links.service';
import { addToPeriods } from '../../src/purchases/earnings/earnings';
import { listRoutes } from '../../src/auth/access/routes';
import { checkAccessibility } from '../support/accessibility';
import { PASSWORD, withPassword } from '../support/browser';
import { inChromium, openChromium, Window } from '../support/chromium';
import { type Actor } from '../support/actor';
import { baseUrl, theApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore({ RATE_LIMIT: 'off', SIGN_UP: 'true', SELLERS_MAY_REFUND: 'true' });

const SETTINGS = '/user/settings';
// A place after the last entry of a list.
const AFTER_ALL = 'after=2000-01-01+00:00:00%2B00,1';
const SALES = `${SETTINGS}/sales`;
const GAMES = `${SETTINGS}/games`;
const LONG = 'long'.repeat(20);

/** Routes without a page. */
const WITHOUT_PAGE = [
  /\.csv$/,
  // This route redirects to the first page of the user.
  /^\/user\/settings$/,
  // JSON for the script of the page.
  /\/files\/uploads\/:id$/,
  // These pages need an empty store or an identity provider: setup-browser.test.ts tests them.
  /^\/(setup|logout|login\/(provider|callback)|user\/settings\/identities.*)$/,
];

// axe takes seconds for all endpoints, so this opens some of them.
const OPEN_DETAILS = `document.querySelectorAll('details:not(.endpoint, .endpoint details), .endpoint:nth-of-type(-n + 2), .endpoint:nth-of-type(-n + 2) details')
  .forEach((one) => (one.open = true))`;

// Narrow first: the tabs scroll to the current one when a page loads.
const LOOKS = [
  { look: 'narrow, light', width: 320, colorScheme: 'light', onlyColors: false },
  { look: 'narrow, dark', width: 320, colorScheme: 'dark', onlyColors: true },
  { look: 'wide, dark', width: 1200, colorScheme: 'dark', onlyColors: false },
  { look: 'wide, light', width: 1200, colorScheme: 'light', onlyColors: true },
] as const;

/** Checks the current page in both color schemes at both widths, and leaves the window narrow. */
async function check(page: Page, name: string): Promise<void> {
  for (const { look, width, colorScheme, onlyColors } of LOOKS) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await checkAccessibility(page, `${name} ${look}`, onlyColors);
  }
  await page.setViewportSize({ width: 320, height: 800 });
}

/** A seller with data on every page, and the URLs of all pages by route. */
async function preparePages(seller: Actor): Promise<Record<string, string[]>> {
  const app = `app-${seller.id}`;
  const insert = async (text: string, ...values: unknown[]) =>
    (await sql<{ id: number }>(`${text} RETURNING id`, values))[0]!.id;
  for (const [client_id, user_id] of [
    [app, (await make.user()).id],
    [`own-${app}`, seller.id],
  ])
    await sql(
      `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes, implicit_allowed)
       VALUES ($1, $2, 'Captain’s log', '{https://log.example/}', '{profile,collection}', true)`,
      [client_id, user_id],
    );
  const grant = await insert(
    `INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES ($1, $2, '{profile:me}')`,
    seller.id,
    app,
  );
  const device = await fetch(`${baseUrl()}/oauth/device`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: app, scope: 'profile:me' }),
  });
  const { user_code } = (await device.json()) as { user_code: string };
  const [key] = await sql<{ id: number }>(
    'SELECT id FROM api_keys WHERE user_id = $1 AND grant_id IS NULL AND revoked_at IS NULL',
    [seller.id],
  );
  await sql(
    `INSERT INTO api_key_requests (api_key_id, day, requests)
     SELECT $1, (now() AT TIME ZONE 'UTC')::date - ago, 1000 + ago * 17 % 90 FROM generate_series(1, 29) ago`,
    [key!.id],
  );

  const game = await make.game({
    owner: seller,
    title: 'A game with a name that is longer than a phone is wide',
  });
  const nobodyBought = await make.game({ owner: seller, title: 'Nobody bought it' });
  const collection = await make.collection({
    owner: seller,
    title: 'Games about the sea',
    games: [game, nobodyBought],
  });
  const collections = `${SETTINGS}/collections/${collection.id}`;
  for (const channel_name of ['windows', 'linux']) await make.build({ game, channel_name });
  for (let i = 0; i < 40; i++)
    await sql(
      addToPeriods(
        `(SELECT ${game.id} AS game_id, '${i % 3 ? 'USD' : 'JPY'}' AS currency, current_date - ${i * 7} AS day,
          ${1 + (i % 5)} AS purchases, ${49_900 * i} AS amount)`,
      ),
    );
  const { id: sale } = await make.purchase({ games: [game], email: `${LONG}@example.com` });
  await make.purchase({ games: [game], email: `${LONG}er@example.com`, source: LONG });
  const wide = await make.game({ owner: seller, title: LONG.repeat(2) });
  for (const currency of ['KWD', 'CLF', 'EUR', 'XAU'])
    await make.purchase({
      games: [wide],
      email: 'r@example.com',
      source: LONG,
      currency,
      amount: 99_999_999_999,
    });
  await make.downloadKey({ game, purchase_id: sale, user_id: seller.id });
  const { id: created } = await make.downloadKey({ game, key: `${LONG}-${game.id}`, label: LONG });
  await make.downloadKey({ game, revoked_at: '2026-01-01T00:00:00Z' });

  const bought = await make.game({
    owner: await make.user(),
    title: 'Tin Comet',
    traits: '{p_windows,p_osx}',
  });
  await make.downloadKey({ game: bought, user_id: seller.id });
  await make.upload({
    game: bought,
    filename: `${'long-name-'.repeat(20)}.zip`,
    traits: ['p_windows', 'demo'],
  });
  await make.upload({ game: bought, external_url: 'https://shop.example/comet' });

  const webhook = (path: string, ended_at: string | null) =>
    insert(
      `INSERT INTO webhooks (url, events, user_id, game_id, secret, last_at, last_outcome, ended_at)
       VALUES ('https://books.example/' || $2::text, '{purchase.completed}', $1, 0, '', now(), 'no address', $3)`,
      seller.id,
      path,
      ended_at,
    );
  const [failing, disabled] = [
    await webhook('long-path'.repeat(30), null),
    await webhook('gone', '2026-01-01T00:00:00Z'),
  ];
  await sql(
    `INSERT INTO webhook_attempts (webhook_id, message_id, event, subject_type, subject_id, data, happened_at, outcome, duration_ms, response)
     SELECT $1, 'msg_' || n, 'purchase.completed', 'purchase', $2, '{}', now(), (ARRAY['200', '503', 'timeout'])[n], n * 4000, repeat('Unavailable', n * 6)
     FROM generate_series(1, 3) n`,
    [failing, sale],
  );
  await sql(
    `INSERT INTO webhook_deliveries (id, webhook_id, event, purchase_id, data, due_at)
     VALUES (gen_random_uuid(), $1, 'purchase.completed', $2, '{}', now() + interval '1 day')`,
    [failing, sale],
  );

  // With a mailer, the pages have forms.
  await sql(
    `INSERT INTO webhooks (url, events, secret) VALUES ('https://mailer.example/', '{link.requested}', '')`,
  );
  await sql(
    `INSERT INTO user_emails (user_id, email, verified) VALUES ($1, $2 || '@example.com', true), ($1, 'new' || $2 || '@example.com', false)`,
    [seller.id, `${LONG}${seller.id}`],
  );
  const reader = await make.user();
  const links = await Promise.all(
    (['set_password', 'sign_in'] as const).map(async (purpose) => {
      const { url } = await theApp().get(LinksService).create({ user_id: reader.id, purpose }, {});
      return new URL(url).pathname;
    }),
  );
  const unclaimed = await make.downloadKey({ game: bought });
  const upload = await make.upload({ game, filename: `${'long-name-'.repeat(20)}.zip`, traits: ['p_linux'] });
  await make.build({ game, channel_name: LONG, user_version: LONG });
  await make.build({
    game,
    channel_name: 'windows',
    state: 'failed',
    error: 'the patch is damaged '.repeat(9),
  });
  const bundle = await make.bundle({ owner: seller, games: [game, bought], title: LONG });
  await make.purchase({
    games: [game, bought],
    user_id: seller.id,
    bundle_id: bundle.id,
    purchase_type: 'bundle',
  });

  const request = { response_type: 'token', client_id: app, scope: 'profile collection' };
  const authorize = new URLSearchParams({ ...request, redirect_uri: 'https://log.example/' }).toString();
  return {
    '/': ['/', '/user/nothing', '/files/x.y/game.zip'],
    '/developers': ['/developers'],
    '/docs': ['/docs'],
    '/docs/endpoints/:id': ['/docs/endpoints/purchasesPurchasesOf', '/docs/endpoints/nothing'],
    '/docs/operator': ['/docs/operator'],
    '/download/:key': [`/download/${unclaimed.key}`, '/download/unknown'],
    '/forgot-password': ['/forgot-password'],
    '/links/:token': [...links, '/links/unknown'],
    '/sign-up': ['/sign-up'],
    [`${SETTINGS}/account`]: [`${SETTINGS}/account`],
    [`${SETTINGS}/account/erase`]: [`${SETTINGS}/account/erase`],
    // Signed in, it redirects to the account.
    [`${SETTINGS}/account/erased`]: [`${SETTINGS}/account/erased`],
    '/user/games': ['/user/games', '/user/games?page=9', '/user/games?search=nothing&sort=title'],
    '/user/games/bundles/:bundle_id': [`/user/games/bundles/${bundle.id}`, '/user/games/bundles/4000000'],
    '/user/games/downloads/:upload_id': ['/user/games/downloads/4000000'],
    '/user/games/redeem': ['/user/games/redeem'],
    '/user/oauth': [
      `/user/oauth?${authorize}`,
      '/user/oauth?client_id=nobody',
      `/user/oauth?client_id=own-${app}`,
    ],
    '/user/oauth/device': [
      '/user/oauth/device',
      '/user/oauth/device?code=XXXX-XXXX',
      `/user/oauth/device?code=${user_code}`,
    ],
    '/user/oauth/result': ['/user/oauth/result'],
    [`${SETTINGS}/api-keys`]: [`${SETTINGS}/api-keys`],
    [`${SETTINGS}/api-keys/new`]: [`${SETTINGS}/api-keys/new`],
    [`${SETTINGS}/api-keys/:key_id`]: [`${SETTINGS}/api-keys/${key!.id}`],
    [`${SETTINGS}/api-keys/:key_id/revoke`]: [`${SETTINGS}/api-keys/${key!.id}/revoke`],
    [`${SETTINGS}/authorized-apps`]: [`${SETTINGS}/authorized-apps`],
    [`${SETTINGS}/authorized-apps/:grant_id/revoke`]: [`${SETTINGS}/authorized-apps/${grant}/revoke`],
    [`${SETTINGS}/collections`]: [`${SETTINGS}/collections`, `${SETTINGS}/collections?${AFTER_ALL}`],
    [`${SETTINGS}/collections/add`]: [`${SETTINGS}/collections/add?game_id=${game.id}`],
    [`${SETTINGS}/collections/new`]: [`${SETTINGS}/collections/new`],
    [`${SETTINGS}/collections/:collection_id`]: [`${collections}?find=tin`, `${collections}?page=9`],
    [`${SETTINGS}/collections/:collection_id/delete`]: [`${collections}/delete`],
    [`${SETTINGS}/data`]: [`${SETTINGS}/data`],
    [`${SETTINGS}/download-keys`]: [`${SETTINGS}/download-keys`],
    [GAMES]: [GAMES, `${GAMES}?${AFTER_ALL}`],
    [`${GAMES}/new`]: [`${GAMES}/new`],
    [`${GAMES}/:game_id`]: [`${GAMES}/${game.id}`],
    [`${GAMES}/:game_id/details`]: [`${GAMES}/${game.id}/details`],
    [`${GAMES}/:game_id/delete`]: [`${GAMES}/${game.id}/delete`],
    [`${GAMES}/:game_id/builds`]: [`${GAMES}/${game.id}/builds`],
    [`${GAMES}/:game_id/files`]: [`${GAMES}/${game.id}/files`],
    [`${GAMES}/:game_id/files/:upload_id`]: [`${GAMES}/${game.id}/files/${upload.id}`],
    [`${GAMES}/:game_id/files/:upload_id/delete`]: [`${GAMES}/${game.id}/files/${upload.id}/delete`],
    [`${GAMES}/:game_id/keys`]: [
      `${GAMES}/${game.id}/keys`,
      `${GAMES}/${game.id}/keys?from=${created}&to=${created}`,
      `${GAMES}/${game.id}/keys?state=unclaimed&show=links`,
      `${GAMES}/4000000/keys`,
    ],
    [`${GAMES}/:game_id/keys/revoke`]: [`${GAMES}/${game.id}/keys/revoke`],
    [`${GAMES}/:game_id/keys/:download_key_id/revoke`]: [`${GAMES}/${game.id}/keys/${created}/revoke`],
    [`${SETTINGS}/oauth-apps`]: [`${SETTINGS}/oauth-apps`],
    [`${SETTINGS}/oauth-apps/new`]: [`${SETTINGS}/oauth-apps/new`],
    [`${SETTINGS}/oauth-apps/:client_id`]: [`${SETTINGS}/oauth-apps/own-${app}`],
    [`${SETTINGS}/oauth-apps/:client_id/delete`]: [`${SETTINGS}/oauth-apps/own-${app}/delete`],
    [`${SETTINGS}/buyers`]: [
      `${SETTINGS}/buyers`,
      `${SETTINGS}/buyers?game=${game.id}`,
      `${SETTINGS}/buyers?page=9`,
    ],
    [SALES]: [
      SALES,
      `${SALES}?game=${game.id}`,
      `${SALES}?after=2013-01-01 00:00:00%2B00,1`,
      `${SALES}?status=refunded&source=nothing`,
      `${SALES}?range=custom&from=2026-02-30&to=2026-03-01`,
    ],
    [`${SALES}/figures`]: [
      `${SALES}/figures`,
      `${SALES}/figures?range=90d&by=day&currency=JPY`,
      `${SALES}/figures?range=5y&by=week&game=${game.id}`,
      `${SALES}/figures?range=30d&page=2`,
      `${SALES}/figures?range=custom&from=2026-02-30&to=2026-03-01`,
      `${SALES}/figures?range=custom&from=2020-02-01&to=2020-03-01`,
    ],
    [`${SALES}/search`]: [`${SALES}/search`],
    [`${SALES}/search/:encrypted`]: [`${SALES}/search/x`],
    [`${SALES}/:purchase_id`]: [`${SALES}/${sale}`],
    [`${SALES}/:purchase_id/buyer`]: [`${SALES}/${sale}/buyer`],
    [`${SALES}/:purchase_id/refund`]: [`${SALES}/${sale}/refund`],
    [`${SETTINGS}/webhooks`]: [`${SETTINGS}/webhooks`],
    [`${SETTINGS}/webhooks/new`]: [`${SETTINGS}/webhooks/new`],
    [`${SETTINGS}/webhooks/:webhook_id`]: [
      `${SETTINGS}/webhooks/${failing}`,
      `${SETTINGS}/webhooks/${disabled}`,
    ],
    [`${SETTINGS}/webhooks/:webhook_id/rotate`]: [`${SETTINGS}/webhooks/${failing}/rotate`],
    [`${SETTINGS}/webhooks/:webhook_id/delete`]: [`${SETTINGS}/webhooks/${failing}/delete`],
  };
}

/** Pages after a form was sent. */
async function states(page: Page): Promise<void> {
  const press = async (name: string, text: string | RegExp) => {
    await page.getByRole('button', { name, exact: true }).click();
    await page.getByText(text).first().waitFor();
    await check(page, `${name}: ${String(text)}`);
  };
  for (const term of ['long', 'nobody']) {
    await page.goto(SALES);
    await page.getByRole('searchbox').fill(term);
    await press('Search', term === 'long' ? 'Sales, newest first' : 'No sale of your games matches.');
  }
  await page.goto(`${SETTINGS}/api-keys/new`);
  await page.getByLabel(/^See who you are/).uncheck();
  await page.getByLabel('Name of the key').fill('Seen');
  await press('Create key', 'Select at least one permission.');
  await page.getByLabel('Everything that').check();
  await press('Create key', 'Copy it now');
  await page.goto(`${SETTINGS}/oauth-apps/new`);
  await page.getByLabel('Name').fill('Lantern');
  await page.getByLabel('Redirect URIs').fill('lantern');
  await press('Register', /lantern .*\./);
  await page.getByLabel('Redirect URIs').fill('https://lantern.example/');
  await press('Register', 'Lantern was registered.');
  await page.goto(`${SETTINGS}/webhooks/new`);
  await page.getByLabel('Endpoint URL').fill('https://10.0.0.1/');
  await press('Add webhook', 'is a private IP address');
  await page.goto(GAMES);
  await page.getByRole('link', { name: /^Download keys of A game/ }).click();
  await page.getByRole('textbox', { name: /^Label/ }).fill('Giveaway');
  await press('Create keys', '10 new keys');
  await page.goto('/user/games/redeem');
  await page.getByLabel('Download key').fill('unknown');
  await press('Redeem key', 'This key isn’t valid');
  await page.goto(`${SETTINGS}/data`);
  await page.getByLabel('Your password').fill('wrong');
  await press('Download my data', 'The password is wrong.');
  await page.goto('/docs#purchasesPurchasesOf');
  const operation = page.locator('#purchasesPurchasesOf');
  await operation.getByRole('region', { name: 'Code' }).waitFor();
  await operation.getByText('Errors:').click();
  // A wide page opens it when it loads.
  await page.evaluate(`document.querySelector('.menu').open = true`);
  await check(page, 'an open endpoint');
}

inChromium.describe('in Chromium', () => {
  let chromium: Browser;
  beforeAll(async () => {
    chromium = await openChromium();
  });
  afterAll(() => chromium?.close());

  test('every page is accessible', async () => {
    const seller = await withPassword(await make.user());
    const pages = await preparePages(seller);
    const routes = listRoutes(theApp().get(ModulesContainer))
      .filter(
        ({ method, page, path }) => method === 'GET' && page && !WITHOUT_PAGE.some((one) => one.test(path)),
      )
      .map(({ path }) => path);
    expect(routes.filter((path) => path !== '/login' && !Object.hasOwn(pages, path))).toEqual([]);

    const window = await Window.open(chromium, baseUrl(), { viewport: { width: 320, height: 800 } });
    const { page } = window;
    await page.goto('/developers');
    await check(page, '/developers signed out');
    await page.goto('/login');
    await check(page, '/login');
    await page.getByLabel('Username or email address').fill(seller.username);
    await page.getByLabel('Password').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await check(page, '/login with a wrong password');
    await window.signIn(seller.username, PASSWORD);
    for (const path of Object.values(pages).flat()) {
      await page.goto(path);
      // The endpoints are loaded after the page.
      if (path === '/docs') await page.locator('.endpoint').first().waitFor();
      await page.evaluate(OPEN_DETAILS);
      if (await page.locator('.column').count()) await page.locator('.column').last().focus();
      await check(page, path);
    }
    await states(page);

    const newcomer = await withPassword(await make.user());
    await page.context().clearCookies();
    await window.signIn(newcomer.username, PASSWORD);
    for (const path of ['/user/games', 'webhooks', 'oauth-apps', 'authorized-apps', 'collections']) {
      await page.goto(path.startsWith('/') ? path : `${SETTINGS}/${path}`);
      await check(page, `${path} without anything`);
    }
    expect(window.complaints).toEqual([]);
    await window.close();
  });
});
