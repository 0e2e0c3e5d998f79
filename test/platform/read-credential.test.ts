import type { Request, Response } from 'express';
import { readAuthorization, rateLimitKeys, readCredential } from '../../src/auth/access/credential';

function requestWith(authorization: string | undefined, KEY?: string, rawHeaders: string[] = []) {
  const url = KEY === undefined ? '/profile' : `/api/1/${KEY}/me`;
  const req = { url, headers: { authorization }, rawHeaders } as unknown as Request;
  readCredential(req, {} as Response, () => undefined);
  return req;
}
const credentialIn = (...request: Parameters<typeof requestWith>) =>
  requestWith(...request).unverifiedCredential;
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
])('reads %j as %j', (header, expected) => expect(credentialIn(header)).toEqual(expected));

test("a KEY in the path is the credential, unless it names the type of the header's credential", () => {
  expect(credentialIn('a.b.c', 'of-the-path')).toEqual(key('of-the-path'));
  expect(credentialIn(undefined, 'a.b.c')).toEqual(key('a.b.c'));
  expect(credentialIn('abc', 'key')).toEqual(key('abc'));
  expect(credentialIn('a.b.c', 'jwt')).toEqual(jwt('a.b.c'));
  expect(credentialIn(undefined, 'key')).toBeUndefined();
  expect(credentialIn(undefined, 'jwt')).toBeUndefined();
  expect(credentialIn('a.b.c', 'key')).toMatchObject({ errors: ['invalid key'] });
  expect(credentialIn('abc', 'jwt')).toMatchObject({ errors: ['invalid token'] });
});

test('rejects two different headers, unless the KEY in the path is the credential', () => {
  const two = ['Host', 'h', 'Authorization', 'a', 'X-Other', 'authorization', 'authorization', 'b'];
  const given = { status: 400, errors: ['Authorization must be given once'] };
  expect(credentialIn('a', undefined, two)).toMatchObject(given);
  expect(credentialIn('', 'key', two)).toMatchObject(given);
  expect(credentialIn('a', 'of-the-path', two)).toEqual(key('of-the-path'));
  expect(credentialIn('a', undefined, two.slice(0, 6))).toEqual(key('a'));
  const others = ['If-None-Match', 'a', 'If-None-Match', 'b', 'X-A', 'c', 'X-A', 'd'];
  expect(credentialIn('a', undefined, others)).toEqual(key('a'));
});

test('leaves the header unchanged, and reads no invalid path', () => {
  for (const header of ['abc', 'Basic dXNlcjpwYXNz'])
    expect(requestWith(header).headers.authorization).toBe(header);
  expect(requestWith(undefined, 'of-the-path').headers.authorization).toBeUndefined();
  expect(credentialIn(undefined, '%zz')).toBeUndefined();
  expect(readAuthorization(requestWith(undefined))).toBe('');
});

test('counts a JWT for its key and its user', () => {
  const of = (api_key_id: number | null) =>
    rateLimitKeys({ type: 'jwt', user_id: 3, api_key_id, scopes: [] });
  expect(of(7)).toEqual({ credential: 'key 7', user: 'user 3', default: 'user 3' });
  expect(of(null)).toEqual({ credential: 'user 3', user: 'user 3', default: 'user 3' });
});
