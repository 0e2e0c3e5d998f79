import { readFileSync } from 'node:fs';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { signInBrowser } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { Contract } from '../support/contract';
import { baseUrl, theApp, useStore } from '../support/app';
import { failure, send, theContract } from '../support/http';
import { make } from '../support/make';

useStore({ OPERATOR_TOKEN });

type Json = Record<string, unknown>;

interface Media {
  schema: Json;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

const exampleValues = ({ example, examples }: Media): unknown[] =>
  examples ? Object.values(examples).map(({ value }) => value) : [example];

interface FormMedia extends Media {
  encoding?: Record<string, { contentType: string }>;
}

interface Operation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security?: Record<string, string[]>[];
  parameters: {
    name: string;
    in: string;
    description?: string;
    schema?: Json;
    content?: Json;
    example?: unknown;
  }[];
  requestBody?: { description: string; content: Record<string, FormMedia> };
  responses: Record<
    string,
    { description: string; headers: Json; content?: Record<string, { schema: Json; example: unknown }> }
  >;
}

let text: string;
let document: {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json> };
} & Json;
const operations = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      method,
      operation,
    })),
  );

beforeAll(async () => {
  ({ text } = await send('GET', '/openapi.json'));
  document = JSON.parse(text) as typeof document;
});

const lint = async (source: string) => {
  const config = await createConfig({
    extends: ['recommended-strict'],
    rules: {
      // Public routes are public on purpose: each declares it.
      'security-defined': 'off',
      // A health check has no 4xx, and a relative server URL is that of the description.
      'operation-4xx-response': 'off',
      'no-server-example.com': 'off',
      // A download redirects.
      'operation-2xx-response': 'off',
      'operation-operationId-unique': 'error',
      'no-invalid-media-type-examples': 'error',
      'no-invalid-schema-examples': 'error',
      'operation-description': 'error',
      'parameter-description': 'error',
      'tag-description': 'error',
    },
  });
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config });
  return problems.map(
    ({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer ?? ''}: ${message}`,
  );
};

describe('/openapi.json', () => {
  test('passes the linter', async () => {
    expect(await lint(text)).toEqual([]);
  });

  test('control: the linter reports what is missing', async () => {
    const broken = JSON.parse(text) as typeof document;
    const [operation] = Object.values(Object.values(broken.paths)[0]!);
    delete (operation as Partial<Operation>).summary;
    operation!.responses['200']!.content!['application/json']!.example = 5;
    const problems = (await lint(JSON.stringify(broken))).join('\n');
    expect(problems).toContain('operation-summary');
    expect(problems).toContain('no-invalid-media-type-examples');
  });

  test('contains every route except those of the reference itself', () => {
    interface Layer {
      route?: { path: string; methods: Record<string, boolean> };
    }
    const { stack } = (theApp().getHttpAdapter().getInstance() as { router: { stack: Layer[] } }).router;
    const served = stack.flatMap(({ route }) =>
      route
        ? Object.keys(route.methods).map(
            (method) => `${method.toUpperCase()} ${route.path.replace(/:(\w+)/g, '{$1}')}`,
          )
        : [],
    );
    const described = operations().map(({ name }) => name);
    const pages = served.filter((route) => /^GET \/docs/.test(route));
    expect(described.filter((route) => !served.includes(route))).toEqual([]);
    expect(served.filter((route) => route.includes('/api/1/') && !described.includes(route))).toEqual([]);
    expect(pages).toEqual(['GET /docs', 'GET /docs/endpoints/{id}', 'GET /docs/operator']);
  });

  test('documents the purpose, the access and all statuses of every route', () => {
    for (const { name, path, method, operation } of operations()) {
      const statuses = Object.keys(operation.responses);
      expect([name, operation.summary.length > 3, /\bNeeds\b/.test(operation.description)]).toEqual([
        name,
        true,
        true,
      ]);
      const success = statuses.includes('302') ? '302' : '200';
      expect([name, ...statuses]).toEqual(expect.arrayContaining([success, '500', '503']));
      const secured = operation.security !== undefined;
      // The credential of an app is not one of a user, and a page takes a session.
      if (!/^\/(oauth|download)\//.test(path))
        expect([name, statuses.includes('401')]).toEqual([name, secured]);
      // Every route rejects two Authorization headers.
      if (secured) expect([name, statuses.includes('400')]).toEqual([name, true]);
      const scope = operation.security?.[0]?.bearer?.[0];
      if (scope)
        expect(exampleValues(operation.responses['403']!.content!['application/json']!)).toContainEqual({
          errors: [`api key does not permit \`${scope}\``],
        });
      if (operation.requestBody)
        expect([name, ...statuses]).toEqual(expect.arrayContaining(['400', '413', '415']));
      if (method === 'post') expect(name).toMatch(/^POST/);
      for (const [status, { headers }] of Object.entries(operation.responses)) {
        expect([name, status, 'X-Request-Id' in headers]).toEqual([name, status, true]);
        if (status === '429' || status === '503')
          expect([name, status, 'Retry-After' in headers]).toEqual([name, status, true]);
      }
    }
  });

  test('has valid examples of every parameter and response', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats(ajv);
    ajv.addSchema({ $id: 'api', ...document });
    const fits = (schema: Json, value: unknown, where: string) => {
      const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as Json;
      const validate = ajv.compile(absolute);
      expect([where, validate(value) ? 'fits' : ajv.errorsText(validate.errors)]).toEqual([where, 'fits']);
    };
    for (const { name, operation } of operations()) {
      for (const { name: parameter, schema, example, content } of operation.parameters) {
        const media = (content?.['application/json'] ?? { schema, example }) as {
          schema: Json;
          example: unknown;
        };
        expect([name, parameter, media.example]).not.toEqual([name, parameter, undefined]);
        fits(media.schema, media.example, `${name} ${parameter}`);
      }
      for (const [status, { content }] of Object.entries(operation.responses))
        for (const media of Object.values(content ?? {}))
          for (const example of exampleValues(media)) {
            expect([name, status, example]).not.toEqual([name, status, undefined]);
            fits(media.schema, example, `${name} ${status}`);
          }
    }
  });

  test('is the description against which responses in these tests are validated', () => {
    expect(document.paths).toEqual(JSON.parse(JSON.stringify(theContract().document.paths)));
  });

  test('orders its groups by use', () => {
    const names = (document.tags as { name: string; description: string }[]).map(({ name }) => name);
    expect([names.slice(0, 2), names.at(-1)]).toEqual([['Ownership', 'Downloads'], 'Legacy']);
    const undescribed = (document.tags as { name: string; description: string }[]).filter(
      ({ name, description }) => name === description,
    );
    expect(undescribed).toEqual([]);
  });

  test('states the limits in force', () => {
    expect((document.info as { description: string }).description).toContain(
      'number of requests is not limited',
    );
  });

  test('returns 304 until it changes', async () => {
    const first = await fetch(`${baseUrl()}/openapi.json`);
    const etag = first.headers.get('etag')!;
    const again = await fetch(`${baseUrl()}/openapi.json`, { headers: { 'if-none-match': etag } });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });
});

