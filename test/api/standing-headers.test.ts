import { request } from 'node:http';
import { SECURITY_HEADERS } from '../../src/platform/output/default-headers';
import { baseUrl, useStore } from '../support/app';
import { make } from '../support/make';

useStore();

/** The headers of a response as they were sent, including repeated ones. */
function fetchRawHeaders(
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<string[][]> {
  return new Promise((resolve, reject) => {
    request(new URL(path, baseUrl()), { method, headers, agent: false }, (res) => {
      res.resume();
      const { rawHeaders } = res;
      resolve(rawHeaders.flatMap((name, i) => (i % 2 ? [] : [[name, rawHeaders[i + 1]!]])));
    })
      .on('error', reject)
      .end();
  });
}

const standing = Object.entries(SECURITY_HEADERS);
const without = (...names: string[]) => standing.filter(([name]) => !names.includes(name));

describe.each<[string, string, string, [string, string][], Record<string, string>?]>([
  ['a response', 'GET', '/profile', standing],
  ['a HEAD', 'HEAD', '/profile', standing],
  ['an unknown path', 'GET', '/nowhere', standing],
  ['a cacheable response', 'GET', '/wharf/latest?game_id=1&channel_name=windows', standing],
  [
    'a page',
    'GET',
    '/login',
    without(
      'Access-Control-Allow-Origin',
      'Access-Control-Expose-Headers',
      'Content-Security-Policy',
      'Cross-Origin-Resource-Policy',
      'Referrer-Policy',
    ),
  ],
  [
    'a preflight',
    'OPTIONS',
    '/profile',
    without('Cache-Control'),
    { 'access-control-request-method': 'GET' },
  ],
])('%s', (_what, method, path, expected, headers) => {
  let head: string[][];
  beforeAll(async () => {
    await make.user();
    head = await fetchRawHeaders(method, path, headers);
  });

  test('has each header once', () => {
    const names = head.map(([name]) => name!.toLowerCase());
    expect(names).toEqual([...new Set(names)]);
  });

  test('has the headers of all responses', () => {
    expect(head).toEqual(expect.arrayContaining(expected));
  });

  test('has no others except those that it sets itself', () => {
    const set = head
      .filter(([name]) => name! in SECURITY_HEADERS && !expected.some(([standing]) => standing === name))
      .map(([name, value]) => [name, value!.replace(/'nonce-[^']+'/, "'nonce-NONCE'")]);
    expect(set).toMatchSnapshot();
  });
});
