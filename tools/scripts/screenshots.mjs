// Takes the screenshots of docs/screenshots from a demo store: `node tools/scripts/screenshots.mjs PASSWORD [URL [KEY_PAGE]]`, with the
// password that `npm start` printed, which azure-bison has too, and the URL of a key's page that `gamewharf sell` printed.
import { createHash } from 'node:crypto';
import process from 'node:process';
import { chromium } from 'playwright-core';

const [password, url = 'http://127.0.0.1:3000', keyPage] = process.argv.slice(2);

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

try {
  await signIn('ash-beetle');
  await take('sales', '/user/settings/sales', 880);
  await take('games', '/user/settings/games', 800);
  await take('keys', '/user/settings/games/1/keys', 800);
  await take('webhooks', '/user/settings/webhooks', 640);
  await take('reference', '/docs', 720);
  if (keyPage) await take('download', keyPage, 700);

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
} finally {
  await browser.close();
}
