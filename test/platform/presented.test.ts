import type { Request, Response } from 'express';
import { authorizationOf, trackersOf, presentCredential } from '../../src/auth/access/credential';

/** The credential of a request, and the header that Passport reads. */
function normalized(authorization: string | undefined, KEY?: string, rawHeaders: string[] = []) {
  const url = KEY === undefined ? '/profile' : `/api/1/${KEY}/me`;
  const req = { url, headers: { authorization }, rawHeaders } as unknown as Request;
  presentCredential(req, {} as Response, () => undefined);
  return req;
}
const presented = (...request: Parameters<typeof normalized>) => normalized(...request).presented;
const key = (text: string) => ({ type: 'key', text });
const jwt = (text: string) => ({ type: 'jwt', text });
const inUtf8 = (text: string) => Buffer.from(text).toString('latin1');

test.each([
  [undefined, undefined],
  ['', undefined],
  ['  ', undefined],
  ['Bearer', undefined],
  ['Bearer ', undefined],
  ['bearer', undefined],
  ['abc', key('abc')],
  ['  abc ', key('abc')],
  ['Bearer abc', key('abc')],
  ['Bearer   abc  ', key('abc')],
  ['BEARER abc', key('abc')],
  ['bearer \t abc', key('abc')],
  ['Bearer a b', undefined],
  ['Basic dXNlcjpwYXNz', undefined],
  ['Digest\tusername="x"', undefined],
  ['Basic', key('Basic')],
  ['bearers', key('bearers')],
  ['bearerabc', key('bearerabc')],
  ['forbearer', key('forbearer')],
  ['a bearer b', undefined],
  ['a.b.c', jwt('a.b.c')],
  ['Bearer a.b.', jwt('a.b.')],
  [inUtf8('ключ🔑'), key('ключ🔑')],
  [inUtf8('ü'), key('ü')],
  // Latin-1 that isn't valid UTF-8, and characters that no header can contain.
  ['schlüssel', key('schlüssel')],
  ['ключ', key('ключ')],
  [`${inUtf8('ü')}ю`, key(`${inUtf8('ü')}ю`)],
])('reads %j as %j', (header, expected) => expect(presented(header)).toEqual(expected));

test("a KEY in the path is the credential, unless it names the type of the header's credential", () => {
  expect(presented('a.b.c', 'of-the-path')).toEqual(key('of-the-path'));
  expect(presented(undefined, 'a.b.c')).toEqual(key('a.b.c'));
  expect(presented('abc', 'key')).toEqual(key('abc'));
  expect(presented('a.b.c', 'jwt')).toEqual(jwt('a.b.c'));
  expect(presented(undefined, 'key')).toBeUndefined();
  expect(presented(undefined, 'jwt')).toBeUndefined();
  expect(presented('a.b.c', 'key')).toMatchObject({ errors: ['invalid key'] });
  expect(presented('abc', 'jwt')).toMatchObject({ errors: ['invalid token'] });
});

test('rejects two different headers, unless the KEY in the path is the credential', () => {
  const two = ['Host', 'h', 'Authorization', 'a', 'X-Other', 'authorization', 'authorization', 'b'];
  const given = { status: 400, errors: ['Authorization must be given once'] };
  expect(presented('a', undefined, two)).toMatchObject(given);
  expect(presented('', 'key', two)).toMatchObject(given);
  expect(presented('a', 'of-the-path', two)).toEqual(key('of-the-path'));
  expect(presented('a', undefined, two.slice(0, 6))).toEqual(key('a'));
  const others = ['If-None-Match', 'a', 'If-None-Match', 'b', 'X-A', 'c', 'X-A', 'd'];
  expect(presented('a', undefined, others)).toEqual(key('a'));
});

test('normalizes the header for Passport and leaves other schemes unchanged', () => {
  expect(normalized('abc').headers.authorization).toBe('Bearer abc');
  expect(normalized(undefined, 'of-the-path').headers.authorization).toBe('Bearer of-the-path');
  expect(normalized('Basic dXNlcjpwYXNz').headers.authorization).toBe('Basic dXNlcjpwYXNz');
  expect(normalized(undefined, '%zz').presented).toBeUndefined();
  expect(authorizationOf(normalized(undefined))).toBe('');
});

test('counts a JWT for its key and its user', () => {
  const of = (api_key_id: number | null) => trackersOf({ type: 'jwt', user_id: 3, api_key_id, scopes: [] });
  expect(of(7)).toEqual({ credential: 'key 7', user: 'user 3', default: 'user 3' });
  expect(of(null)).toEqual({ credential: 'user 3', user: 'user 3', default: 'user 3' });
});