describe('input of client generators', () => {
  const operation = (name: string) => operations().find((one) => one.name === name)!.operation;
  const responseSchema = (name: string) => {
    const { $ref } = operation(name).responses['200']!.content!['application/json']!.schema as {
      $ref: string;
    };
    return document.components.schemas[$ref.split('/').at(-1)!]!;
  };
  const parameter = (name: string, wanted: string) =>
    operation(name).parameters.find((one) => one.name === wanted)!.schema;

  test('has has_game only in lists of collections', () => {
    const { schemas } = document.components;
    const having = Object.keys(schemas).filter(
      (name) => 'has_game' in ((schemas[name]!.properties ?? {}) as Json),
    );
    expect(having).toEqual(['ListedCollectionResponse']);
    expect(JSON.stringify(responseSchema('GET /profile/collections'))).toContain('ListedCollectionResponse');
    for (const name of [
      'GET /collections/{collection_id}',
      'POST /collections',
      'POST /collections/{collection_id}',
    ])
      expect(JSON.stringify(responseSchema(name))).toContain('/CollectionResponse');
  });

  test('sends a list of IDs as one JSON text in a form and as one part in a multipart body', () => {
    const { content } = operation('POST /collections/{collection_id}/order').requestBody!;
    const json = { contentType: 'application/json' };
    expect(content['application/x-www-form-urlencoded']!.encoding).toEqual({
      game_ids: json,
      remove_game_ids: json,
    });
    expect(content['multipart/form-data']!.schema.properties).toMatchObject({
      game_ids: { type: 'string', contentMediaType: 'application/json', contentSchema: { type: 'array' } },
    });
  });

  test('allows null in JSON where a parameter is optional', () => {
    const { content } = operation('POST /collections/{collection_id}').requestBody!;
    expect(content['application/json']!.schema.properties).toMatchObject({
      title: { type: ['string', 'null'] },
      description: { type: ['string', 'null'] },
      layout: { type: ['string', 'null'], enum: ['grid', 'list', null] },
    });
    expect(content['application/x-www-form-urlencoded']!.schema.properties).toMatchObject({
      title: { type: 'string' },
      layout: { enum: ['grid', 'list'] },
    });
    const add = operation('POST /collections/{collection_id}/add-game').requestBody!.content[
      'application/json'
    ]!;
    expect(add.schema).toMatchObject({ properties: { game_id: { type: 'integer' } }, required: ['game_id'] });
  });

  test('requires a scope for a device grant', () => {
    const { operation } = operations().find(({ name }) => name === 'POST /oauth/device')!;
    expect(operation.requestBody!.content['application/json']!.schema).toMatchObject({ required: ['scope'] });
  });

  test('makes the header optional on legacy routes', () => {
    const legacy = operations().filter(({ path }) => path.startsWith('/api/1/'));
    expect(legacy.length).toBeGreaterThan(5);
    for (const { name, operation } of legacy)
      if (operation.security) expect([name, operation.security]).toEqual([name, [expect.anything(), {}]]);
    for (const { path, operation } of operations())
      if (!path.startsWith('/api/1/')) expect(operation.security ?? []).not.toContainEqual({});
  });

  test('states the location of parameters', () => {
    for (const name of ['POST /oauth/token', 'POST /oauth/revoke', 'POST /oauth/device/poll'])
      expect(operation(name).requestBody!.description).toContain('in the body only');
    expect(operation('POST /collections').requestBody!.description).toContain(
      'also be sent in the query string',
    );
  });

  test('lists the statuses of invalid requests', () => {
    for (const { name, operation } of operations())
      if (operation.parameters.some((one) => one.name !== 'KEY') || operation.requestBody)
        expect([name, ...Object.keys(operation.responses)]).toEqual(
          expect.arrayContaining([name, '400', '413']),
        );
    // The introduction has the errors that every request can get.
    for (const { responses } of operations().map((one) => one.operation))
      expect(responses).not.toHaveProperty('414');
    expect(text).toContain('`414` `URL too long`');
  });

  test('maps class-validator rules to keywords', () => {
    const page = 'GET /collections/{collection_id}/collection-games';
    expect(parameter(page, 'page')).toMatchObject({ minimum: 1, maximum: 1_000_000, default: 1 });
    expect(parameter(page, 'per_page')).toMatchObject({ minimum: 1, maximum: 500, default: 100 });
    expect(parameter('GET /wharf/latest', 'target')).toMatchObject({ pattern: '^[^/]+\\/[^/]+$' });
    expect(
      operation('POST /collections/{collection_id}').requestBody!.content[
        'application/x-www-form-urlencoded'
      ]!.schema.properties,
    ).toMatchObject({ title: { maxLength: 60, minLength: 1, pattern: '^\\P{Cc}*$' } });
  });
});

