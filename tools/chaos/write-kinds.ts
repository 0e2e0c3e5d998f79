import { Browser } from '../../test/support/browser';
import { ask } from './ask';
import { type IsKept, Refused, type WriteKind } from './ledger';
import type { Service } from './service';
import { APPLICATION, GAME, KEYS, PASSWORD, SIGNED_IN } from './store';

const PATIENCE = 10_000;
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const KEYS_PAGE = '/user/settings/api-keys';

/** Every way in which a request writes, once. */
export function writeKinds(service: Service, operatorToken: string): WriteKind[] {
  const post = async <Body>(path: string, form: Record<string, string>, key?: string): Promise<Body> => {
    const { status, body } = await ask(`${service.url}${path}`, {
      method: 'POST',
      form,
      key,
      timeout: PATIENCE,
    });
    if (status !== 200) throw new Refused(status, body);
    return JSON.parse(body) as Body;
  };
  const answers =
    (path: string, key: string, expected = 200): IsKept =>
    async () =>
      (await ask(`${service.url}${path}`, { key })).status === expected;
  const browsers = new Map<string, Promise<Browser>>();
  const signIn = async (username: string): Promise<Browser> => {
    const browser = new Browser({}, () => service.url);
    await expect(browser.get('/login'), 200);
    await expect(browser.submit('/login', { username, password: PASSWORD }), 303);
    return browser;
  };
  /** Signed in once. */
  const browserOf = (username: string): Promise<Browser> => {
    const browser = browsers.get(username) ?? signIn(username);
    browsers.set(username, browser);
    browser.catch(() => browsers.delete(username));
    return browser;
  };
  const askDevice = () =>
    post<{ device_code: string; user_code: string }>('/oauth/device', {
      client_id: APPLICATION,
      scope: 'profile:me',
    });

  return [
    {
      name: 'collection',
      writers: 4,
      async write(n) {
        const key = KEYS[n % KEYS.length]!;
        const { collection } = await post<{ collection: { id: number } }>(
          '/collections',
          { title: `The ${n}th` },
          key,
        );
        return answers(`/collections/${collection.id}`, key);
      },
    },
    {
      name: 'entry',
      writers: 4,
      async write(n) {
        const key = KEYS[n % KEYS.length]!;
        const { collection } = await post<{ collection: { id: number } }>('/collections', {}, key);
        const path = `/collections/${collection.id}`;
        await post(`${path}/add-game`, { game_id: String(GAME) }, key);
        await post(`${path}/order`, { game_ids: `[${GAME}]` }, key);
        return async () =>
          (await ask(`${service.url}${path}/collection-games`, { key })).body.includes(`"game_id":${GAME},`);
      },
    },
    {
      name: 'device code',
      writers: 8,
      async write() {
        const { device_code } = await askDevice();
        return async () => {
          const form = { client_id: APPLICATION, device_code };
          return (await ask(`${service.url}/oauth/device/poll`, { method: 'POST', form })).status === 200;
        };
      },
    },
    {
      name: 'token',
      async write() {
        const browser = await browserOf(SIGNED_IN[0]!);
        const { device_code, user_code } = await askDevice();
        await expect(browser.get(`/user/oauth/device?code=${user_code}`), 200);
        await expect(browser.submit('/user/oauth/device', { decision: 'allow' }), 200);
        const { access_token } = await post<{ access_token: string }>('/oauth/token', {
          client_id: APPLICATION,
          grant_type: DEVICE_GRANT,
          device_code,
        });
        return answers('/profile', access_token);
      },
    },
    {
      name: 'sign-in',
      async write() {
        const browser = await signIn(SIGNED_IN[1]!);
        return async () => (await browser.get(KEYS_PAGE)).status === 200;
      },
    },
    {
      name: 'key made and revoked',
      async write() {
        const browser = await browserOf(SIGNED_IN[2]!);
        await expect(browser.get(KEYS_PAGE), 200);
        await expect(browser.submit(KEYS_PAGE, { label: 'chaos' }), 303);
        const { text } = await expect(browser.get(KEYS_PAGE), 200);
        const key = /gw_[0-9A-Za-z]{38}/.exec(text)?.[0];
        if (!key) throw new Refused(200, 'the new key is not shown');
        const id = Math.max(...[...text.matchAll(/api-keys\/(\d+)\/revoke/g)].map(([, one]) => Number(one)));
        await expect(browser.get(`${KEYS_PAGE}/${id}/revoke`), 200);
        await expect(browser.submit(`${KEYS_PAGE}/${id}/revoke`), 303);
        return answers('/profile', key, 401);
      },
    },
    {
      name: 'import',
      async write(n) {
        const key = `imported-${String(n).padStart(36, '0')}`;
        const id = 10_000 + n;
        const records = [
          { type: 'user', id, username: `imported${n}`, emails: [] },
          { type: 'api_key', key, user_id: id },
        ];
        const { status, body } = await ask(`${service.url}/operator/import`, {
          method: 'POST',
          headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/x-ndjson' },
          body: records.map((record) => JSON.stringify(record)).join('\n'),
          timeout: PATIENCE,
        });
        if (status !== 200) throw new Refused(status, body);
        return answers('/profile', key);
      },
    },
  ];
}

async function expect<Page extends { status: number; text: string }>(
  page: Promise<Page>,
  status: number,
): Promise<Page> {
  const shown = await page;
  if (shown.status !== status) throw new Refused(shown.status, wordsOf(shown.text));
  return shown;
}

const wordsOf = (page: string) =>
  (/<main[^>]*>(.*)<\/main>/s.exec(page)?.[1] ?? page).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
