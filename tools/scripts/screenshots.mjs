// Takes the screenshots of docs/screenshots from a demo store: `node tools/scripts/screenshots.mjs PASSWORD [URL]`, with the password
// that `npm start` printed.
import { createHash } from 'node:crypto';
import process from 'node:process';
import { chromium } from 'playwright-core';

const [password, url = 'http://127.0.0.1:3000'] = process.argv.slice(2);

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

try {
  await page.goto('/login');
  await page.getByLabel('Username or email address').fill('ash-beetle');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL('**/user/settings/games');

  await take('sales', '/user/settings/sales');
  await take('buyers', '/user/settings/games/1/buyers', 640);
  await take('reference', '/docs', 720);

  const code_challenge = createHash('sha256').update('screenshot').digest('base64url');
  const challenge = { response_type: 'code', code_challenge, code_challenge_method: 'S256' };
  const app = { client_id: 'demo-companion', redirect_uri: 'http://127.0.0.1:8080/callback' };
  await take(
    'consent',
    `/user/oauth?${new URLSearchParams({ ...app, ...challenge, scope: 'profile:me collection:view' })}`,
    640,
  );
} finally {
  await browser.close();
}