describe("validation of the tests' requests against the description", () => {
  const JSON_TYPE = 'application/json';
  const FORM = 'application/x-www-form-urlencoded';
  const ORDER = '/collections/7/order';

  test.each<[string, string, string, string | undefined]>([
    ['GET', '/profile/collections', '', undefined],
    ['GET', '/collections/7/collection-games?page=2&other=x', '', undefined],
    ['POST', '/collections', '', undefined],
    ['POST', '/collections?title=x&private=off', '', undefined],
    ['POST', ORDER, FORM, 'game_ids=[3,1]'],
    ['POST', ORDER, JSON_TYPE, '{"game_ids":[3,1],"remove_game_ids":null}'],
    [
      'POST',
      ORDER,
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="game_ids"\r\n\r\n[1]\r\n--b--',
    ],
  ])('allows %s %s %s %s', (method, path, type, body) =>
    expect(() => theContract().checkRequest(method, path, type, body)).not.toThrow(),
  );

  test.each<[string, string, string, string | undefined, string]>([
    ['GET', '/wharf/latest?game_id=1', '', undefined, 'channel_name is missing'],
    ['GET', '/games/x/purchases?user_id=1', '', undefined, 'game_id is not as described'],
    ['GET', '/collections/7/collection-games?page=0', '', undefined, 'page is not as described'],
    ['POST', ORDER, '', undefined, "required property 'game_ids'"],
    ['POST', ORDER, FORM, 'game_ids=3', 'must be array'],
    ['POST', ORDER, JSON_TYPE, '{"game_ids":null}', 'must be array'],
    ['POST', '/collections', JSON_TYPE, '{"layout":"tiles"}', 'must be equal to one of the allowed values'],
    ['POST', '/collections', FORM, 'private=maybe', 'must be boolean'],
    ['POST', '/collections', 'text/xml', '<title/>', 'text/xml is not described'],
  ])('control: reports %s %s %s %s', (method, path, type, body, problem) =>
    expect(() => theContract().checkRequest(method, path, type, body)).toThrow(problem),
  );

  test('includes bodies that are described by a reference', () => {
    const schema = { $ref: '#/components/schemas/Named' };
    const named = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const operation = { requestBody: { content: { [JSON_TYPE]: { schema } } }, responses: {} };
    const contract = new Contract({
      openapi: '3.1.0',
      info: { title: 'Names', version: '1' },
      paths: { '/names': { post: operation } },
      components: { schemas: { Named: named } },
    });
    const check = (body: object) => contract.checkRequest('POST', '/names', JSON_TYPE, JSON.stringify(body));
    expect(() => check({ name: 'x' })).not.toThrow();
    expect(() => check({ name: 7 })).toThrow('must be string');
    expect(() => check({})).toThrow("required property 'name'");
  });
});

