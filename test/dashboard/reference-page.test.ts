import { send, theContract, useStore } from '../support/store';

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

  const links = [...list.matchAll(/href="([^"#]+)#([^"]+)"/g)].map(([, path, id]) => ({
    path: path!,
    id: id!,
  }));
  const described = await send('GET', links[0]!.path);
  expect(links.filter(({ id }) => !described.text.includes(`id="${id}"`))).toEqual([]);
});
