import { baseUrl, useStore } from '../support/app';
import { theContract } from '../support/http';

useStore();

test('/llms.txt links every operation of the API description with working links', async () => {
  const response = await fetch(`${baseUrl()}/llms.txt`);
  const text = await response.text();
  const base = /^- Base URL: (\S+)$/m.exec(text)![1]!;
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
  const described = Object.entries(theContract().document.paths).flatMap(([path, item]) =>
    Object.keys(item as object).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const listed = [...text.matchAll(/^- \[.+\]\(.+\): `([A-Z]+ [^`]+)`/gm)].map(([, request]) => request);
  expect(listed.toSorted()).toEqual(described.toSorted());
  expect(text).toContain('`GET /profile`, scope `profile:me`');

  const links = [...text.matchAll(/\]\(([^)#]+)(?:#([^)]+))?\)/g)];
  for (const page of new Set(links.map(([, page]) => page!))) {
    expect(page.startsWith(`${base}/`)).toBe(true);
    const linked = await fetch(page.replace(base, baseUrl()), { headers: { accept: 'text/html' } });
    let html = await linked.text();
    expect([page, linked.status]).toEqual([page, 200]);
    // The reference loads the endpoints with a script.
    const source = /data-source="([^"]+)"/.exec(html)?.[1];
    if (source) html += await (await fetch(baseUrl() + source)).text();
    for (const [, on, anchor] of links)
      if (on === page && anchor) expect(html.includes(` id="${anchor}"`) ? anchor : '').toBe(anchor);
  }
});
