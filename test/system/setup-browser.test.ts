import { SetupService } from '../../src/auth/sign-in/setup.service';
import { checkAccessibility } from '../support/accessibility';
import { PASSWORD } from '../support/browser';
import { inChromium, openChromium, Window } from '../support/chromium';
import { baseUrl, theApp, useStore } from '../support/app';

useStore({
  DEMO_DATA: 'false',
  OIDC_ISSUER: 'http://127.0.0.1:9',
  OIDC_CLIENT_ID: 'gamewharf',
  OIDC_CLIENT_SECRET: 'secret',
  OIDC_NAME: 'Keyring',
});

inChromium.describe('a first start', () => {
  test('creates the first account, and the pages are accessible in both color schemes', async () => {
    const chromium = await openChromium();
    const window = await Window.open(chromium, baseUrl(), { viewport: { width: 390, height: 844 } });
    const { page } = window;
    const check = async (name: string) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await checkAccessibility(page, `${name} ${colorScheme}`, false);
      }
    };
    try {
      await page.goto('/setup');
      await check('/setup');
      await page.getByLabel('Setup code').fill('AAAA-AAAA-AAAA');
      await page.getByLabel('Username').fill('captain');
      await page.getByLabel('Email address').fill('captain@example.com');
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Create account' }).click();
      // The keyboard is at the field to correct, and the title says that something is wrong.
      await page.getByText('The setup code is incorrect.').waitFor();
      await page.locator('#code:focus').waitFor();
      expect(await page.title()).toMatch(/^Error: Set up the store/);
      await check('/setup with a problem');
      await page.getByLabel('Setup code').fill(await theApp().get(SetupService).code());
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Create account' }).click();
      await page.getByRole('heading', { name: 'Games' }).waitFor();

      await page.goto('/user/settings/identities');
      await check('/user/settings/identities');
      const menu = page.locator('details.account');
      const summary = menu.locator('summary');
      const before = await summary.boundingBox();
      await summary.click();
      expect(await summary.boundingBox()).toEqual(before);
      await page.keyboard.press('Escape');
      expect(await menu.getAttribute('open')).toBeNull();
      await summary.click();
      await page.mouse.click(5, 800);
      expect(await menu.getAttribute('open')).toBeNull();
      await page.goto('/logout');
      await check('/logout');
      await page.context().clearCookies();
      await page.goto('/login');
      await page.getByRole('link', { name: 'Sign in with Keyring' }).waitFor();
      await check('/login with a provider');
    } finally {
      await chromium.close();
    }
  });
});
