import type { Browser, Page } from 'playwright-core';
import { sanitizeHtml } from '../../src/collections/html';
import { inChromium, openChromium } from '../support/chromium';
import { ATTACKS } from '../support/html-attacks';

// Renders markup as a client would, reads the resulting HTML and renders that too, where mutation XSS would occur.
const SHOW = `async (markup) => {
  const alarms = [];
  window.alert = () => void alarms.push('a script ran');
  let shown = markup;
  for (const container of ['div', 'p', 'template', 'div']) {
    const element = document.createElement(container);
    element.innerHTML = shown;
    shown = element.innerHTML;
    document.body.replaceChildren(element);
  }
  for (const element of document.body.querySelectorAll('*')) {
    if (/^(script|style|svg|math|iframe|object|embed|base|meta|link|form|input)$/i.test(element.tagName))
      alarms.push(element.tagName);
    for (const { name, value } of element.attributes)
      if (/^on/i.test(name) || /^\\s*(javascript|data):/i.test(value)) alarms.push(name + '=' + value);
  }
  // Events of images that could not be loaded come later, and other events, such as those of focus, soon.
  const isOver = ({ complete }) => complete;
  while (![...document.images].every(isOver)) await new Promise((resolve) => setTimeout(resolve));
  await new Promise((resolve) => setTimeout(resolve, 30));
  return alarms;
}`;

const collectAlarms = (page: Page, html: string) =>
  page.evaluate<string[]>(`(${SHOW})(${JSON.stringify(html)})`);

inChromium.describe('in Chromium', () => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await openChromium();
    page = await browser.newPage();
    await page.route('**', (route) => route.abort());
    await page.setContent('<!doctype html><title>descriptions</title>');
  });
  afterAll(async () => browser?.close());

  test.each(ATTACKS)('runs no script from %s', async (attack) => {
    expect(await collectAlarms(page, sanitizeHtml(attack) ?? '')).toEqual([]);
  });

  test('control: detects unsanitized markup', async () => {
    expect(await collectAlarms(page, '<img src=x onerror=alert(1)>')).toEqual(
      expect.arrayContaining(['onerror=alert(1)', 'a script ran']),
    );
  });
});
