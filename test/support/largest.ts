import { type INestApplicationContext, RequestMethod } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { getMetadataStorage } from 'class-validator';
import { MAX_BODY_BYTES } from '../../src/platform/input/body';
import { readRequestClass } from '../../src/platform/input/params.decorator';

/** The bytes of a request without its credential. */
export interface Input {
  name: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer;
}

const LONGEST_ADDRESS = 15 * 1024;
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const JSON_TYPE = { 'content-type': 'application/json' };
const MULTIPART = { 'content-type': 'multipart/form-data; boundary=x' };

const repeatTo = (piece: string, length: number) =>
  piece.repeat(Math.max(1, Math.floor(length / Buffer.byteLength(piece))));

/** Characters that are expensive to parse, each in its own way. */
const PIECES = [' ', 'e\u0301', '<', '<li>', '<a href=//x>x</a>', '1,'];

const post = (name: string, path: string, headers: Record<string, string>, body: string | Buffer): Input => ({
  name: `POST ${path} ${name}`,
  method: 'POST',
  path,
  headers,
  body: Buffer.from(body).subarray(0, MAX_BODY_BYTES),
});

/** Forms that repeat the text unchanged and percent-encoded, with spaces as in a form. */
export const formInputs = (path: string, field: string, piece: string, length = MAX_BODY_BYTES): Input[] =>
  [piece.replaceAll(' ', '+'), encodeURIComponent(piece)].map((text) =>
    post(`form ${field} ${text}`, path, FORM, `${field}=${repeatTo(text, length - 200)}`),
  );

const jsonInputs = (path: string, field: string, piece: string): Input[] =>
  [
    piece,
    [...Array(piece.length).keys()]
      .map((i) => `\\u${piece.charCodeAt(i).toString(16).padStart(4, '0')}`)
      .join(''),
  ].map((text) =>
    post(`JSON ${field} ${text}`, path, JSON_TYPE, `{"${field}":"${repeatTo(text, MAX_BODY_BYTES - 100)}"}`),
  );

const part = (field: string, text: string) =>
  `--x\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n${text}\r\n`;

const multipartInput = (path: string, field: string, piece: string): Input =>
  post(
    `multipart ${field} ${piece}`,
    path,
    MULTIPART,
    `${part(field, repeatTo(piece, MAX_BODY_BYTES - 200))}--x--\r\n`,
  );

const queryInput = (path: string, field: string, piece: string): Input => ({
  name: `GET ${path} query ${field} ${piece}`,
  method: 'GET',
  path: `${path}?${field}=${repeatTo(encodeURIComponent(piece), LONGEST_ADDRESS)}`,
  headers: {},
  body: Buffer.alloc(0),
});

type Controller = { prototype: Record<string, object> };

/** Every declared parameter of every route, with each of these texts sent in each way. */
export function everyParameter(app: INestApplicationContext): Input[] {
  const inputs: Input[] = [];
  for (const module of app.get(ModulesContainer).values())
    for (const { metatype } of module.controllers.values()) {
      const { prototype } = metatype as unknown as Controller;
      const prefix = Reflect.getMetadata('path', metatype as object) as string;
      for (const name of Object.getOwnPropertyNames(prototype)) {
        // A getter would run without the services of its controller.
        const { value: handler } = Object.getOwnPropertyDescriptor(prototype, name)!;
        const request = typeof handler === 'function' && name !== 'constructor' && readRequestClass(handler);
        if (!request) continue;
        const route = [prefix, Reflect.getMetadata('path', prototype[name]!) as string].filter(
          (one) => one !== '/',
        );
        const path = `/${route.join('/')}`.replace(':KEY', 'key').replaceAll(/:\w+/g, '1');
        const isPost = Reflect.getMetadata('method', prototype[name]!) === RequestMethod.POST;
        const rules = getMetadataStorage().getTargetValidationMetadatas(request, '', false, false);
        const fields = new Set(rules.map(({ propertyName }) => propertyName));
        for (const field of [...fields].filter((one) => one !== '' && !route.join('/').includes(`:${one}`)))
          for (const piece of PIECES)
            if (isPost)
              inputs.push(
                ...formInputs(path, field, piece),
                ...jsonInputs(path, field, piece),
                multipartInput(path, field, piece),
              );
            else inputs.push(queryInput(path, field, piece));
      }
    }
  return inputs;
}

const many = (count: number, one: (i: number) => string) => Array.from({ length: count }, (_, i) => one(i));

