import type { AddressInfo } from 'node:net';
import { interceptTraffic } from '../../src/dev/mock/mock-app';
import { MOCK_API_KEY } from '../../src/dev/mock/mock-seed';
import { MockModule } from '../../src/dev/mock/mock.module';
import { ResetService } from '../../src/dev/mock/reset.service';
import { checkAccessibility } from '../support/accessibility';
import { openApp, useStore } from '../support/app';
import { inChromium, openChromium, Window } from '../support/chromium';

useStore();

inChromium.describe('the page of the mock', () => {
  test('shows requests as they arrive, newest first, filters them, and lets the next one fail', async () => {
    const app = await openApp({}, { imports: [MockModule], before: interceptTraffic });
    await app.get(ResetService).start('');
    const url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
    const get = async (path: string) => {
      const { status } = await fetch(url + path, { headers: { authorization: `Bearer ${MOCK_API_KEY}` } });
      return status;
    };
    const chromium = await openChromium();
    const window = await Window.open(chromium, url);
    const { page } = window;
    const state = page.getByRole('status');
    try {
      await page.goto('/mock');
      await state.getByText('No requests yet.').waitFor();
      // Without an icon, browsers request /favicon.ico, which would be recorded.
      expect(await page.locator('link[rel=icon]').count()).toBe(1);

      await get('/profile');
      await get('/users/1?a=1');
      await state.getByText('2 of 2 requests').waitFor();
      expect(await page.locator('tbody td.url').allInnerTexts()).toEqual(['/users/1?a=1', '/profile']);
      await page.getByLabel('Filter').fill('PROFILE');
      await state.getByText('1 of 2 requests').waitFor();
      expect(await page.locator('tbody td.url').allInnerTexts()).toEqual(['/profile']);
      await checkAccessibility(page, '/mock', false);

      await page.getByRole('button', { name: 'Fail with 503: the next GET /profile' }).click();
      await state.getByText('The next GET /profile fails with 503.').waitFor();
      expect([await get('/users/1'), await get('/profile'), await get('/profile')]).toEqual([200, 503, 200]);
      await state.getByText('3 of 5 requests').waitFor();
      expect(await page.locator('tbody td.status').allInnerTexts()).toEqual(['200', '503 (fault 1)', '200']);

      await fetch(`${url}/mock/reset`, { method: 'POST' });
      await state.getByText('No requests yet.').waitFor();
      expect(window.complaints).toEqual([]);
    } finally {
      await chromium.close();
    }
  });
});