test('docs/reference/api-conventions.md lists exactly the fields that can be null', () => {
  const [, sentence = ''] = /These fields are `null` if they have no value: ([^.]*)\./.exec(
    readFileSync('docs/reference/api-conventions.md', 'utf8'),
  )!;
  const listed = [...sentence.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
  const nullable = Object.values(document.components.schemas).flatMap(({ properties = {} }) =>
    Object.entries(properties as Record<string, Json>)
      .filter(
        ([, { type, anyOf, oneOf }]) =>
          [type].flat().includes('null') || /"type":"null"/.test(JSON.stringify([anyOf, oneOf])),
      )
      .map(([name]) => name),
  );
  expect(listed.sort()).toEqual([...new Set(nullable)].sort());
});

test.each([
  ['/openapi.json', ''],
  ['/operator/openapi.json', `Bearer ${OPERATOR_TOKEN}`],
])('%s declares its ETag', async (path, authorization) => {
  const { body, headers } = await send('GET', path, { headers: authorization ? { authorization } : {} });
  const { paths } = body as unknown as { paths: Record<string, { get: Json }> };
  expect(headers.get('etag')).toMatch(/^W\//);
  expect(paths[path]!.get).toMatchObject({ responses: { 200: { headers: { ETag: {} } } } });
});

describe('/operator/openapi.json', () => {
  const ask = (authorization?: string) =>
    send('GET', '/operator/openapi.json', { headers: authorization === undefined ? {} : { authorization } });

  test('requires an operator token', async () => {
    const { key } = await make.user();
    expect(await ask()).toMatchObject(failure(401, 'authentication required'));
    expect(await ask(`Bearer ${key}`)).toMatchObject(failure(401, 'invalid token'));
    expect((await ask(`Bearer ${OPERATOR_TOKEN}`)).status).toBe(200);
  });

  test('contains the operator routes, which the public description does not', async () => {
    const { body } = await ask(`Bearer ${OPERATOR_TOKEN}`);
    const { paths, components } = body as { paths: object; components: { schemas: object } };
    expect(Object.keys(paths).sort()).toEqual([
      '/operator/import',
      '/operator/links',
      '/operator/metrics',
      '/operator/openapi.json',
      '/operator/people/erase',
      '/operator/purchases',
      '/operator/purchases/{purchase_id}/refund',
      '/operator/users/{user_id}/erase',
      '/operator/users/{user_id}/export',
      '/operator/users/{user_id}/link',
    ]);
    expect(Object.keys(components.schemas).sort()).toEqual([
      'ErasedResponse',
      'Errors',
      'ImportResponse',
      'LinkResponse',
      'NewKeyObject',
      'RefundResponse',
      'SaleResponse',
      'SoldPurchaseObject',
      'TypeCountsResponse',
    ]);
    const operations = paths as Record<string, Record<string, Json>>;
    expect(operations['/operator/openapi.json']!.get!.security).toEqual([{ operator: [] }]);
    expect(operations['/operator/import']!.post).toMatchObject({
      security: [{ operator: ['import'] }],
      responses: {
        403: {
          content: {
            'application/json': {
              example: { errors: ['operator token does not permit `import`'] },
            },
          },
        },
      },
    });
    expect(text).not.toContain('perator/');
    expect(Object.keys(document.components.schemas)).not.toContain('ImportResponse');
  });

  test('passes the linter', async () => {
    expect(await lint((await ask(`Bearer ${OPERATOR_TOKEN}`)).text)).toEqual([]);
  });
});

describe('/docs', () => {
  const AUTHORIZED = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  /** Path of the endpoints that the page loads. */
  const readDataSource = (page: string) => /data-source="([^"]+)"/.exec(page)![1]!;

  test.each(['/docs', '/docs/operator'])(
    'serves %s without external resources and only with its own scripts',
    async (path) => {
      const page = await fetch(baseUrl() + path, { headers: { accept: 'text/html' } });
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
      const policy = page.headers.get('content-security-policy')!;
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("connect-src 'self'");
      expect(policy).not.toContain('unsafe');
      const html = await page.text();
      // The limit includes the list of endpoints for readers without JavaScript.
      expect(html.length).toBeLessThan(40_000);
      expect(html).toContain('class="brand" href="/"');
      expect(html).not.toMatch(/<script(?![^>]*src=)|\son\w+=|style=|javascript:/);
      const addresses = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, to]) => to!);
      expect(addresses.filter((to) => !to.startsWith('/'))).toEqual([]);
      for (const to of [...addresses, readDataSource(html)]) {
        const headers = { ...AUTHORIZED, accept: 'text/html, */*' };
        expect([to, (await fetch(baseUrl() + to, { headers })).status]).toEqual([to, 200]);
      }
    },
  );

  test('loads the endpoints from a file that browsers cache', async () => {
    const source = readDataSource(await (await fetch(`${baseUrl()}/docs`)).text());
    expect(source).toMatch(/^\/assets\/reference-[0-9a-f]{12}\.html$/);
    const first = await fetch(baseUrl() + source);
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'content-encoding': 'gzip',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    });
    expect(Number(first.headers.get('content-length'))).toBeLessThan(48_000);
    const markup = await first.text();
    for (const { path, operation } of operations()) {
      expect(markup).toContain(`data-path="${path}"`);
      expect(markup).toContain(operation.operationId);
    }
    const plain = await fetch(baseUrl() + source, { headers: { 'accept-encoding': 'identity' } });
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(await plain.text()).toBe(markup);
    const etag = first.headers.get('etag')!;
    const again = await fetch(baseUrl() + source, { headers: { 'if-none-match': etag } });
    expect({ status: again.status, body: await again.text() }).toEqual({ status: 304, body: '' });
  });

  test('serves the same file to a signed-in user, whose own page is small and not stored', async () => {
    const browser = await signInBrowser(await make.user({ username: 'reader' }));
    const { headers, text } = await browser.get('/docs');
    expect(text).toContain('<span class="who">reader</span>');
    expect(text.length).toBeLessThan(40_000);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(readDataSource(text)).toBe(readDataSource(await (await fetch(`${baseUrl()}/docs`)).text()));
  });

  test('shows operator endpoints only with an operator token', async () => {
    const source = readDataSource(await (await fetch(`${baseUrl()}/docs/operator`)).text());
    expect(await send('GET', source)).toMatchObject(failure(401, 'authentication required'));
    const { key } = await make.user();
    const headers = { authorization: `Bearer ${key}` };
    expect(await send('GET', source, { headers })).toMatchObject(failure(401, 'invalid token'));
    const markup = await (await fetch(baseUrl() + source, { headers: AUTHORIZED })).text();
    expect(markup).toContain('data-path="/operator/purchases"');
    expect(markup).not.toContain('data-path="/profile"');
  });

  test('describes each field and whether it can be null', async () => {
    const source = readDataSource(await (await fetch(`${baseUrl()}/docs`)).text());
    const html = await (await fetch(baseUrl() + source)).text();
    const words = (markup = '') => markup.replace(/<[^>]*>/g, ' ').trim();
    const cells = [...html.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row]) => ({
      name: words(/<th.*?<\/th>/s.exec(row!)?.[0]),
      cells: [...row!.matchAll(/<td>(.*?)<\/td>/gs)].map(([, cell]) => words(cell)),
    }));
    expect(cells.length).toBeGreaterThan(500);
    expect(cells.filter(({ cells: [, meaning] }) => meaning === '')).toEqual([]);
    expect(cells.filter(({ cells: [type] }) => type?.includes('May be null')).length).toBeGreaterThan(20);
  });
});

