import { Browser } from '../support/browser';
import { useStore } from '../support/app';
import { send, theContract } from '../support/http';

useStore();

test('/docs lists every endpoint for readers without JavaScript, with links to their descriptions', async () => {
  const { text } = await send('GET', '/docs');
  const [, list = ''] = /<noscript>([^]*?)<\/noscript>/.exec(text) ?? [];
  const { paths } = theContract().document;
  const names = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item as object).map((method) => `<code>${method.toUpperCase()} ${path}</code>`),
  );
  expect(names.length).toBeGreaterThan(40);
  expect(names.filter((name) => !list.includes(name))).toEqual([]);

  const links = [...list.matchAll(/href="(\/docs\/endpoints\/[^"]+)"/g)].map(([, path]) => path!);
  expect(new Set(links).size).toBe(names.length);
  const browser = new Browser();
  for (const path of links) {
    expect((await browser.get(path)).status).toBe(200);
    expect(browser.words).toMatch(/(GET|POST) \/.* Response [23]0/);
  }
  expect(list).toMatch(
    /GET \/games\/{game_id}\/ownership.*?Parameters:\s+<code>game_id<\/code> \(required\), <code>proof<\/code>/s,
  );
  expect((await browser.get('/docs/endpoints/nothing')).status).toBe(404);
});
