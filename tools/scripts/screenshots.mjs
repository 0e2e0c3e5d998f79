// Takes the screenshots of docs/screenshots from a new demo store:
// `node tools/scripts/screenshots.mjs PASSWORD [URL [KEY_PAGE [MOCK_URL]]]`, with the password that `npm start` printed and
// that was also set for azure-bison, the URL of a key's page that `gamewharf sell` printed, and the URL of a mock.
// A height ends between two rows, so that no text is cut.
import { createHash } from 'node:crypto';
import process from 'node:process';
import { chromium } from 'playwright-core';

const [password, url = 'http://127.0.0.1:3000', keyPage, mockUrl] = process.argv.slice(2);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});
const page = await browser.newPage({
  baseURL: url,
  viewport: { width: 1280, height: 860 },
  colorScheme: 'light',
});

async function take(name, path, height = 860) {
  await page.setViewportSize({ width: 1280, height });
  await page.goto(path);
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: `docs/screenshots/${name}-light.png` });
}

async function signIn(username) {
  await page.context().clearCookies();
  await page.goto('/login');
  await page.getByLabel('Username or email address').fill(username);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL((target) => !target.pathname.startsWith('/login'));
}

async function createKeys() {
  await page.goto('/user/settings/games/1/keys');
  await page.getByLabel('Number of keys').fill('3');
  await page.locator('input[name=label]').fill('Press kit');
  await page.getByRole('button', { name: 'Create keys' }).click();
  await page.waitForLoadState('networkidle');
}

async function addWebhook() {
  await page.goto('/user/settings/webhooks/new');
  await page.locator('input[name=url]').fill('https://studio.example.com/gamewharf');
  await page.getByRole('button', { name: 'Add webhook' }).click();
  await page.waitForLoadState('networkidle');
}

try {
  if (keyPage) await take('download', keyPage, 730);
  await signIn('ash-beetle');
  await createKeys();
  await addWebhook();
  await take('sales', '/user/settings/sales', 842);
  await take('games', '/user/settings/games', 800);
  await take('keys', '/user/settings/games/1/keys', 820);
  await take('webhooks', '/user/settings/webhooks', 460);
  await take('reference', '/docs', 648);

  // Signs in as a player, whose password was set with `gamewharf users set-password`.
  await signIn('azure-bison');
  const code_challenge = createHash('sha256').update('screenshot').digest('base64url');
  const challenge = { response_type: 'code', code_challenge, code_challenge_method: 'S256' };
  const app = { client_id: 'demo-companion', redirect_uri: 'http://127.0.0.1:8080/callback' };
  await take(
    'consent',
    `/user/oauth?${new URLSearchParams({ ...app, ...challenge, scope: 'profile:me collection:view' })}`,
    700,
  );
  if (mockUrl) await take('mock', `${mockUrl}/mock`, 460);
} finally {
  await browser.close();
}
