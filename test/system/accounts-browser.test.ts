import { createHash, randomBytes } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { checkAccessibility } from '../support/accessibility';
import { PASSWORD, withPassword } from '../support/browser';
import { ClientApplication, inChromium, openChromium, Window } from '../support/chromium';
import { isRunnable, run } from '../support/page-examples';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor } from '../support/actor';
import { baseUrl, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { closeReceivers, Receiver, status } from '../support/webhook-receiver';

const OOB = 'urn:ietf:wg:oauth:2.0:oob';

inChromium.describe('in Chromium', () => {
  useStore({ RATE_LIMIT: 'off', OPERATOR_TOKEN });

  let browser: Browser;
  let client: ClientApplication;
  let user: Actor;

  beforeAll(async () => {
    browser = await openChromium();
    client = await ClientApplication.listen();
    user = await withPassword(await make.user({ username: 'skipper', display_name: 'Skipper' }));
    await make.collection({
      owner: user,
      title: 'Games about the sea',
      games: [await make.game({ owner: user })],
    });
  });
  afterAll(async () => {
    await browser?.close();
    await client?.close();
  });

  let serial = 0;
  async function application(
    redirect_uris = [client.callback],
    fields: { scopes?: string[] } = {},
  ): Promise<string> {
    const owner = await make.user({ username: `maker${++serial}` });
    const client_id = `browser-client-${serial}`;
    await sql(
      `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes, implicit_allowed)
       VALUES ($1, $2, $3, $4, $5, true)`,
      [
        client_id,
        owner.id,
        `Harbour Tycoon ${serial}`,
        redirect_uris,
        fields.scopes ?? ['profile', 'collection'],
      ],
    );
    return client_id;
  }

  const asked = (fields: Record<string, string>) => `/user/oauth?${new URLSearchParams(fields).toString()}`;

  async function post(path: string, fields: Record<string, string>) {
    const response = await fetch(baseUrl() + path, { method: 'POST', body: new URLSearchParams(fields) });
    return (await response.json()) as Record<string, string>;
  }

  /** A signed-in window; everything it reports fails the test. */
  async function within(
    work: (page: Page, window: Window) => Promise<void>,
    options: Parameters<typeof Window.open>[2] & { signedIn?: boolean } = {},
  ): Promise<void> {
    const { signedIn = true, ...more } = options;
    const window = await Window.open(browser, baseUrl(), { allowed: [client.origin], ...more });
    try {
      if (signedIn) await window.signIn(user.username, PASSWORD);
      await work(window.page, window);
      expect(window.complaints).toEqual([]);
    } finally {
      await window.close();
    }
  }

  test('creates a key, copies it, displays it once, and revokes it', () =>
    within(
      async (page) => {
        await page.getByRole('link', { name: 'Developers' }).click();
        await page.getByRole('link', { name: 'New key' }).click();
        await page.getByLabel('Name of the key').fill('Build server');
        // The second click of a double click doesn't create another key.
        expect(
          await page.evaluate(
            `document.querySelector('main form button:not([type])').dispatchEvent(
              new MouseEvent('click', { bubbles: true, cancelable: true, detail: 2 }))`,
          ),
        ).toBe(false);
        await page.getByRole('button', { name: 'Create key' }).click();
        const key = await page.getByLabel('Key', { exact: true }).inputValue();
        await page.getByRole('button', { name: 'Copy' }).first().click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
        expect(await page.evaluate('navigator.clipboard.readText()')).toBe(key);
        const response = await fetch(`${baseUrl()}/profile`, { headers: { authorization: `Bearer ${key}` } });
        expect(await response.json()).toMatchObject({ user: { username: 'skipper' } });
        await page.reload();
        for (const one of [key, user.key]) expect(await page.content()).not.toContain(one);
        await page.getByRole('link', { name: 'Revoke Build server' }).click();
        await page.getByRole('button', { name: 'Revoke key' }).click();
        await page.getByRole('status').getByText('“Build server” was revoked').waitFor();
        expect(
          (await fetch(`${baseUrl()}/profile`, { headers: { authorization: `Bearer ${key}` } })).status,
        ).toBe(401);
      },
      { permissions: ['clipboard-read', 'clipboard-write'] },
    ));

  test('creates a limited key that expires, renames it, and rejects it beyond its permissions', () =>
    within(async (page) => {
      await page.getByRole('link', { name: 'Developers' }).click();
      await page.getByRole('link', { name: 'New key' }).click();
      const box = page.getByLabel('game:view:purchases');
      const day = page.getByLabel('Last day (UTC)');
      await page.waitForURL('**/new');
      expect([await box.isVisible(), await day.isVisible()]).toEqual([true, false]);
      await page.getByLabel('Name of the key').fill('Looks only');
      await page.getByLabel(/^See who you are/).uncheck();
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByRole('alert').getByText('Select at least one permission').waitFor();
      await box.check();
      // Permissions are only visible while they apply.
      await page.getByLabel('Everything that you can do with the API').check();
      expect(await box.isVisible()).toBe(false);
      await page.getByLabel('Only the selected permissions').check();
      await page.getByLabel('Expires').selectOption('On a date');
      await day.fill(new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 10));
      await page.getByRole('button', { name: 'Create key' }).click();
      const key = await page.getByLabel('Key', { exact: true }).inputValue();
      await page.getByText('in 4 days').waitFor();
      const response = await fetch(`${baseUrl()}/profile`, { headers: { authorization: `Bearer ${key}` } });
      expect(response.status).toBe(403);
      await page.getByRole('link', { name: 'Looks only', exact: true }).click();
      await page.getByLabel('Name of the key').fill('Accountant');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('status').getByText('The key was renamed to “Accountant”.').waitFor();
    }));

  test('finds an endpoint in the reference, runs its code with the reader’s key, and sends a request', () =>
    within(async (page) => {
      await page.goto('/docs');
      expect(await page.locator('details[open] pre').count()).toBe(0);
      await page.getByRole('button', { name: 'Create a one-day key' }).click();
      const key = await page.getByLabel('API key or JWT').inputValue();
      expect(key).toMatch(/^gw_/);
      expect(await sql('SELECT scopes FROM api_keys WHERE label = $1', ['API reference'])).toEqual([
        { scopes: ['profile:me'] },
      ]);
      // Other requests need the reader's own key.
      await page.getByLabel('API key or JWT').fill(user.key!);
      await page.getByLabel('Find an endpoint').fill('create collection');
      await page.getByText(/^1 of \d\d$/).waitFor();
      await page.keyboard.press('Enter');
      const create = page.locator('#collectionsCreate');
      await create.getByLabel('title').fill('It’s "found" $HOME');
      const code = create.getByRole('region', { name: 'Code' });
      for (const [name, language] of [
        ['curl', 'sh'],
        ['JavaScript', 'js'],
        ['Python', 'python'],
        ['Go', 'go'],
        ['C#', undefined],
      ] as const) {
        await create.getByLabel('Language').selectOption(name);
        const text = await code.innerText();
        expect(text).toContain(user.key);
        if (language && isRunnable(language))
          expect((await run({ language, code: text }, {})).stdout).toMatch(/It’s .*found.* \$HOME/);
      }
      await create.getByRole('button', { name: 'Send request' }).click();
      await create.getByRole('region', { name: 'Your response' }).getByText('"collection"').waitFor();
      await page.getByLabel('Find an endpoint').fill('');
      // The chosen language applies to all endpoints, and required parameters contain examples.
      await page.locator('#purchasesPurchasesOf > summary').click();
      const purchases = page.locator('#purchasesPurchasesOf').getByRole('region', { name: 'Code' });
      expect(await purchases.innerText()).toMatch(/GetAsync\(".*\/games\/\d+\/purchases\?email=/);
      // Only what the reader fills in of a choice counts.
      const [lookup, latest] = [page.locator('#purchasesPurchasesOf'), page.locator('#wharfLatest')];
      await lookup.getByLabel('user_id').fill('7');
      expect(await purchases.innerText()).toMatch(/GetAsync\(".*\/purchases\?user_id=7"\)/);
      await lookup.getByLabel('user_id').fill('');
      expect(await purchases.innerText()).toContain('/purchases?email=');
      await latest.locator('> summary').click();
      await latest.getByLabel('target').fill('ash-beetle/brave-arcade');
      const query = latest.getByRole('region', { name: 'Code' });
      expect(await query.innerText()).toContain('target=ash-beetle%2Fbrave-arcade');
      expect(await query.innerText()).not.toContain('game_id=');
      await page.reload();
      expect(await page.getByLabel('API key or JWT').inputValue()).toBe('');
      expect(await page.content()).not.toContain(key);
    }));

  test('keyboard only: adds a webhook, tests it, resends a message, rotates its secret, and deletes it', async () => {
    const receiver = await Receiver.open(status(500, {}, 'not yet'));
    await within(async (page, window) => {
      const { keyboard } = page;
      await page.goto('/user/settings/sales');
      await window.tabTo(/^Webhooks$/);
      await keyboard.press('Enter');
      await page.getByText('You don’t have any webhooks yet.').waitFor();
      await window.tabTo(/^Add webhook$/);
      await keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Add a webhook' }).waitFor();
      await window.tabTo(/^Endpoint URL$/);
      await keyboard.type(receiver.url);
      await keyboard.press('Enter');
      receiver.secret = await page.getByLabel('Secret', { exact: true }).inputValue();
      await window.tabTo(/^Send test$/);
      await keyboard.press('Enter');
      await page.getByRole('alert').getByText('Your receiver responded with 500').waitFor();
      expect((await receiver.received(1))[0]).toMatchObject({ genuine: true, type: 'webhook.test' });
      const [{ id: webhook_id }] = (await sql<{ id: number }>('SELECT max(id) AS id FROM webhooks')) as [
        { id: number },
      ];
      const game = await make.game({ owner: user });
      const purchase = await make.purchase({ games: [game], email: 'buyer@example.com' });
      await sql(
        `INSERT INTO webhook_deliveries (id, webhook_id, event, purchase_id, data)
         VALUES (gen_random_uuid(), $1, 'purchase.completed', $2, $3)`,
        [webhook_id, purchase.id, JSON.stringify({ id: 1, game_ids: [game.id] })],
      );
      await receiver.received(2);
      await until(async () => (await sql('SELECT FROM webhook_attempts')).length === 2);
      receiver.response = status(200);
      await page.reload();
      await window.tabTo(/^Send again/);
      await keyboard.press('Enter');
      await page.getByRole('status').getByText('Your receiver responded with 200').waitFor();
      await window.tabTo(/^Rotate secret$/);
      await keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Replace the signing secret?' }).waitFor();
      await window.tabTo(/^Rotate secret$/);
      await keyboard.press('Enter');
      expect(await page.getByLabel('Secret', { exact: true }).inputValue()).not.toBe(receiver.secret);
      await window.tabTo(/^Delete$/);
      await keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Delete this webhook?' }).waitFor();
      await window.tabTo(/^Delete webhook$/);
      await keyboard.press('Enter');
      await page.getByRole('status').getByText('The webhook was deleted.').waitFor();
    });
    closeReceivers();
  });

  test('registers an app, changes it and deletes it', () =>
    within(async (page) => {
      await page.getByRole('link', { name: 'Developers' }).click();
      await page.getByRole('link', { name: 'Your apps', exact: true }).click();
      await page.getByRole('link', { name: 'Register an app' }).click();
      await page.getByLabel('Name', { exact: true }).fill('Lighthouse');
      await page.getByLabel('Redirect URIs').fill('ftp://nowhere');
      await page.getByRole('button', { name: 'Register' }).click();
      await page.getByRole('alert').getByText('must begin with https://').waitFor();
      await page.getByLabel('Redirect URIs').fill(client.callback);
      await page.getByRole('button', { name: 'Register' }).click();
      await page.getByRole('status').getByText('Lighthouse was registered.').waitFor();
      expect(await page.getByLabel('Redirect URIs').inputValue()).toBe(client.callback);
      expect(await page.getByLabel('Client ID').inputValue()).toMatch(/^[0-9a-f]{32}$/);
      await page.getByLabel('Allow tokens in the redirect URI').check();
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('status').getByText('Your changes were saved.').waitFor();
      expect(await page.getByLabel('Allow tokens in the redirect URI').isChecked()).toBe(true);
      await page.getByRole('link', { name: 'Delete this app' }).click();
      await page.getByRole('button', { name: 'Delete the app' }).click();
      await page.getByText('You haven’t registered any apps yet.').waitFor();
    }));

  test('shows a collection on the profile and hides it again', () =>
    within(async (page) => {
      await page.locator('.account > summary').click();
      await page.getByRole('link', { name: 'Collections' }).click();
      await page.getByRole('button', { name: 'Show on profile Games about the sea' }).click();
      await page.getByRole('status').getByText('is now on your profile').waitFor();
      await page.getByRole('button', { name: 'Hide from profile Games about the sea' }).click();
      await page.getByRole('status').getByText('is no longer on your profile').waitFor();
    }));

  test('response_type=token: signs in, asks for consent, returns the token, stores the consent, revokes it', () =>
    within(
      async (page) => {
        const client_id = await application();
        const address = asked({
          response_type: 'token',
          client_id,
          scope: 'profile:me collection:view',
          redirect_uri: client.callback,
          state: 'of the game',
        });
        await page.goto(address);
        await page.getByLabel('Username or email address').fill('skipper');
        await page.getByLabel('Password').fill(PASSWORD);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByText('See your collections and what is in them').waitFor();
        await page.getByRole('button', { name: 'Allow' }).click();
        await page.getByText('Welcome to the game').waitFor();
        const given = new URLSearchParams(new URL(page.url()).hash.slice(1));
        expect(given.get('state')).toBe('of the game');
        const token = given.get('access_token')!;
        const ask = () => fetch(`${baseUrl()}/profile`, { headers: { authorization: `Bearer ${token}` } });
        expect((await ask()).status).toBe(200);

        await page.goto(address);
        await page.getByText('Welcome to the game').waitFor();

        await page.goto('/user/settings/authorized-apps');
        await page.getByRole('link', { name: /^Revoke Harbour Tycoon/ }).click();
        await page.getByRole('button', { name: 'Revoke access' }).click();
        await page.getByRole('status').getByText('can no longer act on your behalf').waitFor();
        expect((await ask()).status).toBe(401);
      },
      { signedIn: false },
    ));

  test('signs in and continues to an app with consent: the browser allows the redirect', () =>
    within(
      async (page, window) => {
        const client_id = await application();
        const address = asked({
          response_type: 'token',
          client_id,
          scope: 'profile:me',
          redirect_uri: client.callback,
        });
        await window.signIn('skipper', PASSWORD);
        await page.goto(address);
        await page.getByRole('button', { name: 'Allow' }).click();
        await page.getByText('Welcome to the game').waitFor();
        await window.context.clearCookies();
        await page.goto(address);
        await page.getByLabel('Username or email address').fill('skipper');
        await page.getByLabel('Password').fill(PASSWORD);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByText('Welcome to the game').waitFor();
      },
      { signedIn: false },
    ));

  test('response_type=code with PKCE: rejected, then allowed, exchanged and refreshed', () =>
    within(async (page) => {
      const client_id = await application();
      const code_verifier = randomBytes(32).toString('base64url');
      const address = asked({
        response_type: 'code',
        client_id,
        scope: 'profile:me',
        redirect_uri: client.callback,
        state: 'xyz',
        code_challenge: createHash('sha256').update(code_verifier).digest('base64url'),
        code_challenge_method: 'S256',
      });
      await page.goto(address);
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByText('Welcome to the game').waitFor();
      expect(client.received.at(-1)!.searchParams.get('error')).toBe('access_denied');

      await page.goto(address);
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.getByText('Welcome to the game').waitFor();
      const { searchParams } = client.received.at(-1)!;
      expect(searchParams.get('state')).toBe('xyz');
      const tokens = await post('/oauth/token', {
        grant_type: 'authorization_code',
        client_id,
        code: searchParams.get('code')!,
        code_verifier,
        redirect_uri: client.callback,
      });
      const next = await post('/oauth/token', {
        grant_type: 'refresh_token',
        client_id,
        refresh_token: tokens.refresh_token!,
      });
      const response = await fetch(`${baseUrl()}/profile`, {
        headers: { authorization: `Bearer ${next.access_token}` },
      });
      expect(response.status).toBe(200);
    }));

  test('redirects to an app on this machine over IPv6', () =>
    within(
      async (page) => {
        const client_id = await application(['http://[::1]/callback']);
        await page.goto(
          asked({
            response_type: 'token',
            client_id,
            scope: 'profile:me',
            redirect_uri: 'http://[::1]:9/callback',
          }),
        );
        // Nothing listens there: the browser only has to try.
        const tried = page.waitForRequest((request) => request.url().startsWith('http://[::1]:9/callback'));
        await page.getByRole('button', { name: 'Allow' }).click();
        await tried;
      },
      { allowed: [client.origin, 'http://[::1]:9/', 'chrome-error:'] },
    ).catch((error: Error) => {
      if (!/ERR_(CONNECTION_REFUSED|ADDRESS_UNREACHABLE|UNSAFE_PORT)/.test(error.message)) throw error;
    }));

  test('out of band: displays the token to be copied', () =>
    within(async (page) => {
      const client_id = await application([OOB]);
      await page.goto(asked({ response_type: 'token', client_id, scope: 'profile:me', redirect_uri: OOB }));
      await page.getByRole('button', { name: 'Allow' }).click();
      const token = await page.getByLabel('Access token').inputValue();
      const response = await fetch(`${baseUrl()}/profile`, { headers: { authorization: `Bearer ${token}` } });
      expect(response.status).toBe(200);
    }));

  test('device grant: enters and confirms the code, and the device continues', () =>
    within(async (page) => {
      const client_id = await application();
      const { device_code, user_code } = await post('/oauth/device', { client_id, scope: 'profile:me' });
      await page.goto('/user/oauth/device');
      await page.getByLabel('Code shown on your device').fill(user_code!.toLowerCase());
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByText(user_code!, { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.getByRole('heading', { name: 'Device connected' }).waitFor();
      const tokens = await post('/oauth/token', {
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
        client_id,
        device_code: device_code!,
      });
      expect(tokens.access_token).toMatch(/^gw_/);
    }));

  test('keyboard only: from the start page to a key and its revocation', () =>
    within(
      async (page, window) => {
        const tabTo = (name: RegExp) => window.tabTo(name);
        await page.goto('/developers');
        await page.keyboard.press('Tab');
        expect(await window.focused()).toBe('Skip to content');
        await page.keyboard.press('Enter');
        await tabTo(/^Create your own API key$/);
        await page.keyboard.press('Enter');
        await page.locator('#username:focus').waitFor();
        await page.keyboard.type('skipper');
        await page.keyboard.press('Tab');
        await page.keyboard.type(PASSWORD);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Create an API key' }).waitFor();
        await tabTo(/^Name of the key$/);
        await page.keyboard.type('By keyboard');
        await page.keyboard.press('Enter');
        await page.getByText('Copy it now').waitFor();
        await tabTo(/^Revoke By keyboard$/);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Revoke this key?' }).waitFor();
        await tabTo(/^Revoke key$/);
        await page.keyboard.press('Space');
        await page.getByText('was revoked').waitFor();
        await page.reload();
        await tabTo(/^skipper$/i);
        await page.keyboard.press('Enter');
        await tabTo(/^Sign out$/);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      },
      { signedIn: false },
    ));

  test('keyboard only: creates a limited key and renames it', () =>
    within(async (page, window) => {
      const { keyboard } = page;
      await window.tabTo(/^New key$/);
      await keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Create an API key' }).waitFor();
      await window.tabTo(/^Name of the key$/);
      await keyboard.type('Narrow');
      await keyboard.press('Tab');
      expect(await window.focused()).toBe('Only the selected permissions');
      await window.tabTo(/^See who you are/);
      await keyboard.press('Space');
      await window.tabTo(/^See who bought your games/);
      await keyboard.press('Space');
      await window.tabTo(/^Expires/);
      await keyboard.type('On a date');
      await keyboard.press('Tab');
      expect(await window.focused()).toBe('Last day (UTC)');
      const end = new Date(Date.now() + 3 * 86_400_000).toISOString();
      await keyboard.type(`${end.slice(5, 7)}${end.slice(8, 10)}${end.slice(0, 4)}`);
      await window.tabTo(/^Create key$/);
      await keyboard.press('Enter');
      await page.getByText('Copy it now').waitFor();
      const key = await page.getByLabel('Key', { exact: true }).inputValue();
      const response = await fetch(`${baseUrl()}/credentials/info`, {
        headers: { authorization: `Bearer ${key}` },
      });
      expect(await response.json()).toMatchObject({ scopes: ['game:view:purchases'] });
      await page.getByRole('row', { name: /^Narrow .* In 4 days/ }).waitFor();
      await window.tabTo(/^Narrow$/);
      await keyboard.press('Enter');
      await page.getByRole('button', { name: 'Save' }).waitFor();
      await window.tabTo(/^Name of the key$/);
      await keyboard.press('Control+a');
      await keyboard.type('Renamed by keyboard');
      await keyboard.press('Enter');
      await page.getByRole('status').getByText('The key was renamed to “Renamed by keyboard”.').waitFor();
    }));

  test('keyboard only: searches, unfolds and scrolls the reference, and copies its code', () =>
    within(
      async (page, window) => {
        const { keyboard } = page;
        await page.goto('/docs');
        await window.tabTo(/^Find an endpoint$/);
        await keyboard.type('list buyer games/');
        await page.getByText(/^1 of \d\d$/).waitFor();
        await keyboard.press('Enter');
        await page.locator('#purchasesPurchasesOf[open]').waitFor();
        // The focus has moved, so Enter folds and unfolds the endpoint.
        await keyboard.press('Enter');
        expect(await page.locator('#purchasesPurchasesOf[open]').count()).toBe(0);
        await keyboard.press('Enter');
        await keyboard.press('Tab');
        const table = await page.evaluate(`document.activeElement.getAttribute('aria-label')`);
        expect(table).toBe('Parameters: GET /games/{game_id}/purchases');
        await keyboard.press('ArrowRight');
        await until(async () => Number(await page.evaluate('document.activeElement.scrollLeft')) > 0);
        await window.tabTo(/^Copy code$/);
        await keyboard.press('Enter');
        await page.getByRole('button', { name: 'Copied' }).waitFor();
        expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/^curl .*\/purchases\?email=/);
      },
      {
        signedIn: false,
        viewport: { width: 390, height: 800 },
        permissions: ['clipboard-read', 'clipboard-write'],
      },
    ));

  test('operator reference: shows the endpoints with an operator token and sends their requests', () =>
    within(
      async (page) => {
        await page.goto('/docs/operator#operationsReadMetrics');
        const token = page.getByLabel('Operator token');
        await token.fill('wrong');
        await page.getByRole('button', { name: 'Show the endpoints' }).click();
        await page.getByRole('status').getByText('Enter a valid operator token.').waitFor();
        expect(await page.locator('.endpoint').count()).toBe(0);
        await token.fill(OPERATOR_TOKEN);
        await token.press('Enter');
        const metrics = page.locator('#operationsReadMetrics');
        await metrics.getByRole('button', { name: 'Send request' }).click();
        await metrics.getByRole('region', { name: 'Your response' }).getByText('# HELP').waitFor();
        expect(page.url()).not.toContain(OPERATOR_TOKEN);
        await checkAccessibility(page);
      },
      { signedIn: false },
    ));

  test('creates a key without JavaScript', () =>
    within(
      async (page) => {
        await page.goto('/user/settings/api-keys/new');
        await page.getByLabel('Name of the key').fill('No script');
        await page.getByRole('button', { name: 'Create key' }).click();
        expect(await page.getByLabel('Key', { exact: true }).inputValue()).toMatch(/^gw_/);
        expect(await page.getByRole('button', { name: 'Copy' }).count()).toBe(0);
      },
      { javaScriptEnabled: false },
    ));
});