describe.each([
  ['/openapi.json', {}],
  ['/operator/openapi.json', { authorization: `Bearer ${OPERATOR_TOKEN}` }],
])('%s', (path, headers) => {
  test('names every operation with a verb and an object', async () => {
    const { body } = await send('GET', path, { headers });
    const titles = Object.values((body as { paths: Record<string, Record<string, Operation>> }).paths)
      .flatMap((item) => Object.values(item))
      .map(({ summary }) => summary);
    const verbs =
      'Add Check Claim Count Create Delete Download Erase Exchange Export Find Finish Get Import List Publish Refund Remove Reorder Report Revoke Start Update';
    // Add a verb if none of them fits.
    expect({
      verbs,
      others: titles.filter((title) => !verbs.split(' ').includes(title.split(' ')[0]!)),
    }).toEqual({
      verbs,
      others: [],
    });
    expect(titles.filter((title) => title.split(' ').length < 2)).toEqual([]);
  });

  test('describes every property of requests and responses', async () => {
    const { body } = await send('GET', path, { headers });
    const undescribed: string[] = [];
    let properties = 0;
    // The field can be anywhere: in a schema with properties, or as a parameter.
    const visit = (value: unknown, at: string): void => {
      if (typeof value !== 'object' || value === null) return;
      const { properties: own, in: place, description } = value as Property;
      if (typeof place === 'string' && !description) undescribed.push(at);
      for (const [name, property] of Object.entries(typeof own === 'object' ? own : {})) {
        properties++;
        if (!property.description) undescribed.push(`${at}.${name}`);
      }
      for (const [key, inner] of Object.entries(value))
        if (!/^examples?$/.test(key)) visit(inner, `${at}/${key}`);
    };
    visit(body, '');
    expect(undescribed).toEqual([]);
    expect(properties).toBeGreaterThan(20);
  });
});

interface Property {
  description?: string;
  in?: unknown;
  properties?: Record<string, Property>;
}