/** Bodies with many small parts. */
export function everyBody(path: string): Input[] {
  const json = (name: string, body: string) => post(`JSON ${name}`, path, JSON_TYPE, body);
  const form = (name: string, body: string) => post(`form ${name}`, path, FORM, body);
  const parts = (name: string, body: string) =>
    post(`multipart ${name}`, path, MULTIPART, `${body}--x--\r\n`);
  const most = MAX_BODY_BYTES - 100;
  return [
    json('32 deep', `{"a":${'['.repeat(31)}${repeatTo('1,', most - 100)}1${']'.repeat(31)}}`),
    json('arrays of arrays', `{"a":[${repeatTo(`${'['.repeat(20)}${']'.repeat(20)},`, most)}1]}`),
    json('objects', `{"a":[${repeatTo('{"a":1},', most)}1]}`),
    json('members', `{${many(40_000, (i) => `"k${i}":1`).join(',')}}`),
    json('members of a member', `{"a":{${many(40_000, (i) => `"k${i}":1`).join(',')}}}`),
    json('the same member', `{${repeatTo('"a":1,', most)}"a":1}`),
    json('1,000 long members', `{${many(999, (i) => `"k${i}${'x'.repeat(500)}":1`).join(',')}}`),
    json('ids', `{"game_ids":[${many(70_000, (i) => String(100_000 + i)).join(',')}]}`),
    json('long ids', `{"game_ids":[${many(500, () => `"${'9'.repeat(1000)}"`).join(',')}]}`),
    json('numbers', `{"a":[${repeatTo('1.234567890123456789e-300,', most)}1]}`),
    json('long numbers', `{"a":[${many(9990, (i) => `${'9'.repeat(40)}${i}`).join(',')}]}`),
    json(
      'rounded numbers and texts',
      `{"a":[${many(9990, (i) => (i < 2000 ? `${'9'.repeat(40)}` : `"${i}"`)).join(',')}]}`,
    ),
    json('a number', `{"a":0.${repeatTo('1', most)}}`),
    json('quotes', `{"a":1${repeatTo('""', most)}}`),
    form('separators', repeatTo('&', most)),
    form('1,000 fields', many(1000, (i) => `f${i}=${'x'.repeat(500)}`).join('&')),
    form('1,000 encoded fields', many(1000, (i) => `f${i}=${'%41'.repeat(165)}`).join('&')),
    form(
      '500 ids twice',
      `game_ids=[${many(500, String).join(',')}]&remove_game_ids=[${many(500, String).join(',')}]`,
    ),
    parts('1,000 parts', many(1000, (i) => part(`f${i}`, 'x'.repeat(400))).join('')),
    parts('10,000 parts', repeatTo(part('a', '1'), most)),
    parts('parts without headers', repeatTo('--x\r\n\r\n\r\n', most)),
    parts('parts without names', repeatTo(part('', ''), most)),
    parts(
      'files',
      repeatTo('--x\r\ncontent-disposition: form-data; name="a"; filename="b"\r\n\r\n1\r\n', most),
    ),
    post(
      'multipart 1,000 parts that are not UTF-8',
      path,
      MULTIPART,
      Buffer.concat([
        ...many(990, (i) => part(`f${i}`, `${'x'.repeat(400)}\xff`)).map((one) => Buffer.from(one, 'latin1')),
        Buffer.from('--x--\r\n'),
      ]),
    ),
    parts('headers', `--x\r\n${repeatTo('a: b\r\n', 15_000)}\r\n1\r\n`),
    parts(
      'long headers',
      repeatTo(
        `--x\r\ncontent-disposition: form-data; name="a"; ${repeatTo('a="\\"\\""; ', 14_000)}\r\n\r\n1\r\n`,
        most,
      ),
    ),
    parts('almost boundaries', `${part('a', repeatTo('\r\n--', most - 100))}`),
  ];
}

const HEADERS = [
  'authorization',
  'if-none-match',
  'cookie',
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'host',
  'idempotency-key',
  'x-forwarded-for',
  'x-request-id',
  'traceparent',
  'origin',
  'referer',
  'range',
  'forwarded',
];
const WORDS = ['a', '"a",', 'W/', ';a=b', 'a.', '"', '1.1.1.1,', '1::1,', ', '];

/** Every header that is read, at its maximum length. */
export const everyHeader = (path: string): Input[] =>
  HEADERS.flatMap((header) =>
    WORDS.map((word) => ({
      name: `GET ${path} header ${header} ${word}`,
      method: 'GET',
      path,
      headers: { [header]: repeatTo(word, LONGEST_ADDRESS - 500) },
      body: Buffer.alloc(0),
    })),
  );

/** Lines of an import, each almost at its maximum length. */
export function everyRecord(): Input[] {
  const most = 15 * 1024 * 1024;
  const line = (name: string, text: string): Input => ({
    ...post(`record ${name}`, '/operator/import', { 'content-type': 'application/x-ndjson' }, ''),
    body: Buffer.from(text),
  });
  const games = (blurb: string) =>
    many(Math.floor(most / (blurb.length + 30)), (i) => `{"game_id":${i + 1},"blurb":"${blurb}"}`).join(',');
  const collection = (more: string) => `{"type":"collection","id":1,"user_id":1,"title":"x",${more}}`;
  return [
    line('of another type', `{"type":"${repeatTo('x', most)}"}`),
    line('with many fields', `{"type":"user",${many(900_000, (i) => `"f${i}":1`).join(',')}}`),
    line('that is not JSON', repeatTo('[', most)),
    line('with a long description', collection(`"description":"${repeatTo('<li>', most)}"`)),
    line('with blurbs of markup', collection(`"games":[${games('<li>'.repeat(200))}]`)),
    line('with many games', collection(`"games":[${games('')}]`)),
    line(
      'with many addresses',
      `{"type":"user","id":1,"username":"a","emails":[${repeatTo('{"email":"a@b","verified":true},', most)}1]}`,
    ),
    line(
      'of a bundle',
      `{"type":"purchase","id":1,"game_id":[${many(1_500_000, (i) => String(i + 1)).join(',')}]}`,
    ),
    line(
      'with a long address',
      `{"type":"oauth_application","redirect_uris":["https://${repeatTo('a/', most)}"]}`,
    ),
    line('s in large numbers', repeatTo('{"type":"game","id":1}\n', most)),
  ];
}
